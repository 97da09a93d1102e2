/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that come and go: thousands over a process's life, a thousand at once, joined in every way or detached,
 * with destructors of thread-specific data that lock after the library's own thread clean-up may have run.
 */
#include "objects.h"

#include <sched.h>
#include <stdlib.h>

struct house {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct guard guard;
    unsigned present, detached_done;
    unsigned destructors; /* under mutex */
    sem_t sem;
    pthread_rwlock_t rwlock;
    struct house *before;
};

struct guest {
    struct house *house;
    struct worker name; /* for the guard; not started as a worker */
    unsigned passes;    /* of the destructor */
    bool detached, wait_for_all;
    unsigned n_all;
    atomic_bool *gate;
};

static pthread_key_t guest_key;
static struct house *left;

/* Runs in the dying thread, three times: setting the value again asks for another pass. */
static void guest_leaves(void *argument) {
    struct guest *g = argument;
    struct house *h = g->house;
    OK(pthread_mutex_lock(&h->mutex));
    guard_section(&h->guard, &g->name);
    h->destructors++;
    OK(pthread_mutex_unlock(&h->mutex));
    OK(pthread_rwlock_rdlock(&h->rwlock));
    OK(pthread_rwlock_unlock(&h->rwlock));
    OK_ERRNO(sem_post(&h->sem));
    while (sem_wait(&h->sem) != 0)
        CHECK_INT(errno, EINTR);
    if (++g->passes < 3) {
        OK(pthread_setspecific(guest_key, g));
        return;
    }
    bool detached = g->detached;
    OK(pthread_mutex_lock(&h->mutex));
    h->present--;
    h->detached_done += detached;
    OK(pthread_cond_broadcast(&h->changed));
    OK(pthread_mutex_unlock(&h->mutex));
    if (detached)
        free(g);
}

static void *guest_main(void *argument) {
    struct guest *g = argument;
    struct house *h = g->house;
    OK(pthread_setspecific(guest_key, g));
    OK(pthread_mutex_lock(&h->mutex));
    h->present++;
    guard_section(&h->guard, &g->name);
    if (g->wait_for_all) { /* a thousand at once: no thread leaves before the last has come */
        OK(pthread_cond_broadcast(&h->changed));
        while (!atomic_load_explicit(g->gate, memory_order_relaxed))
            OK(pthread_cond_wait(&h->changed, &h->mutex));
    }
    OK(pthread_mutex_unlock(&h->mutex));
    if (rng_chance(&g->name.rng, 50))
        pthread_exit(g);
    return g;
}

static struct guest *guest_new(struct house *h, struct rng *rng) {
    struct guest *g = calloc(1, sizeof *g);
    g->house = h;
    rng_seed(&g->name.rng, rng_next(rng), 0);
    return g;
}

static int create(pthread_t *id, struct guest *g) {
    pthread_attr_t attr;
    thread_attr_small(&attr);
    if (g->detached)
        OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    int error = pthread_create(id, &attr, guest_main, g);
    pthread_attr_destroy(&attr);
    return error;
}

static void collect(struct rng *rng, pthread_t id, struct guest *g) {
    void *result = NULL;
    struct timespec far = time_in_ns(CLOCK_REALTIME, FAR_NS), far_mono = time_in_ns(CLOCK_MONOTONIC, FAR_NS);
    struct timespec past = {1, 0};
    int error = -1;
    AT("join, any way");
    switch (TSAN_OF_GLIBC || HAVE_TSAN ? 0 : rng_below(rng, 4)) {
    case 0:
        error = pthread_join(id, &result);
        break;
    case 1:
        error = pthread_timedjoin_np(id, &result, &past);
        CHECK(error == 0 || error == ETIMEDOUT);
        if (error == ETIMEDOUT)
            error = pthread_timedjoin_np(id, &result, &far);
        break;
    case 2:
        error = pthread_clockjoin_np(id, &result, CLOCK_MONOTONIC, &far_mono);
        break;
    case 3:
        while ((error = pthread_tryjoin_np(id, &result)) == EBUSY)
            sched_yield();
        break;
    }
    OK(error);
    CHECK(result == g);
    CHECK_INT(g->passes, 3); /* the destructors had run before join returned */
    free(g);
    DID();
}

static void house_open(struct house *h) {
    OK(pthread_mutex_init(&h->mutex, NULL));
    OK(pthread_cond_init(&h->changed, NULL));
    OK(pthread_rwlock_init(&h->rwlock, NULL));
    OK_ERRNO(sem_init(&h->sem, 0, 0));
    OK(pthread_key_create(&guest_key, guest_leaves));
}

/* Waits for the last guest; detached ones are gone only some time after their last unlock, so the house stays. */
static void house_close(struct house *h, uint64_t guests) {
    AT("waiting for the last guest");
    OK(pthread_mutex_lock(&h->mutex));
    while (h->present != 0)
        OK(pthread_cond_wait(&h->changed, &h->mutex));
    CHECK_INT(h->destructors, 3 * guests);
    CHECK_INT(h->guard.after, 4 * guests);
    OK(pthread_mutex_unlock(&h->mutex));
    OK(pthread_key_delete(guest_key));
}

/* ---- one after the other and a few at once ---- */
static void thread_churn(struct run *run) {
    struct house *h = calloc(1, sizeof *h);
    enum { WINDOW = 16 };
    pthread_t ids[WINDOW];
    struct guest *guests[WINDOW] = {NULL};
    struct rng rng;
    uint64_t made = 0, detached = 0;
    rng_seed(&rng, run->seed, 8);
    house_open(h);
    for (; made < run->ops && !run->stop; made++) {
        unsigned at = rng_below(&rng, WINDOW);
        if (guests[at] != NULL)
            collect(&rng, ids[at], guests[at]);
        guests[at] = guest_new(h, &rng);
        bool detach = rng_chance(&rng, 30);
        guests[at]->detached = detach;
        AT("create");
        OK(create(&ids[at], guests[at]));
        if (detach) {
            guests[at] = NULL;
            detached++;
            DID();
        }
        if (made % 64 == 0) { /* the detached must not pile up */
            OK(pthread_mutex_lock(&h->mutex));
            while (h->detached_done + 32 < detached)
                OK(pthread_cond_wait(&h->changed, &h->mutex));
            OK(pthread_mutex_unlock(&h->mutex));
        }
    }
    for (unsigned i = 0; i < WINDOW; i++)
        if (guests[i] != NULL)
            collect(&rng, ids[i], guests[i]);
    AT("waiting for the detached");
    OK(pthread_mutex_lock(&h->mutex));
    while (h->detached_done != detached)
        OK(pthread_cond_wait(&h->changed, &h->mutex));
    OK(pthread_mutex_unlock(&h->mutex));
    house_close(h, made);
    torture_note("%llu threads, %llu of them detached, 3 destructor passes each", (unsigned long long)made,
                 (unsigned long long)detached);
    h->before = left; /* not freed: a detached thread may still be inside its last unlock */
    left = h;
}

/* ---- a thousand at once ---- */
static void thread_thousand(struct run *run) {
    struct house *h = calloc(1, sizeof *h);
    unsigned n = run->threads, rounds = (unsigned)(run->ops / n + 1);
    pthread_t *ids = calloc(n, sizeof *ids);
    struct guest **guests = calloc(n, sizeof *guests);
    struct rng rng;
    uint64_t made = 0;
    rng_seed(&rng, run->seed, 9);
    house_open(h);
    for (unsigned round = 0; round < rounds && !run->stop; round++) {
        atomic_bool gate = false;
        AT("create a thousand");
        for (unsigned i = 0; i < n; i++, made++) {
            guests[i] = guest_new(h, &rng);
            guests[i]->wait_for_all = true;
            guests[i]->gate = &gate;
            OK(create(&ids[i], guests[i]));
            DID();
        }
        OK(pthread_mutex_lock(&h->mutex));
        while (h->present != n)
            OK(pthread_cond_wait(&h->changed, &h->mutex));
        atomic_store(&gate, true);
        OK(pthread_cond_broadcast(&h->changed));
        OK(pthread_mutex_unlock(&h->mutex));
        for (unsigned i = 0; i < n; i++)
            collect(&rng, ids[i], guests[i]);
    }
    house_close(h, made);
    free(ids);
    free(guests);
    free(h);
    torture_note("%llu threads, %u at once", (unsigned long long)made, n);
}

const struct torture churn_tortures[] = {
    {"thread-churn", "threads come and go, destructors lock", thread_churn, 16, 10000, 0},
    {"thread-thousand", "a thousand threads at once", thread_thousand, 1000, 1000, NEEDS_MANY},
    {0},
};
