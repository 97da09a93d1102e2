/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The release phase of a barrier: what passes from the arrival of the last thread until each thread has left.
 *
 * In each round one thread, another one each time, comes last: it waits until all others are at the barrier, and then
 * so much longer that they spin or sleep there, as is asked for. Before it arrives it reads the clock. Every thread
 * reads the clock when it has left. Nothing is computed before all rounds are over.
 *
 *   release-phase KIND THREADS ROUNDS WARMUP PAUSE_US      KIND: pthread, openmp (GNU's run-time library)
 *
 * Prints one line of JSON: the medians over all rounds of the full release phase, of the delay of each thread, and of
 * the delay of the first thread to leave, the second, ...
 */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libgomp.h"

enum { THREADS_MOST = 1024, ROUNDS_MOST = 100000, LINE = 128 };

static int n_threads, n_rounds, n_warmup, pause_us;
static uint64_t *arrived; /* the last thread of each round */
static uint64_t *left;    /* each thread of each round */
static _Alignas(LINE) atomic_uint n_come;
static pthread_barrier_t barrier;
static struct bench_libgomp omp;

_Noreturn static void fail(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("release-phase: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(status);
}

static uint64_t *some(size_t n) {
    uint64_t *values = malloc(n * sizeof *values);
    if (values == NULL)
        fail(1, "no memory");
    memset(values, 1, n * sizeof *values); /* no page fault in a release phase */
    return values;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A pause of some microseconds is spun, because the kernel does not sleep for so short a time. */
static void pause_for(int us) {
    if (us >= 100) {
        usleep((useconds_t)us);
        return;
    }
    for (const uint64_t end = now_ns() + (uint64_t)us * 1000; now_ns() < end;)
        ;
}

static void come_last(unsigned round) {
    while (atomic_load_explicit(&n_come, memory_order_relaxed) != (unsigned)(n_threads - 1) * (round + 1))
        sched_yield();
    pause_for(pause_us);
}

static void run(int me, void (*meet)(void)) {
    for (int round = 0; round < n_rounds; round++) {
        if (round % n_threads == me) {
            come_last((unsigned)round);
            arrived[round] = now_ns();
        } else {
            atomic_fetch_add_explicit(&n_come, 1, memory_order_relaxed);
        }
        meet();
        left[(size_t)me * (size_t)n_rounds + (size_t)round] = now_ns();
    }
}

static void meet_pthread(void) {
    const int r = pthread_barrier_wait(&barrier);
    if (r != 0 && r != PTHREAD_BARRIER_SERIAL_THREAD)
        fail(1, "pthread_barrier_wait: error %d", r);
}

static void *run_pthread(void *me) {
    run((int)(intptr_t)me, meet_pthread);
    return NULL;
}

static void run_openmp(void *unused) {
    (void)unused;
    if (omp.n_threads() != n_threads)
        fail(1, "a team of %d threads", omp.n_threads());
    run(omp.thread(), omp.barrier);
}

static void all_openmp(void) {
    const char *missing = bench_libgomp_find(&omp);
    if (missing != NULL)
        fail(2, "%s", missing);
    omp.set_dynamic(0);
    omp.parallel(run_openmp, NULL, (unsigned)n_threads, 0);
}

static void all_pthread(void) {
    pthread_t thread[THREADS_MOST];
    if (pthread_barrier_init(&barrier, NULL, (unsigned)n_threads) != 0)
        fail(1, "pthread_barrier_init");
    for (intptr_t i = 0; i < n_threads; i++)
        if (pthread_create(&thread[i], NULL, run_pthread, (void *)i) != 0)
            fail(1, "thread %d cannot be created", (int)i);
    for (int i = 0; i < n_threads; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&barrier);
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

/* No thread may leave before the last one has come. */
static uint64_t delay(int thread, int round) {
    const uint64_t at = left[(size_t)thread * (size_t)n_rounds + (size_t)round];
    if (at < arrived[round])
        fail(1, "thread %d left round %d before the last thread came", thread, round);
    return at - arrived[round];
}

/* The median of each of n_threads lists of n. */
static void print_list(const char *name, uint64_t *of, size_t n) {
    printf("\"%s\": [", name);
    for (int i = 0; i < n_threads; i++)
        printf("%s%llu", i == 0 ? "" : ", ", (unsigned long long)median(of + (size_t)i * n, n));
    printf("]");
}

static void report(const char *kind) {
    const size_t n = (size_t)(n_rounds - n_warmup);
    uint64_t *of_thread = some((size_t)n_threads * n), *of_place = some((size_t)n_threads * n), *full = some(n);
    for (size_t k = 0; k < n; k++) {
        uint64_t all[THREADS_MOST];
        for (int i = 0; i < n_threads; i++)
            all[i] = of_thread[(size_t)i * n + k] = delay(i, n_warmup + (int)k);
        qsort(all, (size_t)n_threads, sizeof *all, by_value);
        for (int i = 0; i < n_threads; i++)
            of_place[(size_t)i * n + k] = all[i];
        full[k] = all[n_threads - 1];
    }
    qsort(full, n, sizeof *full, by_value);
    printf("{\"kind\": \"%s\", \"threads\": %d, \"rounds\": %zu, \"release_ns\": %llu, \"low_ns\": %llu, \"high_ns\": "
           "%llu, ",
           kind, n_threads, n, (unsigned long long)full[n / 2], (unsigned long long)full[n / 4],
           (unsigned long long)full[n * 3 / 4]);
    print_list("thread_ns", of_thread, n);
    printf(", ");
    print_list("place_ns", of_place, n);
    printf("}\n");
}

static int number(const char *text, int least, int most, const char *what) {
    char *end;
    const long n = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < least || n > most)
        fail(2, "%s: '%s' is not a number from %d to %d", what, text, least, most);
    return (int)n;
}

int main(int argc, char **argv) {
    if (argc != 6 || (strcmp(argv[1], "pthread") != 0 && strcmp(argv[1], "openmp") != 0))
        fail(2, "usage: release-phase pthread|openmp THREADS ROUNDS WARMUP PAUSE_US");
    n_threads = number(argv[2], 2, THREADS_MOST, "THREADS");
    n_warmup = number(argv[4], 0, ROUNDS_MOST / 2, "WARMUP");
    n_rounds = number(argv[3], 1, ROUNDS_MOST / 2, "ROUNDS") + n_warmup;
    pause_us = number(argv[5], 0, 1000000, "PAUSE_US");
    arrived = some((size_t)n_rounds);
    left = some((size_t)n_rounds * (size_t)n_threads);
    if (strcmp(argv[1], "pthread") == 0)
        all_pthread();
    else
        all_openmp();
    report(argv[1]);
    return 0;
}
