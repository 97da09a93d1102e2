/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine: its configuration, the arrays of tiles and of threads' records, the mesh, the map from threads to tiles,
 * and model time.
 *
 * Model time is the wall clock's, divided by the time scale. With scale 0 no thread waits for model time: then it runs
 * at the speed of the wall clock, and comes from the CPU's counter, which costs less to read. In both cases it decides
 * only when requests meet at a port or at a state machine; a request's own latency is added up from the model. Without
 * a time scale and without statistics nothing reads model time: it stands still, and packets cross the mesh uncounted.
 *
 * Nothing here takes a lock of the engine's. The machine knows none of the files that serve it.
 */
#ifndef SBT_ENGINE_NI_MACHINE_H
#define SBT_ENGINE_NI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/options.h"
#include "fsm.h"
#include "os/arch.h"
#include "slotted.h"

struct ni_tile;
struct ni_thread;

#define NI_MAX_THREADS 65535 /* a packet has 16 bits for it; the last number belongs to no thread */

struct ni_machine {
    struct hw_config config;
    struct hw_layout layout;
    uint32_t n_tiles;
    struct ni_tile *tiles;
    struct ni_thread *threads; /* NI_MAX_THREADS records */
    struct hw_slotted mesh;    /* without memory, and unused, unless `timed` */
    void *mesh_memory;         /* of mesh_bytes; NULL: none */
    size_t mesh_bytes;
    uint32_t time_scale;
    uint64_t start_ns;  /* time_scale > 0: the clock at model time 0 */
    uint64_t tick_mult; /* time_scale 0: cycles in 2^32 ticks of the CPU's counter */
    bool evict;         /* evict a primitive when the control elements are full */
    bool stats;
    bool optical;              /* --network atac: an optical network is beside the mesh */
    uint32_t broadcast_cycles; /* what a core spends on a condition's broadcast, until it has left it */
    bool timed;                /* a time scale, statistics or --requests read model time; otherwise it stands still */
    uint32_t next_ni;          /* the counter that spreads primitives over the NIs (ids.c); atomic */
    uint32_t n_full;           /* NIs without a free control element; atomic, read as a hint */
    uint32_t generation; /* the fork generation (os/fork.h); atomic, written by the only thread of a forked child */
    uint32_t n_threads;  /* threads of the program, counted by thread_enter and thread_exit; atomic */
    /*
     * Counts: objects that went to software for ever, waits served in software, objects evicted or moved. Atomic, and
     * relaxed: only the report reads them, when the program ends.
     */
    uint64_t n_software, n_software_waits, n_stale;
};

extern struct ni_machine ni_machine;

/* Make tiles, mesh, map and clock from the options. 0 or an errno value; EINVAL: a message has named the cause. */
int ni_machine_start(const struct sbt_options *options);

/* Zeroed memory for as long as the process lives; NULL: there is none. */
void *ni_get_memory(size_t bytes);

/* The mesh as at the start, with counters at zero: for a forked child. */
void ni_machine_clear_mesh(void);

/* The tile of the n-th thread, by --map. */
uint32_t ni_map(uint32_t n);

/* Until the core has handed such a request over. */
static inline uint32_t ni_handover_of(enum hw_op op) {
    return op == HW_OP_BROADCAST ? ni_machine.broadcast_cycles : ni_machine.config.timing.handover_cycles;
}

static inline uint64_t ni_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#endif
}

/* Model time with a time scale. */
uint64_t ni_scaled_cycles(void);

/* Model time, in cycles of the machine's clock. */
static inline uint64_t ni_now_cycles(void) {
    if (!ni_machine.timed)
        return 0;
    if (SBT_UNLIKELY(ni_machine.time_scale != 0))
        return ni_scaled_cycles();
    return (uint64_t)(((unsigned __int128)ni_ticks() * ni_machine.tick_mult) >> 32);
}

/*
 * Model time of a call that begins now. With a time scale also the nanoseconds of the wall clock by which it is later
 * than the cycle's beginning; otherwise 0.
 */
uint64_t ni_call_cycles(uint64_t *rest_ns);

/*
 * Wait until that model time; only with a time scale. Blocks; no cancellation point. rest_ns: of the call that waits.
 * Model time counts whole cycles, and a call begins between two. It ends as much later than a cycle's beginning as it
 * began: so it never lasts less than the model says, and not a cycle more if the next call follows at once. Returns by
 * how much it is later, in nanoseconds of the clock.
 */
uint64_t ni_wait_until(uint64_t cycles, uint64_t rest_ns);

#endif
