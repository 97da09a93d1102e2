/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * long-wait: what waiting costs in CPU time when spinning cannot pay. Every waiter's waits are 1 to 50 ms, from a
 * fixed sequence; one timer thread (more than asked for) walks the merged schedule with clock_nanosleep and signals
 * each waiter's condition when its time comes. The number of waits is fixed before the run (--seconds is turned into
 * a count by the mean wait), so that runs are comparable; look at cpu_ns.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define MEAN_WAIT_NS 25500000u

struct event {
    uint64_t due_ns; /* since the start */
    int waiter;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct event *events;
static size_t n_events;
static uint64_t waits_each;
static struct waiter {
    pthread_cond_t due;
    uint64_t n_signalled; /* protected by mutex */
} * waiters;

static int by_time(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    return (x->due_ns > y->due_ns) - (x->due_ns < y->due_ns);
}

static int long_wait_n_workers(const struct bench *b) {
    return b->threads + 1;
}

static void long_wait_setup(struct bench *b) {
    uint64_t random = 20110627;
    waits_each = b->by_ops ? bench_share(b, (uint64_t)b->threads) : (uint64_t)(b->seconds * 1e9) / MEAN_WAIT_NS + 1;
    n_events = (size_t)waits_each * (size_t)b->threads;
    events = bench_alloc(n_events, sizeof *events);
    waiters = bench_alloc((size_t)b->threads, sizeof *waiters);
    for (int w = 0; w < b->threads; w++) {
        bench_must(pthread_cond_init(&waiters[w].due, NULL), "pthread_cond_init");
        uint64_t due_ns = 0;
        for (uint64_t i = 0; i < waits_each; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
            due_ns += 1000000 + (random >> 33) % 49000001;
            events[(uint64_t)w * waits_each + i] = (struct event){due_ns, w};
        }
    }
    qsort(events, n_events, sizeof *events, by_time);
}

static void run_timer(void) {
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t i = 0; i < n_events; i++) {
        uint64_t ns = (uint64_t)start.tv_nsec + events[i].due_ns;
        struct timespec due = {start.tv_sec + (time_t)(ns / 1000000000), (long)(ns % 1000000000)};
        int error;
        while ((error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) == EINTR)
            ;
        bench_must(error, "clock_nanosleep");
        bench_must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
        waiters[events[i].waiter].n_signalled++;
        bench_must(pthread_cond_signal(&waiters[events[i].waiter].due), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
    }
}

static void long_wait_worker(struct bench *b, struct bench_worker *w) {
    if (w->id == b->threads) {
        run_timer();
        return;
    }
    struct waiter *mine = &waiters[w->id];
    bench_must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
    while (w->ops < waits_each) {
        while (mine->n_signalled == w->ops)
            bench_must(pthread_cond_wait(&mine->due, &mutex), "pthread_cond_wait");
        w->ops++;
    }
    bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
}

static uint64_t long_wait_finish(struct bench *b) {
    for (int i = 0; i < b->threads; i++) {
        bench_check_equal("the signals a waiter was sent", waiters[i].n_signalled, waits_each);
        bench_check_equal("the waits a waiter ended", b->workers[i].ops, waits_each);
        bench_must(pthread_cond_destroy(&waiters[i].due), "pthread_cond_destroy");
    }
    bench_must(pthread_mutex_destroy(&mutex), "pthread_mutex_destroy");
    return n_events;
}

const struct bench_kind bench_long_wait = {
    "long-wait", "wait of 1 to 50 ms", 0, long_wait_n_workers, long_wait_setup, long_wait_worker, long_wait_finish};
