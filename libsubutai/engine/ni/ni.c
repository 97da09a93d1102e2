/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine `ni`: mutexes, conditions and barriers by the emulated hardware, the rest, which the paper leaves to
 * software, by the software engine.
 */
#include "engine/ni/ni.h"

#include "engine/direct/direct.h"

static int start(const struct sbt_options *options) {
    int r = sbt_engine_direct.start(options);
    return r != 0 ? r : ni_machine_start(options);
}

/*
 * What was handed in is served first: the counts are of everything. Not if a signal handler that has interrupted its
 * thread inside the engine ends the process: that thread may hold any of the locks, and the counts are what they are.
 */
static bool settle(void) {
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return false;
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_serve(&ni_machine.tiles[i]);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_fence(t, i);
    ni_leave(t);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) /* nobody serves from here on */
        ni_take(&ni_machine.tiles[i].lock);
    return true;
}

static void stop(void) {
    struct ni_machine *m = &ni_machine;
    if (m->tiles == NULL || (!ni_stats_wanted() && m->tiles[0].requests == NULL))
        return;
    bool locked = settle();
    if (ni_stats_wanted())
        ni_stats_report();
    ni_requests_end(locked);
    if (!locked)
        return;
    for (uint32_t i = 0; i < m->n_tiles; i++)
        ni_release(&m->tiles[i].lock);
    for (uint32_t i = 0; i < m->n_tiles; i++)
        ni_serve(&m->tiles[i]);
}

/* A request to an NI thread is over in less time than a switch, or when the kernel has run that thread. */
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
    .idle_work = ni_serve_idly,
    .mutex_destroy = ni_mutex_destroy,
    .mutex_lock = ni_mutex_lock,
    .mutex_trylock = ni_mutex_trylock,
    .mutex_timedlock = ni_mutex_timedlock,
    .mutex_unlock = ni_mutex_unlock,
    .cond_destroy = ni_cond_destroy,
    .cond_wait = ni_cond_wait,
    .cond_signal = ni_cond_signal,
    .cond_broadcast = ni_cond_broadcast,
    .barrier_init = ni_barrier_init,
    .barrier_destroy = ni_barrier_destroy,
    .barrier_wait = ni_barrier_wait,
    .rwlock_destroy = direct_rwlock_destroy,
    .rwlock_rdlock = direct_rwlock_rdlock,
    .rwlock_tryrdlock = direct_rwlock_tryrdlock,
    .rwlock_wrlock = direct_rwlock_wrlock,
    .rwlock_trywrlock = direct_rwlock_trywrlock,
    .rwlock_unlock = direct_rwlock_unlock,
    .sem_init = direct_sem_init,
    .sem_destroy = direct_sem_destroy,
    .sem_wait = direct_sem_wait,
    .sem_trywait = direct_sem_trywait,
    .sem_post = direct_sem_post,
    .sem_getvalue = direct_sem_getvalue,
    .spin_lock = direct_spin_lock,
    .spin_trylock = direct_spin_trylock,
    .spin_unlock = direct_spin_unlock,
};
