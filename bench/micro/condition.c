/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * broadcast: one thread wakes all waiters of a condition and sleeps until the last of them has acknowledged.
 * turn-ring: strict hand-off round a ring, one mutex, one condition per thread; no thread can run out of turn.
 * Both signal while they hold the mutex, as most programs do.
 */
#include "bench.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* broadcast: the broadcaster is one thread more than asked for. All protected by mutex. */
static pthread_cond_t next_round = PTHREAD_COND_INITIALIZER, all_acknowledged = PTHREAD_COND_INITIALIZER;
static uint64_t generation;
static int n_acknowledged;
static bool over;

static int broadcast_n_workers(const struct bench *b) {
    return b->threads + 1;
}

static void broadcast_rounds(struct bench *b) {
    uint64_t rounds = bench_share(b, (uint64_t)b->threads);
    bench_must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
    while (bench_more(b, generation, rounds)) {
        generation++;
        n_acknowledged = 0;
        bench_must(pthread_cond_broadcast(&next_round), "pthread_cond_broadcast");
        while (n_acknowledged < b->threads)
            bench_must(pthread_cond_wait(&all_acknowledged, &mutex), "pthread_cond_wait");
    }
    over = true;
    bench_must(pthread_cond_broadcast(&next_round), "pthread_cond_broadcast");
    bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
}

static void broadcast_worker(struct bench *b, struct bench_worker *w) {
    if (w->id == b->threads) {
        broadcast_rounds(b);
        return;
    }
    for (;;) {
        bench_must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
        while (generation == w->ops && !over)
            bench_must(pthread_cond_wait(&next_round, &mutex), "pthread_cond_wait");
        if (generation == w->ops)
            break;
        w->ops++;
        bench_check_equal("the generation a waiter woke in", generation, w->ops);
        if (++n_acknowledged == b->threads)
            bench_must(pthread_cond_signal(&all_acknowledged), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
    }
    bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
}

static uint64_t broadcast_finish(struct bench *b) {
    for (int i = 0; i < b->threads; i++)
        bench_check_equal("a waiter's number of rounds", b->workers[i].ops, generation);
    bench_must(pthread_cond_destroy(&next_round), "pthread_cond_destroy");
    bench_must(pthread_cond_destroy(&all_acknowledged), "pthread_cond_destroy");
    bench_must(pthread_mutex_destroy(&mutex), "pthread_mutex_destroy");
    return generation * (uint64_t)b->threads;
}

static void no_setup(struct bench *b) {
    (void)b;
}

const struct bench_kind bench_broadcast = {
    "broadcast",     "wake-up of one waiter (a round is N of them)", 0, broadcast_n_workers, no_setup, broadcast_worker,
    broadcast_finish};

/* turn-ring. All protected by mutex. */
static pthread_cond_t *my_turn;
static int turn;
static uint64_t n_turns;

static void turn_ring_setup(struct bench *b) {
    my_turn = bench_alloc((size_t)b->threads, sizeof *my_turn);
    for (int i = 0; i < b->threads; i++)
        bench_must(pthread_cond_init(&my_turn[i], NULL), "pthread_cond_init");
}

static void turn_ring_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, 1);
    bool leave = false;
    while (!leave) {
        bench_must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
        while (turn != w->id)
            bench_must(pthread_cond_wait(&my_turn[w->id], &mutex), "pthread_cond_wait");
        /* Each leaves on a turn of its own and passes the turn on: the decision travels once round the ring. */
        if (!over && bench_more(b, n_turns, share)) {
            w->ops++;
            n_turns++;
        } else {
            leave = over = true;
        }
        turn = turn + 1 < b->threads ? turn + 1 : 0;
        bench_must(pthread_cond_signal(&my_turn[turn]), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
    }
}

static uint64_t turn_ring_finish(struct bench *b) {
    bench_check_equal("the number of turns", n_turns, bench_total_ops(b));
    for (int i = 0; i < b->threads; i++) {
        uint64_t fair = n_turns / (uint64_t)b->threads + ((uint64_t)i < n_turns % (uint64_t)b->threads);
        bench_check_equal("a thread's number of turns", b->workers[i].ops, fair);
        bench_must(pthread_cond_destroy(&my_turn[i]), "pthread_cond_destroy");
    }
    bench_must(pthread_mutex_destroy(&mutex), "pthread_mutex_destroy");
    return n_turns;
}

const struct bench_kind bench_turn_ring = {
    "turn-ring",     "turn handed to the next thread", 0, bench_n_threads, turn_ring_setup, turn_ring_worker,
    turn_ring_finish};
