/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * omp-barrier: the threads of an OpenMP team meet in its barrier, round after round. omp-parallel: one thread begins
 * and ends a parallel region with a sum over the team, again and again.
 *
 * GNU's run-time library is loaded, and called by the functions that gcc's code calls, so that the other kinds run in a
 * process without it, and other compilers can build this.
 */
#include "bench.h"

#include <dlfcn.h>

static struct {
    void (*parallel)(void (*function)(void *), void *data, unsigned n_threads, unsigned flags);
    void (*barrier)(void);
    int (*thread)(void);
    int (*n_threads)(void);
    void (*set_dynamic)(int);
} omp;

static void find(void *library, const char *name, void *function) {
    *(void **)function = dlsym(library, name);
    if (*(void **)function == NULL)
        bench_refuse("libgomp.so.1 has no %s", name);
}

static void openmp_setup(struct bench *b) {
    (void)b;
    void *library = dlopen("libgomp.so.1", RTLD_NOW);
    if (library == NULL)
        bench_refuse("%s", dlerror());
    find(library, "GOMP_parallel", &omp.parallel);
    find(library, "GOMP_barrier", &omp.barrier);
    find(library, "omp_get_thread_num", &omp.thread);
    find(library, "omp_get_num_threads", &omp.n_threads);
    find(library, "omp_set_dynamic", &omp.set_dynamic);
}

/* The team's first thread is the worker. */
static int one_worker(const struct bench *b) {
    (void)b;
    return 1;
}

/* ---- omp-barrier ---- */
static struct {
    _Alignas(BENCH_LINE) uint64_t round;
    bool last;
} said[2];
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
        if (id == 0) {
            said[round & 1].round = round;
            said[round & 1].last = !bench_more(b, round + 1, share);
        }
        omp.barrier();
        if (said[round & 1].round != round)
            bench_check_equal("the round a thread left the barrier in", said[round & 1].round, round);
        last = said[round & 1].last;
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
