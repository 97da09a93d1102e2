/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * yield: threads that do nothing but give their core away. No object is involved, so no engine can change it: it is the
 * floor of everything that waits by yielding. In a barrier of N threads on fewer cores each round every thread must be
 * switched to at least once, so a round cannot take less than N times what one operation takes here.
 */
#include "bench.h"

#include <sched.h>

static void no_setup(struct bench *b) {
    (void)b;
}

static void yield_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)b->threads);
    for (; bench_more(b, w->ops, share); w->ops++)
        bench_must(sched_yield(), "sched_yield");
}

static uint64_t yield_finish(struct bench *b) {
    return bench_total_ops(b);
}

const struct bench_kind bench_yield = {
    "yield", "sched_yield of one thread", BENCH_FAIRNESS, bench_n_threads, no_setup, yield_worker, yield_finish};
