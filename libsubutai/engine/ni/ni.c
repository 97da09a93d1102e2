/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine `ni`: mutexes, conditions and barriers by the emulated hardware of the Subutai paper. The paper leaves
 * read-write locks, semaphores and spinlocks to software; so the software engine serves them.
 *
 * A call becomes a request of three flits in the mailbox of the thread's core. The server of that core's NI takes it
 * from there. The server is a service thread; or the calling thread itself, with inline service and wherever there is
 * no service thread (before the first thread is created, in a forked child). A request for a primitive of the same tile
 * is stepped at once. A request for another tile crosses the mesh into the queue of the NI there.
 *
 * The files, from the ground up; a file uses files of its own line and of the lines above:
 *  - machine.c: the configuration, the mesh, the map, model time
 *  - eager.c held.c wfqueue.h: is another look worth it; requests set aside; liburcu's queue as tsan sees it
 *  - tile.c: a network interface and its lock
 *  - broadcast.c: the optical network beside the mesh
 *  - stats.c stats_report.c requests.c: what is counted; the report at exit; what --requests writes
 *  - service.c: the service threads as other files know them
 *  - step.c: one step of an NI: packets out, answers, requests that are held
 *  - serve.c: serving an NI: requests in, over the mesh or to the state machine
 *  - service_thread.c: the service threads
 *  - mailbox.c thread.c fork.c: handing requests in, records of threads, forked children; these use each other
 *    (thread.h)
 *  - await.c: waiting for the answer
 *  - ids.c: primitives: allocated, evicted when the hardware is full
 *  - mutex.c cond.c barrier.c: the POSIX objects, in requests; the last two use mutex.c
 *  - ni.c: the engine
 *
 * Lock order: a full mailbox's lock, a tile's lock, the mesh's or the optical network's. No thread waits for an answer
 * while it holds one of them. A mailbox with room has no lock (ring.h). A thread that finds its mailbox full waits for
 * a free slot with the full mailbox's lock held. The locks in thread.c and service.c are never held together with
 * another.
 */
#include "core/cpus.h"
#include "engine/direct/direct.h"
#include "engine/engine.h"
#include "engine/functions.h"
#include "engine/ni/barrier.h"
#include "engine/ni/broadcast.h"
#include "engine/ni/cond.h"
#include "engine/ni/fork.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/mutex.h"
#include "engine/ni/requests.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/stats.h"
#include "engine/ni/thread.h"

static int start(const struct sbt_options *options) {
    int r = sbt_engine_direct.start(options);
    if (r == 0)
        r = ni_machine_start(options);
    if (r == 0)
        r = ni_tile_start();
    if (r == 0)
        r = ni_stats_start();
    if (r == 0)
        r = ni_broadcast_start(options);
    if (r == 0)
        r = ni_requests_start(options);
    if (r == 0)
        r = ni_thread_start();
    if (r != 0)
        return r;
    ni_stats_report_start(options);
    sbt_cpus_look();
    ni_service_start(options);
    return 0;
}

/*
 * First serve what has been handed in, so that the counts cover everything. False: the process is ended by a signal
 * handler that has interrupted its thread inside the engine. That thread may hold any of the locks, so the counts stay
 * as they are.
 */
static bool lock_tiles_at_rest(void) {
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return false;
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_serve(&ni_machine.tiles[i]);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_fence(t, i);
    ni_leave(t);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) /* from here on no NI is served */
        ni_tile_take(&ni_machine.tiles[i]);
    ni_broadcast_take(); /* barriers need no NI */
    return true;
}

static void stop(void) {
    struct ni_machine *m = &ni_machine;
    if (m->tiles == NULL || (!ni_stats_wanted() && m->tiles[0].requests == NULL))
        return;
    bool locked = lock_tiles_at_rest();
    if (ni_stats_wanted())
        ni_stats_report(locked);
    ni_requests_end(locked);
    if (!locked)
        return;
    ni_broadcast_drop();
    for (uint32_t i = 0; i < m->n_tiles; i++)
        ni_tile_release(&m->tiles[i]);
    for (uint32_t i = 0; i < m->n_tiles; i++)
        ni_serve(&m->tiles[i]);
}

/* A request to an NI thread takes less time than a switch, or as long as the kernel takes to run that thread. */
static const char *why_not_switched(const struct sbt_options *options) {
    return options->value[SBT_OPT_NI_SERVICE].u == SBT_NI_SERVICE_INLINE
               ? NULL
               : "does not switch with NI threads, only with --ni-service inline";
}

const struct sbt_engine sbt_engine_ni = {
    .name = "ni",
    .start = start,
    .stop = stop,
    .thread_enter = ni_thread_enter,
    .thread_exit = ni_thread_exit,
    .fork_prepare = ni_fork_prepare,
    .fork_child = ni_fork_child,
    .why_not_switched = why_not_switched,
    .idle_work = ni_thread_serve_idly,
    .mutex_init = ni_mutex_init,
    SBT_MUTEXES_OF(ni),
    SBT_CONDS_OF(ni),
    SBT_BARRIERS_OF(ni),
    SBT_RWLOCKS_OF(direct),
    SBT_SEMS_OF(direct),
    SBT_FUTEXES_OF(direct),
    SBT_SPINS_OF(direct),
};
