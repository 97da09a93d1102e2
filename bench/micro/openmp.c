/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * omp-barrier: the threads of an OpenMP team meet in its barrier, round after round. omp-parallel: one thread begins
 * and ends a parallel region with a sum over the team, again and again.
 *
 * GNU's run-time library is loaded, and called by the functions that gcc's code calls, so that the other kinds run in a
 * process without it, and other compilers can build this.
 */
#include "../libgomp.h"
#include "rounds.h"

static struct bench_libgomp omp;

static void openmp_setup(struct bench *b) {
    (void)b;
    const char *missing = bench_libgomp_find(&omp);
    if (missing != NULL)
        bench_refuse("%s", missing);
}

/* The team's first thread is the worker. */
static int one_worker(const struct bench *b) {
    (void)b;
    return 1;
}

/* ---- omp-barrier ---- */
static uint64_t *rounds; /* of each thread; a line apart */
#define APART (BENCH_LINE / sizeof *rounds)

static void meet(void *bench) {
    struct bench *b = bench;
    const int id = omp.thread();
    const uint64_t share = bench_share(b, 1);
    uint64_t round = 0;
    if (id == 0)
        bench_check_equal("the team's number of threads", (uint64_t)omp.n_threads(), (uint64_t)b->threads);
    for (bool last = false; !last; round++) {
        if (id == 0)
            bench_round_begin(b, round, share);
        omp.barrier();
        last = bench_round_is_last(round);
    }
    rounds[(size_t)id * APART] = round;
}

static void omp_barrier_setup(struct bench *b) {
    openmp_setup(b);
    rounds = bench_alloc((size_t)b->threads * APART, sizeof *rounds);
}

static void omp_barrier_worker(struct bench *b, struct bench_worker *w) {
    omp.set_dynamic(0);
    omp.parallel(meet, b, (unsigned)b->threads, 0);
    w->ops = rounds[0];
}

static uint64_t omp_barrier_finish(struct bench *b) {
    for (int i = 0; i < b->threads; i++)
        bench_check_equal("a thread's number of rounds", rounds[(size_t)i * APART], rounds[0]);
    return rounds[0];
}

/* ---- omp-parallel ---- */
static _Alignas(BENCH_LINE) atomic_ullong sum;

static void add_up(void *unused) {
    (void)unused;
    atomic_fetch_add_explicit(&sum, (unsigned long long)omp.thread() + 1, memory_order_relaxed);
}

static void omp_parallel_worker(struct bench *b, struct bench_worker *w) {
    const uint64_t n = (uint64_t)b->threads, share = bench_share(b, 1);
    omp.set_dynamic(0);
    while (bench_more(b, w->ops, share)) {
        atomic_store_explicit(&sum, 0, memory_order_relaxed);
        omp.parallel(add_up, NULL, (unsigned)b->threads, 0);
        bench_check_equal("the sum over the team", atomic_load_explicit(&sum, memory_order_relaxed), n * (n + 1) / 2);
        w->ops++;
    }
}

static uint64_t omp_parallel_finish(struct bench *b) {
    return bench_total_ops(b);
}

const struct bench_kind bench_omp_barrier = {
    "omp-barrier", "round of an OpenMP team", 0, one_worker, omp_barrier_setup, omp_barrier_worker, omp_barrier_finish};
const struct bench_kind bench_omp_parallel = {
    "omp-parallel",      "parallel region with a sum", 0, one_worker, openmp_setup,
    omp_parallel_worker, omp_parallel_finish};
