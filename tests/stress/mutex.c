/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes: exclusion for every type under a random mix of calls, the errors of wrong use while others contend,
 * and that no thread is starved.
 */
#include "objects.h"

#include <sched.h>
#include <stdlib.h>

#define N_OBJECTS 4

struct object {
    pthread_mutex_t mutex;
    enum mutex_kind kind;
    struct guard guard;
};

/* What only the owner can do wrong: each must fail as its type says and leave the lock held. */
static void misuse_as_owner(struct worker *w, struct object *o) {
    struct timespec soon = time_in_ns(CLOCK_REALTIME, rng_below(&w->rng, 50000));
    AT("misuse by the owner");
    if (mutex_is_recursive(o->kind))
        return;
    CHECK_INT(pthread_mutex_trylock(&o->mutex), EBUSY);
    if (mutex_is_errorcheck(o->kind)) {
        CHECK_INT(pthread_mutex_lock(&o->mutex), EDEADLK);
        CHECK_INT(pthread_mutex_timedlock(&o->mutex, &soon), EDEADLK);
    } else if (o->kind != MUTEX_INHERIT && rng_chance(&w->rng, 20)) { /* the kernel answers EDEADLK for inheritance */
        CHECK_INT(pthread_mutex_timedlock(&o->mutex, &soon), ETIMEDOUT);
        CHECK(time_is_past(CLOCK_REALTIME, &soon));
    }
}

static void misuse_as_stranger(struct object *o) {
    AT("unlock by a stranger");
    if (mutex_is_recursive(o->kind) || mutex_is_errorcheck(o->kind))
        CHECK_INT(pthread_mutex_unlock(&o->mutex), EPERM);
}

static void section(struct worker *w, struct object *o) {
    if (!TSAN_OF_GLIBC && rng_chance(&w->rng, 5))
        misuse_as_stranger(o);
    if (mutex_try_any(w, &o->mutex, o->kind) != 0) {
        w->n[1]++;
        return;
    }
    guard_enter(&o->guard, w);
    unsigned depth = mutex_is_recursive(o->kind) ? rng_below(&w->rng, 4) : 0;
    for (unsigned i = 0; i < depth; i++) {
        OK(mutex_try_any(w, &o->mutex, o->kind)); /* the owner never waits, whatever the function */
        w->n[2]++;
    }
    think_cs(w);
    if (!TSAN_OF_GLIBC && rng_chance(&w->rng, 5))
        misuse_as_owner(w, o);
    for (unsigned i = 0; i < depth; i++) {
        OK(pthread_mutex_unlock(&o->mutex));
        CHECK(o->guard.owner == (uintptr_t)w);
    }
    guard_leave(&o->guard, w);
    AT("unlock");
    OK(pthread_mutex_unlock(&o->mutex));
    w->n[0]++;
}

static void exclusion_body(struct worker *w) {
    struct object *objects = w->shared;
    while (worker_more(w)) {
        section(w, &objects[rng_below(&w->rng, N_OBJECTS)]);
        think(w);
        DID();
    }
}

static void exclusion_kind(struct run *run, enum mutex_kind kind, uint64_t *sums) {
    struct object objects[N_OBJECTS] = {0};
    uint64_t sum[4], sections = 0;
    for (unsigned i = 0; i < N_OBJECTS; i++) {
        objects[i].kind = kind;
        mutex_make(&objects[i].mutex, kind);
    }
    team_whole(run, run->threads, exclusion_body, objects, sum);
    for (unsigned i = 0; i < N_OBJECTS; i++) {
        sections += objects[i].guard.after;
        OK(pthread_mutex_trylock(&objects[i].mutex)); /* free at the end */
        OK(pthread_mutex_unlock(&objects[i].mutex));
        OK(pthread_mutex_destroy(&objects[i].mutex));
    }
    CHECK_INT(sections, sum[0]);
    for (unsigned i = 0; i < 4; i++)
        sums[i] += sum[i];
}

static void mutex_exclusion(struct run *run) {
    uint64_t sums[4] = {0};
    run->ops /= N_MUTEX_KINDS;
    for (unsigned kind = 0; kind < N_MUTEX_KINDS; kind++)
        exclusion_kind(run, (enum mutex_kind)kind, sums);
    torture_note("%u kinds: %llu sections, %llu attempts given up, %llu nested", (unsigned)N_MUTEX_KINDS,
                 (unsigned long long)sums[0], (unsigned long long)sums[1], (unsigned long long)sums[2]);
}

/* ---- all kinds at once, one lock inside another (always in the same order) ---- */
static void nested_body(struct worker *w) {
    struct object *objects = w->shared;
    while (worker_more(w)) {
        unsigned held[3], n = 0;
        for (unsigned i = 0; i < 3 * N_MUTEX_KINDS && n < 3; i += 1 + rng_below(&w->rng, 2 * N_MUTEX_KINDS)) {
            if (mutex_try_any(w, &objects[i].mutex, objects[i].kind) != 0)
                continue;
            guard_enter(&objects[i].guard, w);
            held[n++] = i;
        }
        think_cs(w);
        w->n[0] += n;
        for (unsigned i = 0; i < n; i++) { /* released in the order taken, not the reverse */
            guard_leave(&objects[held[i]].guard, w);
            AT("unlock");
            OK(pthread_mutex_unlock(&objects[held[i]].mutex));
        }
        DID();
    }
}

static void mutex_nested(struct run *run) {
    static struct object objects[3 * N_MUTEX_KINDS];
    uint64_t sums[4], sections = 0;
    for (unsigned i = 0; i < 3 * N_MUTEX_KINDS; i++) {
        objects[i] = (struct object){.kind = (enum mutex_kind)(i % N_MUTEX_KINDS)};
        mutex_make(&objects[i].mutex, objects[i].kind);
    }
    team_whole(run, run->threads, nested_body, objects, sums);
    for (unsigned i = 0; i < 3 * N_MUTEX_KINDS; i++) {
        sections += objects[i].guard.after;
        OK(pthread_mutex_destroy(&objects[i].mutex));
    }
    CHECK_INT(sections, sums[0]);
    torture_note("%llu sections, up to 3 locks held", (unsigned long long)sums[0]);
}

/* ---- rounds: all lock once or twice, then no thread comes any more. A waiter that a missed wake-up left asleep is
 * found out, which a steady stream of newcomers would rescue ---- */
struct rounds {
    struct meeting meeting;
    pthread_mutex_t mutex;
    enum mutex_kind kind;
    struct guard guard;
    uint64_t n;
};

static void rounds_body(struct worker *w) {
    struct rounds *r = w->shared;
    for (uint64_t round = 0; round < r->n; round++) {
        meeting_wait(&r->meeting);
        if (rng_chance(&w->rng, 30))
            busy(rng_below(&w->rng, 3000));
        for (unsigned i = rng_below(&w->rng, 3); i < 3; i++) {
            struct timespec soon = time_in_ns(CLOCK_REALTIME, rng_below(&w->rng, 60000));
            int error;
            if (rng_chance(&w->rng, 25)) {
                AT("timedlock, the last of a round");
                error = pthread_mutex_timedlock(&r->mutex, &soon);
                CHECK(error == 0 || error == ETIMEDOUT);
            } else {
                AT("lock, the last of a round");
                OK(error = pthread_mutex_lock(&r->mutex));
            }
            if (error != 0)
                continue;
            guard_enter(&r->guard, w);
            if (rng_chance(&w->rng, 30))
                sched_yield();
            else
                busy(rng_below(&w->rng, 2000));
            guard_leave(&r->guard, w);
            AT("unlock");
            OK(pthread_mutex_unlock(&r->mutex));
            w->n[0]++;
        }
        DID();
    }
}

static void mutex_rounds(struct run *run) {
    static const enum mutex_kind kinds[] = {MUTEX_NORMAL, MUTEX_ADAPTIVE, MUTEX_RECURSIVE, MUTEX_STATIC_ERRORCHECK};
    uint64_t sections = 0;
    for (unsigned k = 0; k < 4 && !run->stop; k++) {
        struct rounds r = {.kind = kinds[k], .n = run->ops / 4};
        uint64_t sums[4];
        meeting_init(&r.meeting, run->threads);
        mutex_make(&r.mutex, r.kind);
        team_whole(run, run->threads, rounds_body, &r, sums);
        CHECK_INT(r.guard.after, sums[0]);
        OK(pthread_mutex_destroy(&r.mutex));
        sections += sums[0];
    }
    torture_note("%llu rounds, %llu sections, no thread left asleep", (unsigned long long)run->ops,
                 (unsigned long long)sections);
}

/* ---- starvation: greedy threads never pause; one patient thread must still get its turns ---- */
struct greed {
    pthread_mutex_t mutex;
    struct guard guard;
    atomic_bool over;
};

static void greed_body(struct worker *w) {
    struct greed *g = w->shared;
    if (w->index == 0) {
        int64_t longest = 0;
        while (worker_more(w)) {
            int64_t start = now_ns(CLOCK_MONOTONIC);
            AT("lock, patient");
            OK(pthread_mutex_lock(&g->mutex));
            int64_t waited = now_ns(CLOCK_MONOTONIC) - start;
            longest = waited > longest ? waited : longest;
            guard_enter(&g->guard, w);
            guard_leave(&g->guard, w);
            OK(pthread_mutex_unlock(&g->mutex));
            rest_ns(10000);
            DID();
        }
        w->n[1] = (uint64_t)longest / 1000;
        CHECK(longest < 30 * NS_PER_S);
        atomic_store_explicit(&g->over, true, memory_order_relaxed);
    }
    /* The greedy report no progress: if the patient one starves, the watchdog sees it. */
    while (!atomic_load_explicit(&g->over, memory_order_relaxed)) {
        AT("lock, greedy");
        OK(pthread_mutex_lock(&g->mutex));
        guard_enter(&g->guard, w);
        busy(200);
        guard_leave(&g->guard, w);
        OK(pthread_mutex_unlock(&g->mutex));
        w->n[0]++;
    }
}

static void mutex_starvation(struct run *run) {
    static const enum mutex_kind kinds[] = {MUTEX_NORMAL, MUTEX_RECURSIVE, MUTEX_ADAPTIVE};
    uint64_t ops = run->ops / 3;
    for (unsigned k = 0; k < 3; k++) {
        struct greed g = {.over = false};
        uint64_t sums[4];
        mutex_make(&g.mutex, kinds[k]);
        run->ops = ops * run->threads; /* the patient one's share is ops */
        team_whole(run, run->threads, greed_body, &g, sums);
        OK(pthread_mutex_destroy(&g.mutex));
        torture_note("the patient thread: %llu turns among %llu of others, longest wait %llu us",
                     (unsigned long long)ops + 1, (unsigned long long)sums[0], (unsigned long long)sums[1]);
    }
}

const struct torture mutex_tortures[] = {
    {"mutex-exclusion", "one owner at a time, errors by type", mutex_exclusion, 6, 60000, 0},
    {"mutex-oversubscribed", "one owner at a time, more threads than cores", mutex_exclusion, 64, 20000, 0},
    {"mutex-nested", "one owner at a time, several locks held", mutex_nested, 8, 20000, 0},
    {"mutex-rounds", "when no thread comes any more, none is left asleep", mutex_rounds, 6, 6000, 0},
    {"mutex-starvation", "a patient thread gets its turn", mutex_starvation, 5, 300, 0},
    {0},
};
