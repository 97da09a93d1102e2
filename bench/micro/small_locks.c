/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * small-locks: each thread locks one mutex after another out of 64, adds to the number beside it and unlocks, as the
 * cells of a grid are updated. Two threads seldom meet. An engine that lets another thread make each step pays for that
 * here.
 *
 * trylock-barrier: a barrier without waiting: each thread counts itself under a mutex, and looks under the mutex until
 * all have come. It gets the mutex by trylock, again and again. With more threads than cores most trylocks fail, and
 * take time from the owner.
 */
#include "bench.h"

#include <errno.h>

#define N_CELLS 64

static struct {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    uint64_t count; /* protected by mutex */
} cells[N_CELLS];

static void small_locks_setup(struct bench *b) {
    (void)b;
    for (int i = 0; i < N_CELLS; i++)
        bench_must(pthread_mutex_init(&cells[i].mutex, NULL), "pthread_mutex_init");
}

static void small_locks_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)b->threads), ops = 0, random = (uint64_t)w->id + 1;
    for (; bench_more(b, ops, share); ops++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t i = random >> 58; /* 0 to 63 */
        bench_must(pthread_mutex_lock(&cells[i].mutex), "pthread_mutex_lock");
        cells[i].count++;
        bench_must(pthread_mutex_unlock(&cells[i].mutex), "pthread_mutex_unlock");
    }
    w->ops = ops;
}

static uint64_t small_locks_finish(struct bench *b) {
    uint64_t sum = 0;
    for (int i = 0; i < N_CELLS; i++) {
        sum += cells[i].count;
        bench_must(pthread_mutex_destroy(&cells[i].mutex), "pthread_mutex_destroy");
    }
    bench_check_equal("the sum of the counts", sum, bench_total_ops(b));
    return sum;
}

const struct bench_kind bench_small_locks = {"small-locks",     "lock and unlock of one of 64 mutexes",
                                             BENCH_FAIRNESS,    bench_n_threads,
                                             small_locks_setup, small_locks_worker,
                                             small_locks_finish};

static struct {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    uint64_t n_come, round; /* protected by mutex */
    bool last;              /* the round is the last one; protected by mutex */
} meeting = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void take_meeting(void) {
    int r;
    while ((r = pthread_mutex_trylock(&meeting.mutex)) != 0)
        if (r != EBUSY)
            bench_must(r, "pthread_mutex_trylock");
}

static void trylock_barrier_setup(struct bench *b) {
    (void)b;
}

/* The thread that comes last ends the round, and decides for all whether it was the last one. */
static bool come(struct bench *b, uint64_t share) {
    uint64_t round;
    bool over, last;
    take_meeting();
    round = meeting.round;
    if (++meeting.n_come == (uint64_t)b->threads) {
        meeting.n_come = 0;
        meeting.last = !bench_more(b, ++meeting.round, share);
    }
    do {
        over = meeting.round != round;
        last = meeting.last;
        bench_must(pthread_mutex_unlock(&meeting.mutex), "pthread_mutex_unlock");
        if (!over)
            take_meeting();
    } while (!over);
    return last;
}

static void trylock_barrier_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, 1);
    for (bool last = false; !last; w->ops++)
        last = come(b, share);
}

static uint64_t trylock_barrier_finish(struct bench *b) {
    for (int i = 0; i < b->n_workers; i++)
        bench_check_equal("a thread's number of rounds", b->workers[i].ops, meeting.round);
    bench_must(pthread_mutex_destroy(&meeting.mutex), "pthread_mutex_destroy");
    return meeting.round;
}

const struct bench_kind bench_trylock_barrier = {"trylock-barrier",
                                                 "round of all threads, by trylock",
                                                 0,
                                                 bench_n_threads,
                                                 trylock_barrier_setup,
                                                 trylock_barrier_worker,
                                                 trylock_barrier_finish};
