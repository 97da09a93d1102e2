/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A discrete-event simulator: how long would this chip take for a recorded program? Traces go in, virtual time comes
 * out.
 *
 *   struct sim *sim = sim_new(&config, &error);       a chip
 *   sim_add(sim, trace, "a.sbt", &error);             an application; the same trace may be added several times
 *   sim_run(sim, &error);                             to the end
 *   sim_summary(sim), sim_application(sim, i), sim_thread(sim, i, k), sim_call(sim, i, kind), ...
 *   sim_free(sim);
 *
 * A trace fixes which calls each thread makes, and how long it works between them. The chip decides which thread gets a
 * mutex first, how long a call takes, and which thread runs when. So lock order is free. A condition wait ends when the
 * recorded signal that ended it has happened. Creation and join bind. docs/simulator.md has the rest.
 *
 * The simulator has no threads, no clock and no randomness but the seed's: the same input gives the same output, bit by
 * bit. It needs memory for cores, for living threads and for objects, and none for events. Times are nanoseconds of
 * virtual time. The chip's clock is 1 GHz, so they are its cycles too.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "costs.h"
#include "csa.h"
#include "data.h"
#include "host_model.h"
#include "optical_config.h"
#include "timing.h"
#include "trace.h"

struct hw_packet;    /* emu_hw/packet.h */
struct hw_log_state; /* emu_hw/request_log.h */

#define SIM_MAX_CORES 1024
#define SIM_MAX_APPLICATIONS 1024
#define SIM_MAX_THREADS 65534 /* in all applications together; a packet has 16 bits for them */

/*
 * What serves synchronization calls, and with that the machine: up to SIM_N_SYNCS the paper's chip, from there on the
 * host, a machine with caches and an operating system as the user has it.
 */
enum sim_sync {
    SIM_SOFTWARE,
    SIM_SUBUTAI,
    SIM_N_PAPER_SYNCS,               /* those that the paper compares */
    SIM_OPTICAL = SIM_N_PAPER_SYNCS, /* SIM_SOFTWARE, with barriers and broadcasts on an optical network */
    SIM_ATAC,                        /* SIM_SUBUTAI, with the same */
    SIM_N_SYNCS,
    SIM_GLIBC = SIM_N_SYNCS, /* glibc's primitives */
    SIM_DIRECT,              /* the engine direct; threads wait in the kernel */
    SIM_SWITCH,              /* the engine direct with --wait switch */
    SIM_DELEGATE,            /* that, with --delegate all and servers */
    SIM_N_ALL_SYNCS
};

/* "software", "subutai", "optical", "atac", "glibc", "direct", "switch", "delegate" */
const char *sim_sync_name(enum sim_sync sync);
/* "rr", "csa", "oat" */
const char *sim_sched_name(enum csa_policy policy);
/* Eq. 1 of the paper: csa_unfairness, of run times with other applications and alone. */
double sim_unfairness(const double *scheduled, const double *alone, size_t n);

/* Do the paper's network interfaces serve mutexes there? */
static inline bool sim_sync_has_nis(enum sim_sync sync) {
    return sync == SIM_SUBUTAI || sync == SIM_ATAC;
}

static inline bool sim_sync_has_optics(enum sim_sync sync) {
    return sync == SIM_OPTICAL || sync == SIM_ATAC;
}

/* What a thread does with its time. These are also the rows of a time line. */
enum sim_state {
    SIM_WORK,    /* its own code */
    SIM_CALL,    /* on its core, inside a call */
    SIM_WAIT,    /* waits for an answer or for another thread, with or without its core */
    SIM_READY,   /* waits for a core */
    SIM_OUTSIDE, /* waits for other processes, devices or time, without a core */
    SIM_N_STATES
};
const char *sim_state_name(enum sim_state state);

struct sim_interval {
    uint32_t application, thread, core;
    enum sim_state state;
    uint64_t from_ns, to_ns; /* to_ns is later */
};

struct sim_config {
    uint32_t width, height; /* of the mesh, of at most SIM_MAX_CORES tiles */
    uint32_t n_cores;       /* on the first tiles; the other tiles have only a router. 0: on all tiles */
    enum sim_sync sync;
    struct csa_config sched; /* CSA_OAT: applications one after another, round robin within each */
    bool migrate;            /* an idle core takes a thread that waits for another core */
    bool without_outside;    /* waits for the outside take no time; false: they last as long as they did */
    bool recorded_order;     /* each mutex is acquired in the trace's order; false: in the order of coming */
    /* When no thread can go on, a wait ends that would not have ended, and is counted. False: the run is stuck. */
    bool let_pass;
    struct sim_host_model host; /* of the host: then there is no mesh, and the number of cores is n_cores */
    struct sim_costs costs;
    struct hw_timing timing; /* of the mesh, and of the rest of the hardware. From here on with NIs only: */
    /*
     * SIM_OPTICAL, SIM_ATAC: costs of the optical network, without limits, flat, with as many cores as the chip; and
     * what a core computes in the interface for each message that it sends or retrieves
     */
    struct hw_optical_config optical;
    uint32_t interface_cycles;
    uint32_t n_control, n_queue;
    bool strict_paper; /* EAGAIN and no eviction, as in the engine ni */
    bool full_again;   /* EAGAIN without a queue element; barriers reserve theirs. For sim_feed */
    bool evict;
    uint32_t load_permille; /* data traffic on the mesh, 0 to HW_MESH_MAX_LOAD_PERMILLE */
    enum hw_qos qos;        /* which packets a router sends first, where there is data traffic */
    uint64_t seed;          /* the seed of the data traffic */
    /* Called with `context`. NULL: not called. None of them may call the simulator. */
    void *context;
    void (*on_interval)(void *context, const struct sim_interval *interval);
    void (*on_progress)(void *context, uint64_t n_events);                                  /* each 65536 events */
    bool (*on_grant)(void *context, uint32_t application, uint32_t mutex, uint32_t thread); /* false: the run stops */
    void (*on_release)(void *context, uint32_t application, uint32_t mutex,
                       uint32_t thread); /* thread: the owner so far */
    void (*on_packet)(void *context, uint32_t ni, const struct hw_packet *packet,
                      uint64_t leaves_at); /* the packet leaves this NI; in the NI's order */
};

/* 8 x 8, Subutai, RR with 1 ms, migration, the hardware's defaults and the fitted costs. */
struct sim_config sim_config_default(void);

enum sim_status {
    SIM_OK,
    SIM_USAGE,   /* an impossible chip, or an application that it cannot hold: nothing was run */
    SIM_STUCK,   /* no thread can go on: sim_stuck says which threads wait for what */
    SIM_DAMAGED, /* a trace was found to be damaged while it was read */
    SIM_STOPPED, /* by a callback */
    SIM_NO_MEMORY
};

struct sim_error {
    char text[400]; /* one line */
};

/*
 * One walk through a trace, which is not changed by it: bounds for every chip, and which threads begin without a
 * creation in the trace.
 */
struct sim_survey;

struct sim_bounds {
    uint64_t work_ns; /* the work of all threads: no n cores do it in less than an n-th of that */
    /*
     * The longest chain of work, and of waits that last as long as they did, through what binds the threads on every
     * chip: creation and join, signals, barriers, posts. With `recorded_order` also through each mutex. No number of
     * cores takes less time.
     */
    uint64_t path_ns;
};

/*
 * NULL, *status and *error: the trace is damaged, or there is no memory. `trace` stays the caller's, and is not needed
 * later. recorded_order, without_outside: as in sim_config.
 */
struct sim_survey *sim_survey_new(const struct sbt_trace *trace, const char *name, bool recorded_order,
                                  bool without_outside, enum sim_status *status, struct sim_error *error);
struct sim_bounds sim_survey_bounds(const struct sim_survey *survey);
void sim_survey_free(struct sim_survey *survey);

struct sim;

/* NULL and *error: there can be no such chip. Nothing here blocks. One thread at a time may use a chip. */
struct sim *sim_new(const struct sim_config *config, struct sim_error *error);
void sim_free(struct sim *sim);

/* `trace` and `name` stay the caller's, and in use until sim_free. Applications are numbered from 0. */
enum sim_status sim_add(struct sim *sim, const struct sbt_trace *trace, const char *name, struct sim_error *error);
/*
 * The same with the trace's survey: threads without a creation in the trace begin at the time at which they began in
 * the trace. Without a survey this holds only for traces that are not whole; in whole traces such threads do not run.
 * And on the host a signal wakes another waiter if its own has not come yet, for which the broadcasts must be known.
 */
enum sim_status sim_add_surveyed(struct sim *sim, const struct sbt_trace *trace, const struct sim_survey *survey,
                                 const char *name, struct sim_error *error);

/* The most bytes that the applications added so far will need for threads and objects. */
uint64_t sim_memory_bytes(const struct sim *sim);

/* Run the chip, once. Whatever it returns, results can be asked for: they cover what has been simulated until then. */
enum sim_status sim_run(struct sim *sim, struct sim_error *error);

/*
 * In the place of applications and sim_run: a live run's request has reached its NI at that time, and its turn comes
 * before that of the requests that are fed later. on_packet gets the packets that leave the NI because of it; they go
 * to no core. With NIs only. False: there is no such NI, or no memory.
 */
bool sim_feed(struct sim *sim, const struct hw_packet *request, uint64_t arrived_at);

/*
 * Before an NI's first request: its registers, and its scratchpad's bytes, as many as the configuration says. False:
 * there is no such NI, or it can have no such state; then the simulator is of no further use.
 */
bool sim_feed_state(struct sim *sim, uint32_t ni, const struct hw_log_state *state, const uint8_t *bytes);

/* After a run that ended well: give back all memory that no result needs. sim_section_ns then answers 0. */
void sim_trim(struct sim *sim);

/* Print a line for each waiting thread, at most `n_max` of them, and how many more there are. */
void sim_stuck(const struct sim *sim, FILE *out, uint32_t n_max);

/* ---- results ---- */

/* Intervals of Fig. 10 of the paper: [k] is for 2^(k-1) ns and more, below 2^k ns; [0] is for 0 ns. */
#define SIM_N_OCTAVES 65

struct sim_sections {
    uint64_t n, sum_ns, max_ns;
    uint64_t n_in[SIM_N_OCTAVES], ns_in[SIM_N_OCTAVES]; /* the number of sections of that length, and their sum */
};

enum sim_call_kind {
    SIM_LOCK_EMPTY,
    SIM_LOCK_QUEUED,
    SIM_TRYLOCK, /* a trylock that failed in the trace; a successful trylock is a lock */
    SIM_UNLOCK,
    SIM_BARRIER,
    SIM_COND_WAIT,
    SIM_COND_SKIPPED, /* its signal had happened before: the program would not have waited */
    SIM_SIGNAL,
    SIM_BROADCAST,
    /* hardware: a signal to a condition without an ID and without waiters in software; no request is sent */
    SIM_WAKE_SKIPPED,
    SIM_RWLOCK,
    SIM_SEMAPHORE,
    SIM_SPIN,
    SIM_FUTEX_WAIT,
    SIM_FUTEX_WAKE,
    SIM_THREAD, /* creation and join, waits for the outside */
    SIM_N_CALLS
};
const char *sim_call_name(enum sim_call_kind kind);

/* Events that are not replayed as they were recorded, because the trace does not say what they depended on. */
enum sim_deviation {
    SIM_UNKNOWN_JOIN,   /* a join of a thread that is not in the trace: it lasts as long as it did */
    SIM_UNKNOWN_CREATE, /* a creation of a thread that is not in the trace, or exists already */
    SIM_NOT_HELD,       /* an unlock, or a condition wait, without the lock */
    SIM_UNKNOWN_OBJECT, /* the trace does not have the object, or not a barrier's count: a wait lasts as long as it did
                         */
    SIM_LET_PASS,       /* a wait that would not have ended: see sim_config.let_pass */
    SIM_NOT_REPLAYED,   /* events of threads that never began, or had ended */
    SIM_N_DEVIATIONS
};
/* "joins of unknown threads", ... */
const char *sim_deviation_name(enum sim_deviation deviation);

struct sim_latency {
    uint64_t n;
    double mean_ns;
    uint64_t median_ns, p99_ns; /* within 1/32 */
    uint64_t max_ns;
};

/*
 * Latencies of packets, from their being ready until all of them has arrived; packets within a tile do not count.
 * Control packets are those of the chip. Beside each of them a data packet of the load is followed, which is ready at
 * the same time and has the same way, so that the two can be compared.
 */
enum sim_packet_kind { SIM_CONTROL_PACKET, SIM_DATA_PACKET, SIM_N_PACKETS };
const char *sim_packet_name(enum sim_packet_kind kind);

struct sim_packets {
    uint64_t n;
    double mean_ns, deviation_ns; /* deviation: the standard deviation */
    uint64_t p99_ns;              /* within 1/32 */
    uint64_t max_ns;
};

struct sim_summary {
    uint64_t makespan_ns;                         /* the end of the last application */
    uint64_t n_events;                            /* of the traces */
    uint64_t n_calls;                             /* synchronization calls among them */
    uint64_t n_steps;                             /* of the simulation */
    uint64_t n_deviations[SIM_N_DEVIATIONS];      /* events that are not replayed as recorded, by kind */
    uint64_t work_ns, call_ns, wait_ns, ready_ns; /* of all threads */
    uint64_t outside_ns;                          /* the same, in waits for the outside: no part of wait_ns */
    uint64_t n_outside;                           /* how many there were */
    uint64_t n_switches, n_migrations;
    struct csa_stats sched; /* of all cores */
    /* with NIs */
    uint64_t n_packets, n_hops, contention_ns;
    uint64_t n_fsm_steps, fsm_busy_ns, n_held, n_evictions, n_software_objects;
    uint64_t n_passed_on; /* wake-ups that reached another thread than in the trace, and were passed on */
    /* SIM_OPTICAL, SIM_ATAC. Retrieved: by cores; a message to n cores is retrieved n times */
    uint64_t n_messages, n_retrieved;
    uint64_t message_delay_ns, n_transferred; /* from sending to the end of the transfer, of all transfers */
    uint64_t max_lambda, max_buffer;          /* messages at once in a lambda queue, in a buffer's channel */
    uint64_t n_without_channel;               /* barriers and conditions for which no channel was free */
    /* SIM_SOFTWARE, SIM_OPTICAL, and objects for which the hardware had no place */
    /* n_lost_races: threads that were woken and found the mutex taken */
    uint64_t n_futex_waits, n_futex_wakes, n_lost_races;
    /* On the host: events that were replayed as a wait. Failed trylocks; work that looks for a signal. */
    uint64_t n_polls, n_looks;
};

struct sim_application {
    const char *name;
    uint32_t n_threads; /* threads that have run */
    uint32_t n_cut;     /* threads that had not ended when their events did */
    uint64_t from_ns, to_ns;
    struct sim_sections sections; /* critical sections: from the acquisition of a mutex to its release */
};

struct sim_thread_result {
    uint64_t from_ns, to_ns;
    uint64_t in_ns[SIM_N_STATES];
    uint64_t sync_ns; /* inside calls other than SIM_THREAD, and waiting for a core meanwhile */
    uint64_t n_calls;
    uint64_t n_sections, section_ns; /* in critical sections; two that overlap both count */
};

struct sim_summary sim_summary(const struct sim *sim);
uint32_t sim_n_applications(const struct sim *sim);
const struct sim_application *sim_application(const struct sim *sim, uint32_t application);
/* False: there is no such thread, or it never ran. */
bool sim_thread(const struct sim *sim, uint32_t application, uint32_t thread, struct sim_thread_result *result);
/*
 * The total time for which this mutex was held. 0: it is no mutex, or its memory was given back after its destruction.
 */
uint64_t sim_section_ns(const struct sim *sim, uint32_t application, uint32_t mutex);
/* Of all applications together. */
struct sim_latency sim_call(const struct sim *sim, enum sim_call_kind kind);
/* With NIs and data traffic; otherwise nothing is counted, n is 0. */
struct sim_packets sim_packets(const struct sim *sim, enum sim_packet_kind kind);

#endif
