/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A discrete-event simulator: what would this chip make of that recorded program? Traces go in, virtual time comes out.
 *
 *   struct sim *sim = sim_new(&config, &error);       a chip
 *   sim_add(sim, trace, "a.sbt", &error);             an application; the same trace may be added several times
 *   sim_run(sim, &error);                             to the end
 *   sim_summary(sim), sim_application(sim, i), sim_thread(sim, i, k), sim_call(sim, i, kind), ...
 *   sim_free(sim);
 *
 * What a trace fixes: what each thread calls, and how long it works in between. What the chip decides: who gets a mutex
 * first, how long calls take, who runs when. So lock order is free, a condition wait ends when the recorded signal that
 * ended it has happened, and creation and join bind; docs/simulator.md has the rest.
 *
 * No threads, no clock, no randomness but the seed's: the same input gives the same output, bit by bit. Memory is for
 * cores, for threads that are alive and for objects, not for events. Times are nanoseconds of virtual time; the chip's
 * clock is 1 GHz, so they are its cycles too.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "costs.h"
#include "csa.h"
#include "timing.h"
#include "trace.h"

struct hw_packet; /* emu_hw/packet.h */

#define SIM_MAX_CORES 1024
#define SIM_MAX_APPLICATIONS 1024
#define SIM_MAX_THREADS 65534 /* of all applications together; a packet has 16 bits for them */

enum sim_sync { SIM_SOFTWARE, SIM_SUBUTAI, SIM_N_SYNCS };

/* "software", "subutai" */
const char *sim_sync_name(enum sim_sync sync);

/* What a thread does with its time; also the rows of a time line. */
enum sim_state {
    SIM_WORK,  /* its own code */
    SIM_CALL,  /* on its core, inside a call */
    SIM_WAIT,  /* for an answer or for another thread, whether or not a core is kept for it */
    SIM_READY, /* for a core */
    SIM_N_STATES
};
const char *sim_state_name(enum sim_state state);

struct sim_interval {
    uint32_t application, thread, core;
    enum sim_state state;
    uint64_t from_ns, to_ns; /* not the same */
};

struct sim_config {
    uint32_t width, height; /* of the mesh, of at most SIM_MAX_CORES tiles */
    uint32_t n_cores;       /* on its first tiles, the others have no more than a router; 0: on all */
    enum sim_sync sync;
    struct csa_config sched; /* CSA_OAT: applications one after another, round robin within each */
    bool migrate;            /* an idle core takes a thread that waits for another */
    bool recorded_order;     /* each mutex is acquired in the trace's order, not first come, first served */
    struct sim_costs costs;
    struct hw_timing timing; /* of the mesh; of the rest of the hardware too, which is SIM_SUBUTAI only: */
    uint32_t n_control, n_queue;
    bool strict_paper; /* EAGAIN and no eviction, as in engine ni */
    bool evict;
    uint32_t load_permille; /* data traffic on the mesh */
    uint64_t seed;          /* of that */
    /* Called with `context`; NULL: not wanted. */
    void *context;
    void (*on_interval)(void *context, const struct sim_interval *interval);
    void (*on_progress)(void *context, uint64_t n_events);                                    /* now and then */
    bool (*on_grant)(void *context, uint32_t application, uint32_t mutex, uint32_t thread);   /* false: stop */
    void (*on_release)(void *context, uint32_t application, uint32_t mutex, uint32_t thread); /* who had it */
    void (*on_packet)(void *context, uint32_t ni, const struct hw_packet *packet); /* leaves it; each NI's in order */
};

/* 8 x 8, Subutai, RR with 1 ms, migration, the hardware's defaults and the fitted costs. */
struct sim_config sim_config_default(void);

enum sim_status {
    SIM_OK,
    SIM_USAGE,   /* no such chip, or an application that it cannot hold: nothing was run */
    SIM_STUCK,   /* nothing can advance any more: sim_stuck says who waits for what */
    SIM_DAMAGED, /* a trace, while it was read */
    SIM_STOPPED, /* by a callback */
    SIM_NO_MEMORY
};

struct sim_error {
    char text[400]; /* one line */
};

struct sim;

/* NULL and *error if there is no such chip. */
struct sim *sim_new(const struct sim_config *config, struct sim_error *error);
void sim_free(struct sim *sim);

/* `trace` and `name` stay the caller's and in use. Applications are numbered from 0. */
enum sim_status sim_add(struct sim *sim, const struct sbt_trace *trace, const char *name, struct sim_error *error);

/* Bytes that the applications added so far will need at most for threads and objects; an estimate from above. */
uint64_t sim_memory_bytes(const struct sim *sim);

/* Once. What has been simulated until then can be asked whatever it returns. */
enum sim_status sim_run(struct sim *sim, struct sim_error *error);

/*
 * Instead of applications and sim_run: a request of somebody else's has reached its NI, before those that are fed after
 * it. What leaves the NI because of it is told to on_packet and goes to nobody. SIM_SUBUTAI only. False: no such NI.
 */
bool sim_feed(struct sim *sim, const struct hw_packet *request);

/* After a run that ended well: gives back all that no result needs. Then sim_section_ns knows no mutex any more. */
void sim_trim(struct sim *sim);

/* One line for each thread that waits, at most `n_max`, and how many more there are. */
void sim_stuck(const struct sim *sim, FILE *out, uint32_t n_max);

/* ---- results ---- */

/* Log2 intervals as in Fig. 10: [k] is of [2^(k-1), 2^k) ns, [0] of 0. */
#define SIM_N_OCTAVES 65

struct sim_sections {
    uint64_t n, sum_ns, max_ns;
    uint64_t n_in[SIM_N_OCTAVES], ns_in[SIM_N_OCTAVES]; /* how many were that long, and their sum */
};

enum sim_call_kind {
    SIM_LOCK_EMPTY,
    SIM_LOCK_QUEUED,
    SIM_TRYLOCK, /* one that fails in the trace; those that succeed are locks */
    SIM_UNLOCK,
    SIM_BARRIER,
    SIM_COND_WAIT,
    SIM_COND_SKIPPED, /* its signal had happened before: the program would not have waited */
    SIM_SIGNAL,
    SIM_BROADCAST,
    SIM_WAKE_SKIPPED, /* on the hardware, of a condition without an ID at which nobody waits in software: nothing is
                         sent */
    SIM_RWLOCK,
    SIM_SEMAPHORE,
    SIM_SPIN,
    SIM_THREAD, /* creation and join */
    SIM_N_CALLS
};
const char *sim_call_name(enum sim_call_kind kind);

struct sim_latency {
    uint64_t n;
    double mean_ns;
    uint64_t median_ns, p99_ns; /* within 1/32 */
    uint64_t max_ns;
};

struct sim_summary {
    uint64_t makespan_ns;                         /* until the last application ended */
    uint64_t n_events;                            /* of the traces */
    uint64_t n_calls;                             /* synchronization calls among them */
    uint64_t n_steps;                             /* of the simulation */
    uint64_t work_ns, call_ns, wait_ns, ready_ns; /* of all threads */
    uint64_t n_switches, n_migrations;
    struct csa_stats sched; /* of all cores */
    /* SIM_SUBUTAI */
    uint64_t n_packets, n_hops, contention_ns;
    uint64_t n_fsm_steps, fsm_busy_ns, n_held, n_evictions, n_software_objects;
    uint64_t n_passed_on; /* wake-ups that reached another thread than in the trace, and were passed on */
    /* SIM_SOFTWARE, and what the hardware left to it */
    uint64_t n_futex_waits, n_futex_wakes, n_lost_races; /* woken, and the mutex was taken again */
};

struct sim_application {
    const char *name;
    uint32_t n_threads; /* that have run */
    uint32_t n_cut;     /* of those: their events end, and they had not */
    uint32_t n_stopped; /* and: wait at the end for what would have come behind the end of others' events */
    uint64_t from_ns, to_ns;
    struct sim_sections sections; /* critical sections: from the acquisition of a mutex to its release */
};

struct sim_thread_result {
    uint64_t from_ns, to_ns;
    uint64_t in_ns[SIM_N_STATES];
    uint64_t sync_ns; /* inside calls, all but SIM_THREAD; with what it waited for a core meanwhile */
    uint64_t n_calls;
    uint64_t n_sections, section_ns; /* in critical sections, overlapping ones each */
};

struct sim_summary sim_summary(const struct sim *sim);
uint32_t sim_n_applications(const struct sim *sim);
const struct sim_application *sim_application(const struct sim *sim, uint32_t application);
/* False: there is no such thread, or it never ran. */
bool sim_thread(const struct sim *sim, uint32_t application, uint32_t thread, struct sim_thread_result *result);
/* How long this mutex was held, all together; 0 if it is no mutex, or if it has been forgotten since its destruction.
 */
uint64_t sim_section_ns(const struct sim *sim, uint32_t application, uint32_t mutex);
/* Of all applications together. */
struct sim_latency sim_call(const struct sim *sim, enum sim_call_kind kind);

#endif
