/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the emulated hardware did, for --stats: counted by stats.c, printed by stats_report.c.
 *
 * Latencies are in the model's cycles: from the moment when the program hands a request in, until its core sees the
 * answer. A request without an answer lasts until it has been handed in. Waiting for other threads (a lock's owner, the
 * rest of a barrier) is counted apart from what the hardware takes: hand-over, network, and the state machine with its
 * queue. Each tile's counts are under its lock, and are added up at exit.
 */
#ifndef SBT_ENGINE_NI_STATS_H
#define SBT_ENGINE_NI_STATS_H

#include "core/options.h"
#include "engine/ni/tile.h"

enum ni_class {
    NI_LOCK_EMPTY,
    NI_LOCK_QUEUED,
    NI_TRYLOCK,
    NI_UNLOCK,
    NI_BARRIER_WAIT,
    NI_COND_WAIT,
    NI_SIGNAL,
    NI_BROADCAST,
    NI_ALLOCATE,
    NI_DEALLOCATE,
    NI_WITHDRAW,
    NI_EVICT,
    NI_REFUSED,
    NI_N_CLASSES
};

/* What a latency is made of. */
struct ni_cycles {
    uint64_t handover, network, fsm, resume;
    uint64_t waited; /* for other threads, not for the hardware */
};

/* Buckets of a histogram: exact up to 1024 cycles, then 32 buckets in each power of two, 3 % wide. */
enum {
    NI_LATENCY_EXACT_POWER = 10,
    NI_LATENCY_EXACT = 1 << NI_LATENCY_EXACT_POWER,
    NI_LATENCY_PER_POWER_LOG = 5,
    NI_LATENCY_PER_POWER = 1 << NI_LATENCY_PER_POWER_LOG,
    NI_LATENCY_SIZE = NI_LATENCY_EXACT + (64 - NI_LATENCY_EXACT_POWER) * NI_LATENCY_PER_POWER
};

struct ni_latency {
    uint64_t n, n_local;
    struct ni_cycles cycles;
    uint32_t bucket[NI_LATENCY_SIZE];
};

/* Give each tile its counts, if the options ask for them. 0 or ENOMEM. */
int ni_stats_start(void);
/* Under the tile's lock. local: the request has not left its tile. */
void ni_stats_add(struct ni_tile *tile, enum ni_class class, const struct ni_cycles *cycles, bool local);
/* A barrier wait on the optical network, under its lock (broadcast.h). */
void ni_stats_add_barrier(const struct ni_cycles *cycles);
void ni_stats_fork_child(void); /* a child counts its own */
/*
 * The sum over all tiles, at the end of the process; NULL: there was none of that class. A second call overwrites it.
 */
const struct ni_latency *ni_stats_sum(uint32_t class);
uint64_t ni_cycles_all(const struct ni_cycles *cycles);
/* The middle of a bucket, in cycles. */
uint64_t ni_stats_cycles(uint32_t bucket);

void ni_stats_report_start(const struct sbt_options *options);
bool ni_stats_wanted(void);
/* `at_rest`: no thread changes what is counted meanwhile. */
void ni_stats_report(bool at_rest);

#endif
