/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * yield: threads that do nothing but give their core away. No object is involved, so no engine can change it: it is the
 * floor of everything that waits by yielding. In a barrier of N threads on fewer cores each round every thread must be
 * switched to at least once, so a round cannot take less than N times what one operation takes here.
 *
 * yield-barrier: the threads meet in a barrier of two counters. A thread that waits looks at them a few times, and then
 * again and again with a sched_yield in between, as the threads of OpenBLAS, ggml and others do. There is no object
 * either, but where threads are switched a sched_yield is a switch.
 */
#include <sched.h>

#include "rounds.h"

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

/* ---- yield-barrier ---- */
enum { LOOKS_BEFORE_YIELD = 16 };
static _Alignas(BENCH_LINE) atomic_uint n_arrived;
static _Alignas(BENCH_LINE) atomic_uint n_rounds;

static void meet(unsigned n_threads) {
    const unsigned round = atomic_load_explicit(&n_rounds, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&n_arrived, 1, memory_order_acq_rel) + 1 == n_threads) {
        atomic_store_explicit(&n_arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&n_rounds, round + 1, memory_order_release);
        return;
    }
    for (int looks = 0; atomic_load_explicit(&n_rounds, memory_order_acquire) == round; looks++)
        if (looks >= LOOKS_BEFORE_YIELD)
            bench_must(sched_yield(), "sched_yield");
}

static void yield_barrier_worker(struct bench *b, struct bench_worker *w) {
    const uint64_t share = bench_share(b, 1);
    for (bool last = false; !last; w->ops++) {
        const uint64_t round = w->ops;
        if (w->id == 0)
            bench_round_begin(b, round, share);
        meet((unsigned)b->threads);
        last = bench_round_is_last(round);
    }
}

static uint64_t yield_barrier_finish(struct bench *b) {
    const uint64_t rounds = atomic_load_explicit(&n_rounds, memory_order_relaxed);
    for (int i = 0; i < b->n_workers; i++)
        bench_check_equal("a thread's number of rounds", b->workers[i].ops, rounds);
    return rounds;
}

const struct bench_kind bench_yield_barrier = {
    "yield-barrier", "round of all threads", 0, bench_n_threads, no_setup, yield_barrier_worker, yield_barrier_finish};

const struct bench_kind bench_yield = {
    "yield", "sched_yield of one thread", BENCH_FAIRNESS, bench_n_threads, no_setup, yield_worker, yield_finish};
