/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Condition variables. Tokens are counted in and out; each token is announced by exactly one signal. An
 * untimed waiter sleeps for ever if that signal is lost: lost wake-ups are hangs, which the watchdog reports.
 */
#include "objects.h"

#include <stdlib.h>

static const enum mutex_kind cond_mutex_kinds[] = {
    MUTEX_NORMAL,   MUTEX_RECURSIVE, MUTEX_ERRORCHECK,
    MUTEX_ADAPTIVE, MUTEX_STATIC,    GLIBC_KINDS ? MUTEX_ROBUST : MUTEX_STATIC,
};

static enum mutex_kind cond_mutex_any(struct rng *rng) {
    return cond_mutex_kinds[rng_below(rng, sizeof cond_mutex_kinds / sizeof *cond_mutex_kinds)];
}

/* ---- ring: strict turns. One condition per thread (signal) or one for all (broadcast) ---- */
struct ring {
    pthread_mutex_t mutex;
    enum mutex_kind kind;
    pthread_cond_t *conds;
    clockid_t clock;
    unsigned n;
    bool shared_cond, timed;
    uint64_t turn;
};

static void ring_body(struct worker *w) {
    struct ring *r = w->shared;
    uint64_t rounds = w->left;
    pthread_cond_t *mine = &r->conds[r->shared_cond ? 0 : w->index];
    pthread_cond_t *next = &r->conds[r->shared_cond ? 0 : (w->index + 1) % r->n];
    for (uint64_t i = 0; i < rounds; i++) {
        mutex_take(w, &r->mutex, r->kind);
        while (r->turn != i * r->n + w->index) {
            CHECK(r->turn < i * r->n + w->index);
            cond_wait_any(w, mine, &r->mutex, r->clock, r->timed ? ANY : FOREVER);
            w->n[1]++;
        }
        r->turn++;
        bool inside = rng_chance(&w->rng, 50);
        if (!inside)
            OK(pthread_mutex_unlock(&r->mutex));
        AT("signal");
        if (r->shared_cond || rng_chance(&w->rng, 10))
            OK(pthread_cond_broadcast(next));
        else
            OK(pthread_cond_signal(next));
        if (inside)
            OK(pthread_mutex_unlock(&r->mutex));
        w->n[0]++;
        DID();
    }
}

static void cond_ring(struct run *run) {
    struct rng rng;
    uint64_t turns = 0, waits = 0, ops = run->ops / 8;
    rng_seed(&rng, run->seed, 1);
    for (unsigned round = 0; round < 8 && !run->stop; round++) {
        struct ring r = {.clock = clock_any(&rng), .shared_cond = round & 1, .timed = round >= 6};
        uint64_t sums[4];
        r.kind = cond_mutex_any(&rng);
        r.n = 2 + rng_below(&rng, run->threads - 1);
        r.conds = calloc(r.n, sizeof *r.conds);
        run->ops = r.shared_cond ? ops / 4 : ops; /* a broadcast wakes them all for one turn */
        mutex_make(&r.mutex, r.kind);
        for (unsigned i = 0; i < r.n; i++)
            cond_make(&r.conds[i], r.clock);
        team_whole(run, r.n, ring_body, &r, sums);
        CHECK_INT(r.turn, sums[0]);
        for (unsigned i = 0; i < r.n; i++)
            OK(pthread_cond_destroy(&r.conds[i]));
        OK(pthread_mutex_destroy(&r.mutex));
        free(r.conds);
        turns += sums[0];
        waits += sums[1];
    }
    torture_note("%llu turns, %llu waits", (unsigned long long)turns, (unsigned long long)waits);
}

/* ---- queue: bounded, two conditions, one mutex; each thread has a fixed quota, nothing releases them at the end ----
 */
#define QUEUE_ROOM 4
struct queue {
    pthread_mutex_t mutex;
    enum mutex_kind kind;
    pthread_cond_t not_empty, not_full;
    clockid_t clock;
    unsigned n_inside;
    uint64_t in, out, items[QUEUE_ROOM], sum_in, sum_out;
    bool timed;
};

static void queue_put(struct worker *w, struct queue *q) {
    mutex_take(w, &q->mutex, q->kind);
    while (q->n_inside == QUEUE_ROOM)
        cond_wait_any(w, &q->not_full, &q->mutex, q->clock, q->timed && w->index % 3 == 0 ? ANY : FOREVER);
    uint64_t item = rng_next(&w->rng);
    q->items[q->in++ % QUEUE_ROOM] = item;
    q->sum_in += item;
    q->n_inside++;
    bool inside = rng_chance(&w->rng, 50);
    if (inside)
        OK(pthread_cond_signal(&q->not_empty));
    OK(pthread_mutex_unlock(&q->mutex));
    if (!inside)
        OK(pthread_cond_signal(&q->not_empty));
}

static void queue_get(struct worker *w, struct queue *q) {
    mutex_take(w, &q->mutex, q->kind);
    while (q->n_inside == 0)
        cond_wait_any(w, &q->not_empty, &q->mutex, q->clock, q->timed && w->index % 3 == 0 ? ANY : FOREVER);
    q->sum_out += q->items[q->out++ % QUEUE_ROOM];
    q->n_inside--;
    CHECK(q->n_inside < QUEUE_ROOM);
    bool inside = rng_chance(&w->rng, 50);
    if (inside)
        OK(pthread_cond_signal(&q->not_full));
    OK(pthread_mutex_unlock(&q->mutex));
    if (!inside)
        OK(pthread_cond_signal(&q->not_full));
}

static void queue_body(struct worker *w) {
    struct queue *q = w->shared;
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        if (w->index & 1)
            queue_get(w, q);
        else
            queue_put(w, q);
        if (rng_chance(&w->rng, 10))
            think(w);
        DID();
    }
}

static void cond_queue(struct run *run) {
    struct rng rng;
    uint64_t items = 0, ops = run->ops / 6;
    rng_seed(&rng, run->seed, 2);
    for (unsigned round = 0; round < 6 && !run->stop; round++) {
        struct queue q = {.clock = clock_any(&rng), .timed = round >= 4};
        q.kind = cond_mutex_any(&rng);
        mutex_make(&q.mutex, q.kind);
        cond_make(&q.not_empty, q.clock);
        cond_make(&q.not_full, q.clock);
        run->ops = ops;
        team_whole(run, run->threads & ~1u, queue_body, &q, NULL);
        CHECK_INT(q.n_inside, 0);
        CHECK_INT(q.in, q.out);
        CHECK(q.sum_in == q.sum_out);
        items += q.out;
        OK(pthread_cond_destroy(&q.not_empty));
        OK(pthread_cond_destroy(&q.not_full));
        OK(pthread_mutex_destroy(&q.mutex));
    }
    torture_note("%llu items in and out", (unsigned long long)items);
}

/* ---- race of timeouts with signals: a record that a timed-out waiter left behind would swallow a signal ---- */
struct race {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    clockid_t clock;
    uint64_t tokens, taken, timed_out, rounds;
    unsigned n, n_timed, put, burst;
};

/* Once a round and then off to the barrier: a timed waiter that came back would rescue a lost token. */
static void race_timed(struct worker *w, struct race *r) {
    struct timespec deadline = time_in_ns(r->clock, rng_below(&w->rng, 80000));
    int error = 0;
    OK(pthread_mutex_lock(&r->mutex));
    AT("cond_timedwait, racing");
    while (r->tokens == 0 && error == 0)
        error = pthread_cond_timedwait(&r->cond, &r->mutex, &deadline);
    CHECK(error == 0 || error == ETIMEDOUT);
    CHECK(error == 0 || time_is_past(r->clock, &deadline));
    if (r->tokens > 0) {
        r->tokens--;
        r->taken++;
        if (r->taken == r->burst)
            OK(pthread_cond_broadcast(&r->cond));
    } else {
        r->timed_out++;
    }
    OK(pthread_mutex_unlock(&r->mutex));
}

static void race_untimed(struct worker *w, struct race *r) {
    OK(pthread_mutex_lock(&r->mutex));
    while (r->taken != r->burst) {
        if (r->tokens == 0) {
            cond_wait_any(w, &r->cond, &r->mutex, r->clock, FOREVER);
            continue;
        }
        r->tokens--;
        r->taken++;
        if (r->taken == r->burst)
            OK(pthread_cond_broadcast(&r->cond));
    }
    OK(pthread_mutex_unlock(&r->mutex));
}

static void race_signaller(struct worker *w, struct race *r) {
    for (unsigned i = 0; i < r->burst; i++) {
        if (rng_chance(&w->rng, 70))
            rest_ns(rng_below(&w->rng, 60000));
        bool inside = rng_chance(&w->rng, 50);
        OK(pthread_mutex_lock(&r->mutex));
        r->tokens++;
        if (inside)
            OK(pthread_cond_signal(&r->cond));
        OK(pthread_mutex_unlock(&r->mutex));
        if (!inside)
            OK(pthread_cond_signal(&r->cond));
    }
}

static void race_body(struct worker *w) {
    struct race *r = w->shared;
    for (uint64_t round = 0; round < r->rounds; round++) {
        AT("barrier");
        pthread_barrier_wait(&r->barrier);
        if (w->index == 0)
            race_signaller(w, r);
        else if (w->index <= r->n_timed)
            race_timed(w, r);
        else
            race_untimed(w, r);
        AT("barrier");
        if (pthread_barrier_wait(&r->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            CHECK_INT(r->tokens, 0);
            CHECK_INT(r->taken, r->burst);
            w->n[0] += r->burst;
            r->taken = 0;
            r->burst = 1 + rng_below(&w->rng, r->n);
        }
        DID();
    }
}

static void cond_race(struct run *run) {
    uint64_t tokens = 0, timed_out = 0, rounds = run->ops / 4;
    for (unsigned round = 0; round < 4 && !run->stop; round++) {
        struct race r = {.clock = round & 1 ? CLOCK_MONOTONIC : CLOCK_REALTIME, .burst = 1, .rounds = rounds};
        uint64_t sums[4];
        r.n = run->threads < 4 ? 4 : run->threads;
        r.n_timed = round < 2 ? r.n - 2 : r.n / 2;
        OK(pthread_mutex_init(&r.mutex, NULL));
        cond_make(&r.cond, r.clock);
        OK(pthread_barrier_init(&r.barrier, NULL, r.n));
        team_whole(run, r.n, race_body, &r, sums);
        tokens += sums[0];
        timed_out += r.timed_out;
        OK(pthread_barrier_destroy(&r.barrier));
        OK(pthread_cond_destroy(&r.cond));
        OK(pthread_mutex_destroy(&r.mutex));
    }
    torture_note("%llu tokens in and out, %llu waits timed out", (unsigned long long)tokens,
                 (unsigned long long)timed_out);
}

/* ---- broadcast: each generation wakes exactly the threads that wait for it ---- */
struct generations {
    pthread_mutex_t mutex;
    pthread_cond_t cond, all_here;
    uint64_t generation;
    unsigned n, n_waiting;
};

static void generation_body(struct worker *w) {
    struct generations *c = w->shared;
    uint64_t rounds = w->left;
    for (uint64_t i = 0; i < rounds; i++) {
        OK(pthread_mutex_lock(&c->mutex));
        CHECK_INT(c->generation, i);
        if (++c->n_waiting == c->n) {
            c->n_waiting = 0;
            c->generation++;
            bool inside = rng_chance(&w->rng, 50);
            AT("broadcast");
            if (inside)
                OK(pthread_cond_broadcast(&c->cond));
            OK(pthread_mutex_unlock(&c->mutex));
            if (!inside)
                OK(pthread_cond_broadcast(&c->cond));
        } else {
            while (c->generation == i)
                cond_wait_any(w, &c->cond, &c->mutex, CLOCK_MONOTONIC, FOREVER);
            CHECK_INT(c->generation, i + 1);
            OK(pthread_mutex_unlock(&c->mutex));
        }
        w->n[0]++;
        DID();
    }
}

static void cond_broadcast(struct run *run) {
    static const unsigned sizes[] = {2, 5, 16, 64};
    uint64_t wakes = 0, ops = run->ops / 4;
    for (unsigned i = 0; i < 4 && !run->stop; i++) {
        struct generations c = {.n = sizes[i]};
        uint64_t sums[4];
        OK(pthread_mutex_init(&c.mutex, NULL));
        cond_make(&c.cond, CLOCK_MONOTONIC);
        run->ops = ops;
        team_whole(run, c.n, generation_body, &c, sums);
        wakes += sums[0];
        OK(pthread_cond_destroy(&c.cond));
        OK(pthread_mutex_destroy(&c.mutex));
    }
    torture_note("%llu waits in generations of 2, 5, 16 and 64", (unsigned long long)wakes);
}

const struct torture cond_tortures[] = {
    {"cond-ring", "strict turns, signal and broadcast, both clocks", cond_ring, 12, 24000, 0},
    {"cond-queue", "items in are items out, none left asleep", cond_queue, 8, 40000, 0},
    {"cond-oversubscribed", "the same with more threads than cores", cond_queue, 64, 20000, 0},
    {"cond-race", "timeouts against signals, no signal swallowed", cond_race, 8, 1600, 0},
    {"cond-broadcast", "a broadcast wakes a whole generation, once", cond_broadcast, 64, 20000, 0},
    {0},
};
