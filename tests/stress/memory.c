/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory: a million mutexes; objects that are never destroyed before their memory becomes another object, by init
 * or by a static initialiser, over whatever the last one and a poison pattern left there; objects on the stack.
 */
#include "objects.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/proc.h"

/* ---- a million ---- */
#define MILLION 1000000u
struct million {
    pthread_mutex_t *mutexes;
    uint32_t *counters; /* plain, each under its mutex */
    unsigned n_threads;
    bool sweep;
};

static void million_once(struct worker *w, struct million *m, unsigned i) {
    OK(pthread_mutex_lock(&m->mutexes[i]));
    m->counters[i]++;
    OK(pthread_mutex_unlock(&m->mutexes[i]));
    w->n[0]++;
    if (w->n[0] % 128 == 0)
        torture_did(128);
}

static void million_body(struct worker *w) {
    struct million *m = w->shared;
    AT("one of a million mutexes");
    if (m->sweep) {
        for (unsigned i = w->index; i < MILLION; i += m->n_threads)
            million_once(w, m, i);
    } else {
        while (worker_more(w)) /* a few of the mutexes are contended */
            million_once(w, m, rng_chance(&w->rng, 20) ? rng_below(&w->rng, 8) : rng_below(&w->rng, MILLION));
    }
}

static void million_mutexes(struct run *run) {
    struct million m = {.n_threads = run->threads, .sweep = true};
    uint64_t first[4], second[4], sum = 0, ops = run->ops;
    m.mutexes = calloc(MILLION, sizeof *m.mutexes); /* zero is a valid mutex */
    m.counters = calloc(MILLION, sizeof *m.counters);
    CHECK(m.mutexes != NULL && m.counters != NULL);
    team_whole(run, run->threads, million_body, &m, first);
    long before = proc_kib("VmRSS:");
    m.sweep = false;
    run->ops = ops;
    team_whole(run, run->threads, million_body, &m, second);
    long after = proc_kib("VmRSS:");
    for (unsigned i = 0; i < MILLION; i++)
        sum += m.counters[i];
    CHECK_INT(sum, first[0] + second[0]);
    if (!HAVE_TSAN && !HAVE_ASAN)
        CHECK(after <= before + 8 * 1024); /* contention on any of them costs no memory per mutex */
    free(m.mutexes);                       /* none destroyed */
    free(m.counters);
    torture_note("%llu locks, resident memory grew by %lld KiB under contention", (unsigned long long)sum,
                 (long long)(after - before));
}

/* ---- reuse ---- */
#define GROUP 4
#define USES 12

enum thing_kind { THING_MUTEX, THING_COND, THING_BARRIER, THING_RWLOCK, THING_SEM, THING_SPIN, THING_ONCE, N_THINGS };

union thing {
    struct {
        pthread_mutex_t mutex; /* also THING_COND's */
        pthread_cond_t cond;
    };
    pthread_barrier_t barrier;
    pthread_rwlock_t rwlock;
    sem_t sem;
    pthread_spinlock_t spin;
    pthread_once_t once;
};

struct group {
    struct meeting meeting;
    union thing *thing;
    enum thing_kind kind;
    enum mutex_kind mutex_kind;
    struct guard guard;
    unsigned turn;
    char *memory;
    unsigned once_count;
    uint64_t made[N_THINGS];
};

static _Thread_local struct group *my_group;

static void once_init(void) {
    my_group->once_count++;
}

static void thing_make(struct worker *w, struct group *g) {
    union thing *t = g->thing;
    bool by_static = rng_chance(&w->rng, 40); /* copied initialisers, as programs do */
    switch (g->kind) {
    case THING_COND:
        if (by_static)
            t->cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        else
            cond_make(&t->cond, CLOCK_REALTIME);
        /* fall through */
    case THING_MUTEX:
        mutex_make(&t->mutex, g->mutex_kind);
        break;
    case THING_BARRIER:
        OK(pthread_barrier_init(&t->barrier, NULL, GROUP));
        break;
    case THING_RWLOCK:
        if (by_static)
            t->rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
        else
            OK(pthread_rwlock_init(&t->rwlock, NULL));
        break;
    case THING_SEM:
        OK_ERRNO(sem_init(&t->sem, 0, 1));
        break;
    case THING_SPIN:
        OK(pthread_spin_init(&t->spin, PTHREAD_PROCESS_PRIVATE));
        break;
    case THING_ONCE:
        t->once = (pthread_once_t)PTHREAD_ONCE_INIT;
        break;
    case N_THINGS:
        break;
    }
}

static void thing_use(struct worker *w, struct group *g, unsigned use) {
    union thing *t = g->thing;
    switch (g->kind) {
    case THING_MUTEX:
        mutex_take(w, &t->mutex, g->mutex_kind);
        guard_section(&g->guard, w);
        OK(pthread_mutex_unlock(&t->mutex));
        break;
    case THING_COND:
        mutex_take(w, &t->mutex, g->mutex_kind);
        while (g->turn != use * GROUP + w->index % GROUP)
            cond_wait_any(w, &t->cond, &t->mutex, CLOCK_REALTIME, FOREVER);
        g->turn++;
        guard_section(&g->guard, w);
        OK(pthread_cond_broadcast(&t->cond));
        OK(pthread_mutex_unlock(&t->mutex));
        break;
    case THING_BARRIER:
        AT("barrier_wait");
        if (pthread_barrier_wait(&t->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            guard_section(&g->guard, w);
        pthread_barrier_wait(&t->barrier);
        break;
    case THING_RWLOCK:
        if (rng_chance(&w->rng, 50)) {
            if (rwlock_read_any(w, &t->rwlock) != 0)
                break;
            CHECK_INT(g->guard.owner, 0);
            CHECK_INT(g->guard.before, g->guard.after);
        } else {
            if (rwlock_write_any(w, &t->rwlock) != 0)
                break;
            guard_section(&g->guard, w);
        }
        OK(pthread_rwlock_unlock(&t->rwlock));
        break;
    case THING_SEM:
        while (sem_take_any(w, &t->sem, true) != 0)
            ;
        guard_section(&g->guard, w);
        OK_ERRNO(sem_post(&t->sem));
        break;
    case THING_SPIN:
        OK(pthread_spin_lock(&t->spin));
        guard_enter(&g->guard, w);
        guard_leave(&g->guard, w);
        OK(pthread_spin_unlock(&t->spin));
        break;
    case THING_ONCE:
        my_group = g;
        OK(pthread_once(&t->once, once_init));
        CHECK_INT(g->once_count, 1);
        break;
    case N_THINGS:
        break;
    }
}

/* By the leader, alone. Most objects just go; some are destroyed; some go locked or with tokens left. */
static void thing_end(struct worker *w, struct group *g) {
    union thing *t = g->thing;
    AT("end of an object");
    if (rng_chance(&w->rng, 60)) {
        if (g->kind == THING_MUTEX && !TSAN_OF_GLIBC && rng_chance(&w->rng, 30))
            OK(pthread_mutex_lock(&t->mutex)); /* its memory is reused while it is locked */
        if (g->kind == THING_SEM)
            for (unsigned i = rng_below(&w->rng, 4); i > 0; i--)
                OK_ERRNO(sem_post(&t->sem));
        return;
    }
    if (g->kind == THING_MUTEX || g->kind == THING_COND)
        OK(pthread_mutex_destroy(&t->mutex));
    if (g->kind == THING_COND)
        OK(pthread_cond_destroy(&t->cond));
    if (g->kind == THING_BARRIER)
        OK(pthread_barrier_destroy(&t->barrier));
    if (g->kind == THING_RWLOCK)
        OK(pthread_rwlock_destroy(&t->rwlock));
    if (g->kind == THING_SEM)
        OK_ERRNO(sem_destroy(&t->sem));
    if (g->kind == THING_SPIN)
        OK(pthread_spin_destroy(&t->spin));
}

static void one_life(struct worker *w, struct group *g, bool leader) {
    meeting_wait(&g->meeting);
    for (unsigned use = 0; use < USES; use++) {
        thing_use(w, g, use);
        DID();
    }
    meeting_wait(&g->meeting);
    if (leader)
        thing_end(w, g);
}

static void reuse_body(struct worker *w) {
    struct group *g = (struct group *)w->shared + w->index / GROUP;
    static const unsigned char patterns[] = {0x00, 0xff, 0xa5, 0x5a, 0x01, 0x80};
    uint64_t lives = w->left / USES + 1;
    bool leader = w->index % GROUP == 0;
    for (uint64_t life = 0; life < lives; life++) {
        union {
            union thing thing;
            char bytes[2 * sizeof(union thing)];
        } frame;
        if (leader) {
            bool poison = rng_chance(&w->rng, 50);
            unsigned offset = 8 * rng_below(&w->rng, sizeof(union thing) / 8);
            if (g->memory != NULL && rng_chance(&w->rng, 20)) {
                free(g->memory);
                g->memory = NULL;
            }
            if (g->memory == NULL) {
                g->memory = malloc(2 * sizeof(union thing));
                poison = true;
            }
            char *place = rng_chance(&w->rng, 25) ? frame.bytes : g->memory;
            if (poison || place == frame.bytes)
                memset(place, patterns[rng_below(&w->rng, sizeof patterns)], 2 * sizeof(union thing));
            g->thing = (union thing *)(void *)(place + offset);
            g->kind = (enum thing_kind)rng_below(&w->rng, N_THINGS);
            g->mutex_kind = (enum mutex_kind)rng_below(&w->rng, N_OUR_MUTEX_KINDS);
            g->guard = (struct guard){0};
            g->turn = 0;
            g->once_count = 0;
            g->made[g->kind]++;
            thing_make(w, g);
        }
        one_life(w, g, leader);
    }
}

static void memory_reuse(struct run *run) {
    unsigned n_groups = (run->threads + GROUP - 1) / GROUP;
    struct group *groups = calloc(n_groups, sizeof *groups);
    uint64_t made[N_THINGS] = {0};
    for (unsigned i = 0; i < n_groups; i++)
        meeting_init(&groups[i].meeting, GROUP);
    team_whole(run, n_groups * GROUP, reuse_body, groups, NULL);
    for (unsigned i = 0; i < n_groups; i++) {
        free(groups[i].memory);
        for (unsigned k = 0; k < N_THINGS; k++)
            made[k] += groups[i].made[k];
    }
    free(groups);
    torture_note("objects in reused memory: %llu mutexes, %llu conditions, %llu barriers, %llu rwlocks, "
                 "%llu semaphores, %llu spin locks, %llu onces",
                 (unsigned long long)made[0], (unsigned long long)made[1], (unsigned long long)made[2],
                 (unsigned long long)made[3], (unsigned long long)made[4], (unsigned long long)made[5],
                 (unsigned long long)made[6]);
}

const struct torture memory_tortures[] = {
    {"million-mutexes", "a million mutexes, no memory per contended one", million_mutexes, 4, 200000, NEEDS_MANY},
    {"memory-reuse", "memory becomes another object, destroyed or not", memory_reuse, 12, 60000, 0},
    {0},
};
