/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The chip that is simulated, and the order of the parts of the simulator.
 *
 * A part is a header and the files that begin with its name. A file includes headers of its own part, and of parts that
 * stand above it in this list. tests/sim/layers reads the list and fails on any other include, so no two parts know
 * each other.
 *
 *   costs          what software costs: the constants
 *   host_costs     what a real machine costs: measured files
 *   host_model     type: the host machine's model, made of such costs
 *   histogram      latencies, and quantiles of them
 *   line           memory by lines of the host's cache
 *   pools          memory of an optical network for messages under way
 *   inbox          what threads that share a core have received
 *   events         what happens when
 *   signal_set     numbers of signals
 *   exchange       signals that came in the place of others
 *   ranges         which signals were broadcasts
 *   earliest       when signals come at the earliest
 *   sim            the interface
 *   polling        waits that a program makes by calling again and again, recognised in its trace
 *   recorded       how many cores worked at once when a trace was recorded
 *   survey         one walk through a trace before it is replayed
 *   travel         a network in which all data packets travel, for measurements of the network itself
 *   thread         type: a thread, lists of threads, an application
 *   object         type: a synchronization object
 *   tile           type: a network interface
 *   chip           type: the chip; failures
 *   stack          stacks of simulated threads
 *   program        programs of simulated threads, which run on a chip instead of a trace
 *   core           cores and run queues: a thread runs, waits, is woken; the policies are sched_csa's
 *   host_core      the host's cores: run queues and virtual time
 *   host_place     to which of them a thread goes
 *   host_search    carriers without a fiber, which look for fibers
 *   host_sched     when they change to another thread: Linux's scheduler, and carriers
 *   signals        which signals of a condition have happened
 *   owner          the owner of a lock: critical sections, priority, the recorded order
 *   again          threads that a full NI has answered with AGAIN
 *   noc            the machine: NIs and mesh of emu_hw, requests and answers
 *   broadcast      the optical network beside the mesh: channels and ports of barriers and conditions
 *   feed           a live run's requests in the place of applications
 *   primitive      primitives for objects: what libsubutai/engine/ni/ids.c does, in virtual time
 *   page           objects by number: when they come and go
 *   host_poll      such waits on the host
 *   return         the end of a call, and on to the thread's next event
 *   software       the software-only model: mutexes, barriers, rwlocks, semaphores, spin locks
 *   request        mutexes and barriers in hardware: what libsubutai/engine/ni does, in virtual time
 *   vc_barrier     barriers by broadcast
 *   host_wait      how a thread waits on the host: asleep, actively, by switching
 *   host_delegate  sections of mutexes on servers
 *   host_sync      the host's mutexes, barriers, rwlocks, semaphores and spin locks
 *   mutex          a mutex, wherever it is served
 *   software_cond  conditions in software
 *   request_cond   conditions in hardware
 *   host_cond      conditions on the host
 *   call           a call on an object: which machine serves it, and what the trace says of its result
 *   replay         a thread's way along its trace: birth, work, calls, death; what ends a wait that nothing would end
 *   application    traces become applications
 *   results        what can be asked of a simulation that has been run
 *   stuck          which threads wait, and what for
 *   run            a chip is made, runs its events, and is freed
 *   log            a live run's request log, read and replayed
 *
 * Outside of this folder the simulator knows emu_hw, sched_csa and trace.
 */
#ifndef SIM_CHIP_H
#define SIM_CHIP_H

#include "events.h"
#include "fsm.h"
#include "histogram.h"
#include "mesh.h"
#include "object.h"
#include "tile.h"

#define SIM_NO_THREAD SIM_MAX_THREADS /* on the chip, the number of no thread */

/* What sim_core_* do on another machine than the paper's. */
struct sim_scheduler {
    void (*run)(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);
    void (*wait)(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then);
    void (*wake)(struct sim *sim, struct sim_thread *t, uint64_t ns);
    void (*add)(struct sim *sim, struct sim_thread *t, sim_then *then);
    void (*leave)(struct sim *sim, struct sim_thread *t);
};

struct sim {
    struct sim_events events;
    struct sim_config config;
    uint32_t n_cores;
    struct sim_core *cores;
    const struct sim_scheduler *scheduler; /* NULL: core.c is it */
    struct sim_host *host;                 /* NULL: the machine is the paper's */
    uint64_t idle[SIM_MAX_CORES / 64];     /* a bit for each core on which no thread runs */
    uint32_t n_ready;                      /* threads in the run queues of all cores, but for those of servers */
    uint32_t n_placed;
    struct csa_oat oat;

    struct sim_app *apps;
    uint32_t n_apps, n_running;
    struct sim_thread **by_id;
    uint16_t *free_ids;
    uint32_t n_free_ids;
    /* replay.c's functions for a thread that has come to its next event, or to the end of its events */
    sim_then *call, *cut;
    void (*none_goes_on)(struct sim *sim); /* replay_pass.c: lets a wait pass, or the run fails */
    sim_then *waits_for_lock;              /* replay.c: of a thread that has begun to, on the host */

    struct hw_config hw;
    struct hw_layout layout;
    struct hw_mesh mesh;
    struct hw_port *ports;
    struct sim_tile *tiles;
    uint8_t *scratchpads;
    struct hw_output *outputs;
    struct sim_object **owners; /* the owners of all control elements of all tiles */
    uint32_t next_ni;
    struct sim_broadcast *broadcast; /* NULL: there is no optical network */
    struct sim_list parked;          /* threads that were answered AGAIN (again.c) */

    uint64_t passed_at; /* events until the last wait was let pass, */
    uint32_t n_passed;  /* and how many waits were since the last event */
    /* When to look next for threads that wait for each other's locks, and how long before that was decided. */
    uint64_t circles_at, circles_ns;
    uint64_t n_exchanged;   /* signals in the tables of all conditions (signals.h) */
    uint64_t outside_until; /* the end of the last wait for the outside, of those that have begun */

    enum sim_status status;
    bool trimmed; /* memory was given back, and `summary` is complete */
    struct sim_error error;
    struct sim_summary summary;
    struct sim_histogram *latency; /* SIM_N_CALLS */
    struct sim_spread *packets;    /* SIM_N_PACKETS; NULL: not counted */
};

static inline uint64_t sim_now(const struct sim *sim) {
    return sim->events.now;
}

static inline void sim_deviates(struct sim *sim, enum sim_deviation how) {
    sim->summary.n_deviations[how]++;
}

/* End the run with a failure. The first reason stays. */
void sim_fail(struct sim *sim, enum sim_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* For a chip or application that is impossible: fill in *error, and return `status`. */
enum sim_status sim_refuse(struct sim_error *error, enum sim_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
