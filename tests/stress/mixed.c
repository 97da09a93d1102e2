/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything at once: 64 threads on a shared pool of all objects, each operation chosen at random; then the same
 * under a storm of signals: their handlers post a semaphore.
 */
#include "objects.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define N_MUTEXES (2 * N_MUTEX_KINDS)
#define N_RWLOCKS 4
#define N_SEMS 3
#define N_SPINS 2
#define N_STORES 4
#define N_ONCES 4096
#define N_BARRIER 3 /* threads 0 to 2 also meet at a barrier */

struct store { /* tokens that any thread leaves and takes */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    clockid_t clock;
    uint64_t in, out, inside;
};

static struct pool {
    struct {
        pthread_mutex_t mutex;
        enum mutex_kind kind;
        struct guard guard;
    } mutexes[N_MUTEXES];
    struct {
        pthread_rwlock_t lock;
        struct guard guard;
    } rwlocks[N_RWLOCKS];
    struct {
        sem_t sem;
        int value;
        atomic_int holders;
    } sems[N_SEMS];
    struct {
        pthread_spinlock_t lock;
        struct guard guard;
    } spins[N_SPINS];
    struct store stores[N_STORES];
    pthread_once_t onces[N_ONCES];
    unsigned once_values[N_ONCES];
    atomic_uint next_once, n_finished;
    pthread_barrier_t barrier;
    uint64_t phase[N_BARRIER];
    sem_t bell;
    atomic_ullong posted, taken;
    atomic_ullong n_signals;
} * pool;

static _Thread_local unsigned once_at;

static void once_run(void) {
    pool->once_values[once_at]++;
}

/* ---- one operation each ---- */
static void do_mutex(struct worker *w) {
    unsigned i = rng_below(&w->rng, N_MUTEXES), j = i + 1 + rng_below(&w->rng, N_MUTEXES);
    if (mutex_try_any(w, &pool->mutexes[i].mutex, pool->mutexes[i].kind) != 0)
        return;
    guard_enter(&pool->mutexes[i].guard, w);
    if (j < N_MUTEXES && mutex_try_any(w, &pool->mutexes[j].mutex, pool->mutexes[j].kind) == 0) { /* i < j: no cycle */
        guard_section(&pool->mutexes[j].guard, w);
        OK(pthread_mutex_unlock(&pool->mutexes[j].mutex));
    }
    guard_leave(&pool->mutexes[i].guard, w);
    AT("mutex_unlock");
    OK(pthread_mutex_unlock(&pool->mutexes[i].mutex));
}

static void do_rwlock(struct worker *w) {
    unsigned i = rng_below(&w->rng, N_RWLOCKS);
    if (rng_chance(&w->rng, 70)) {
        if (rwlock_read_any(w, &pool->rwlocks[i].lock) != 0)
            return;
        uint64_t before = pool->rwlocks[i].guard.before;
        think_cs(w);
        CHECK_INT(pool->rwlocks[i].guard.owner, 0);
        CHECK_INT(pool->rwlocks[i].guard.after, before);
    } else {
        if (rwlock_write_any(w, &pool->rwlocks[i].lock) != 0)
            return;
        guard_section(&pool->rwlocks[i].guard, w);
    }
    AT("rwlock_unlock");
    OK(pthread_rwlock_unlock(&pool->rwlocks[i].lock));
}

static void do_sem(struct worker *w) {
    unsigned i = rng_below(&w->rng, N_SEMS);
    if (sem_take_any(w, &pool->sems[i].sem, true) != 0)
        return;
    CHECK(atomic_fetch_add_explicit(&pool->sems[i].holders, 1, memory_order_relaxed) < pool->sems[i].value);
    think_cs(w);
    atomic_fetch_sub_explicit(&pool->sems[i].holders, 1, memory_order_relaxed);
    AT("sem_post");
    OK_ERRNO(sem_post(&pool->sems[i].sem));
}

static void do_spin(struct worker *w) {
    unsigned i = rng_below(&w->rng, N_SPINS);
    AT("spin_lock");
    if (rng_chance(&w->rng, 50) || pthread_spin_trylock(&pool->spins[i].lock) != 0)
        OK(pthread_spin_lock(&pool->spins[i].lock));
    guard_enter(&pool->spins[i].guard, w);
    guard_leave(&pool->spins[i].guard, w);
    OK(pthread_spin_unlock(&pool->spins[i].lock));
}

static void do_store(struct worker *w) {
    struct store *s = &pool->stores[rng_below(&w->rng, N_STORES)];
    OK(pthread_mutex_lock(&s->mutex));
    if (rng_chance(&w->rng, 55)) {
        s->in++;
        s->inside++;
        bool inside = rng_chance(&w->rng, 50);
        if (inside)
            OK(pthread_cond_signal(&s->cond));
        OK(pthread_mutex_unlock(&s->mutex));
        AT("cond_signal");
        if (!inside)
            OK(pthread_cond_signal(&s->cond));
        return;
    }
    for (unsigned tries = 0; s->inside == 0 && tries < 3; tries++)
        cond_wait_any(w, &s->cond, &s->mutex, s->clock, BRIEF);
    if (s->inside > 0) {
        s->inside--;
        s->out++;
    }
    OK(pthread_mutex_unlock(&s->mutex));
}

static void do_once(struct worker *w) {
    unsigned newest = atomic_load_explicit(&pool->next_once, memory_order_relaxed);
    if (newest + 1 < N_ONCES && rng_chance(&w->rng, 20))
        atomic_compare_exchange_strong_explicit(&pool->next_once, &newest, newest + 1, memory_order_relaxed,
                                                memory_order_relaxed);
    once_at = newest;
    AT("once");
    OK(pthread_once(&pool->onces[once_at], once_run));
    CHECK_INT(pool->once_values[newest], 1);
}

static void *short_life(void *argument) {
    struct worker *w = argument; /* the creator waits in join: its numbers may be used */
    struct worker name = {.rng = {rng_next(&w->rng)}};
    torture_enter();
    for (unsigned i = 0; i < 3; i++) {
        do_mutex(&name);
        do_rwlock(&name);
    }
    torture_leave();
    return &pool;
}

static void do_thread(struct worker *w) {
    pthread_attr_t attr;
    pthread_t id;
    void *result = NULL;
    thread_attr_small(&attr);
    AT("create");
    OK(pthread_create(&id, &attr, short_life, w));
    AT("join");
    OK(pthread_join(id, &result));
    CHECK(result == &pool);
    OK(pthread_attr_destroy(&attr));
}

static void do_bell(struct worker *w) {
    if (sem_take_any(w, &pool->bell, true) == 0)
        atomic_fetch_add_explicit(&pool->taken, 1, memory_order_relaxed);
}

static void mixed_body(struct worker *w) {
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        unsigned r = rng_below(&w->rng, 200);
        if (w->index < N_BARRIER && i % 8 == 0) {
            pool->phase[w->index] = i;
            AT("barrier");
            pthread_barrier_wait(&pool->barrier);
            for (unsigned k = 0; k < N_BARRIER; k++)
                CHECK_INT(pool->phase[k], i);
            pthread_barrier_wait(&pool->barrier);
        }
        if (r == 0)
            do_thread(w);
        else if (r < 70)
            do_mutex(w);
        else if (r < 110)
            do_store(w);
        else if (r < 140)
            do_rwlock(w);
        else if (r < 165)
            do_sem(w);
        else if (r < 175)
            do_spin(w);
        else if (r < 185)
            do_once(w);
        else
            think(w);
        if (i % 16 == 0) {
            OK_ERRNO(sem_post(&pool->bell));
            atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
            do_bell(w);
        }
        DID();
    }
    atomic_fetch_add_explicit(&pool->n_finished, 1, memory_order_relaxed);
}

/* ---- the pool ---- */
static void pool_make(void) {
    pool = calloc(1, sizeof *pool);
    for (unsigned i = 0; i < N_MUTEXES; i++) {
        pool->mutexes[i].kind = (enum mutex_kind)(i % N_MUTEX_KINDS);
        mutex_make(&pool->mutexes[i].mutex, pool->mutexes[i].kind);
    }
    for (unsigned i = 0; i < N_RWLOCKS; i++)
        OK(pthread_rwlock_init(&pool->rwlocks[i].lock, NULL));
    for (unsigned i = 0; i < N_SEMS; i++) {
        pool->sems[i].value = 1 + 2 * (int)i;
        OK_ERRNO(sem_init(&pool->sems[i].sem, 0, (unsigned)pool->sems[i].value));
    }
    for (unsigned i = 0; i < N_SPINS; i++)
        OK(pthread_spin_init(&pool->spins[i].lock, PTHREAD_PROCESS_PRIVATE));
    for (unsigned i = 0; i < N_STORES; i++) {
        pool->stores[i].clock = i & 1 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        OK(pthread_mutex_init(&pool->stores[i].mutex, NULL));
        cond_make(&pool->stores[i].cond, pool->stores[i].clock);
    }
    for (unsigned i = 0; i < N_ONCES; i++)
        pool->onces[i] = (pthread_once_t)PTHREAD_ONCE_INIT;
    OK(pthread_barrier_init(&pool->barrier, NULL, N_BARRIER));
    OK_ERRNO(sem_init(&pool->bell, 0, 0));
}

static void pool_check(void) {
    uint64_t sections = 0, tokens = 0;
    int value = -1;
    for (unsigned i = 0; i < N_MUTEXES; i++) {
        OK(pthread_mutex_trylock(&pool->mutexes[i].mutex));
        CHECK_INT(pool->mutexes[i].guard.before, pool->mutexes[i].guard.after);
        sections += pool->mutexes[i].guard.after;
        OK(pthread_mutex_unlock(&pool->mutexes[i].mutex));
        OK(pthread_mutex_destroy(&pool->mutexes[i].mutex));
    }
    for (unsigned i = 0; i < N_RWLOCKS; i++) {
        OK(pthread_rwlock_trywrlock(&pool->rwlocks[i].lock));
        OK(pthread_rwlock_unlock(&pool->rwlocks[i].lock));
        OK(pthread_rwlock_destroy(&pool->rwlocks[i].lock));
    }
    for (unsigned i = 0; i < N_SEMS; i++) {
        OK_ERRNO(sem_getvalue(&pool->sems[i].sem, &value));
        CHECK_INT(value, pool->sems[i].value);
        OK_ERRNO(sem_destroy(&pool->sems[i].sem));
    }
    for (unsigned i = 0; i < N_STORES; i++) {
        CHECK_INT(pool->stores[i].in, pool->stores[i].out + pool->stores[i].inside);
        tokens += pool->stores[i].in;
        OK(pthread_cond_destroy(&pool->stores[i].cond));
        OK(pthread_mutex_destroy(&pool->stores[i].mutex));
    }
    OK_ERRNO(sem_getvalue(&pool->bell, &value));
    CHECK_INT(pool->taken + (unsigned)value, pool->posted);
    OK(pthread_barrier_destroy(&pool->barrier));
    torture_note("%llu sections, %llu tokens, %llu posts, %u onces, %llu signals", (unsigned long long)sections,
                 (unsigned long long)tokens, (unsigned long long)pool->posted, pool->next_once + 1,
                 (unsigned long long)pool->n_signals);
    free(pool);
}

static void mixed(struct run *run) {
    pool_make();
    team_whole(run, run->threads < N_BARRIER ? N_BARRIER : run->threads, mixed_body, NULL, NULL);
    pool_check();
}

/* ---- the same in a storm ---- */
static void in_storm(int number) {
    int before = errno;
    uint64_t n = atomic_fetch_add_explicit(&pool->n_signals, 1, memory_order_relaxed);
    if (number == SIGUSR2 || n % 4 == 0) {
        if (sem_post(&pool->bell) == 0)
            atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
    }
    errno = before;
}

static void signal_storm(struct run *run) {
    struct sigaction action = {.sa_handler = in_storm}, saved[2];
    struct team team;
    struct rng rng;
    rng_seed(&rng, run->seed, 11);
    pool_make();
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR2, &action, &saved[1]); /* interrupts */
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &saved[0]);
    team_start(&team, run, run->threads < N_BARRIER ? N_BARRIER : run->threads, mixed_body, NULL);
    while (atomic_load_explicit(&pool->n_finished, memory_order_relaxed) < team.n) {
        unsigned burst = 1 + rng_below(&rng, 20);
        for (unsigned i = 0; i < burst; i++)
            OK(pthread_kill(team.workers[rng_below(&rng, team.n)].id, rng_chance(&rng, 70) ? SIGUSR1 : SIGUSR2));
        sleep_ns(rng_below(&rng, 200000));
    }
    team_join(&team);
    team_free(&team);
    sigaction(SIGUSR1, &saved[0], NULL);
    sigaction(SIGUSR2, &saved[1], NULL);
    pool_check();
}

const struct torture mixed_tortures[] = {
    {"mixed", "64 threads on everything", mixed, 64, 60000, 0},
    {"mixed-few", "4 threads on everything", mixed, 4, 40000, 0},
    {"signal-storm", "everything, with signals that post", signal_storm, 16, 40000, NEEDS_SIGNALS},
    {0},
};
