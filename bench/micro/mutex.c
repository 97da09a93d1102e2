/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * uncontended: every thread locks and unlocks a mutex of its own, while another thread exists and sleeps in a pipe
 * read: a C library that drops its atomics in single-threaded processes gains nothing from it here.
 * contended: all threads share one mutex; --cs-ns inside, --think-ns outside.
 */
#include "bench.h"

#include <unistd.h>

struct own_mutex {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    uint64_t count; /* protected by mutex */
};

static struct own_mutex *own;
static pthread_t sleeper;
static int sleeper_pipe[2];

static void *sleep_in_read(void *unused) {
    char byte;
    if (read(sleeper_pipe[0], &byte, 1) != 1)
        bench_fail("the sleeping thread was not released by its byte");
    return unused;
}

static void uncontended_setup(struct bench *b) {
    own = bench_alloc((size_t)b->threads, sizeof *own);
    for (int i = 0; i < b->threads; i++)
        bench_must(pthread_mutex_init(&own[i].mutex, NULL), "pthread_mutex_init");
    if (pipe(sleeper_pipe) != 0)
        bench_fail("pipe failed");
    bench_must(pthread_create(&sleeper, NULL, sleep_in_read, NULL), "pthread_create");
}

static void uncontended_worker(struct bench *b, struct bench_worker *w) {
    struct own_mutex *mine = &own[w->id];
    uint64_t share = bench_share(b, (uint64_t)b->threads), ops = 0;
    for (; bench_more(b, ops, share); ops++) {
        bench_must(pthread_mutex_lock(&mine->mutex), "pthread_mutex_lock");
        mine->count++;
        bench_must(pthread_mutex_unlock(&mine->mutex), "pthread_mutex_unlock");
    }
    w->ops = ops;
}

static uint64_t uncontended_finish(struct bench *b) {
    if (write(sleeper_pipe[1], "", 1) != 1)
        bench_fail("pipe failed");
    bench_must(pthread_join(sleeper, NULL), "pthread_join");
    for (int i = 0; i < b->threads; i++) {
        bench_check_equal("a thread's count", own[i].count, b->workers[i].ops);
        bench_must(pthread_mutex_destroy(&own[i].mutex), "pthread_mutex_destroy");
    }
    return bench_total_ops(b);
}

const struct bench_kind bench_uncontended = {"uncontended",     "lock and unlock of the thread's own mutex",
                                             BENCH_FAIRNESS,    bench_n_threads,
                                             uncontended_setup, uncontended_worker,
                                             uncontended_finish};

static struct {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    uint64_t count; /* protected by mutex, incremented in two halves: see below */
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void contended_setup(struct bench *b) {
    (void)b;
}

static void contended_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)b->threads), ops = 0;
    for (; bench_more(b, ops, share); ops++) {
        bench_must(pthread_mutex_lock(&shared.mutex), "pthread_mutex_lock");
        /* Read before, write after the section's work: a second thread inside loses an increment. */
        uint64_t count = shared.count;
        bench_busy_ns(b->cs_ns);
        __asm__ volatile("" ::: "memory");
        shared.count = count + 1;
        bench_must(pthread_mutex_unlock(&shared.mutex), "pthread_mutex_unlock");
        bench_busy_ns(b->think_ns);
    }
    w->ops = ops;
}

static uint64_t contended_finish(struct bench *b) {
    bench_check_equal("the count under the mutex", shared.count, bench_total_ops(b));
    bench_must(pthread_mutex_destroy(&shared.mutex), "pthread_mutex_destroy");
    return shared.count;
}

const struct bench_kind bench_contended = {"contended",
                                           "lock and unlock of one mutex by all threads",
                                           BENCH_CS | BENCH_THINK | BENCH_FAIRNESS,
                                           bench_n_threads,
                                           contended_setup,
                                           contended_worker,
                                           contended_finish};
