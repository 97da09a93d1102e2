/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A last user may free: a thread that knows it is the last user of an object destroys it and unmaps its page although
 * other threads have not yet returned from their unlock, post or wait. A library that touches the object after it gave
 * it up crashes here, or corrupts the next object at that address.
 */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

/* ---- reference count under the object's own lock ---- */
#define GROUP 4
struct counted {
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
    };
    unsigned refs;
    struct guard guard;
};

struct slot_of_group {
    struct meeting meeting;
    struct counted *object;
    enum mutex_kind kind;
};

static void counted_mutex(struct worker *w, struct counted *c, enum mutex_kind kind) {
    mutex_take(w, &c->mutex, kind);
    guard_section(&c->guard, w);
    bool last = --c->refs == 0;
    AT("unlock, then perhaps gone");
    OK(pthread_mutex_unlock(&c->mutex));
    if (!last)
        return;
    if (rng_chance(&w->rng, 50))
        OK(pthread_mutex_destroy(&c->mutex));
    page_unmap(c, &w->rng);
    w->n[0]++;
}

static void counted_rwlock(struct worker *w, struct counted *c) {
    if (rng_chance(&w->rng, 50) && rwlock_read_any(w, &c->rwlock) == 0) {
        CHECK_INT(c->guard.owner, 0);
        OK(pthread_rwlock_unlock(&c->rwlock));
    }
    while (rwlock_write_any(w, &c->rwlock) != 0)
        ;
    guard_section(&c->guard, w);
    bool last = --c->refs == 0;
    AT("unlock, then perhaps gone");
    OK(pthread_rwlock_unlock(&c->rwlock));
    if (!last)
        return;
    if (rng_chance(&w->rng, 50))
        OK(pthread_rwlock_destroy(&c->rwlock));
    page_unmap(c, &w->rng);
    w->n[0]++;
}

static void counted_rounds(struct worker *w, bool rwlock) {
    struct slot_of_group *g = (struct slot_of_group *)w->shared + w->index / GROUP;
    uint64_t rounds = w->left;
    for (uint64_t i = 0; i < rounds; i++) {
        if (w->index % GROUP == 0) {
            g->object = page_map();
            g->object->refs = GROUP;
            if (rwlock) {
                OK(pthread_rwlock_init(&g->object->rwlock, NULL));
            } else { /* process-shared too: glibc's own unlock must pass through as safely */
                g->kind = (enum mutex_kind)rng_below(&w->rng, N_OUR_MUTEX_KINDS + GLIBC_KINDS);
                mutex_make(&g->object->mutex, g->kind);
            }
        }
        meeting_wait(&g->meeting);
        struct counted *c = g->object;
        enum mutex_kind kind = g->kind;
        if (rwlock)
            counted_rwlock(w, c);
        else
            counted_mutex(w, c, kind);
        meeting_wait(&g->meeting); /* all have returned: g may change */
        DID();
    }
}

static void counted_mutex_body(struct worker *w) {
    counted_rounds(w, false);
}

static void counted_rwlock_body(struct worker *w) {
    counted_rounds(w, true);
}

static void counted_run(struct run *run, void (*body)(struct worker *)) {
    unsigned n_groups = (run->threads + GROUP - 1) / GROUP;
    struct slot_of_group *groups = calloc(n_groups, sizeof *groups);
    uint64_t sums[4];
    for (unsigned i = 0; i < n_groups; i++)
        meeting_init(&groups[i].meeting, GROUP);
    team_whole(run, n_groups * GROUP, body, groups, sums);
    free(groups);
    pages_flush();
    torture_note("%llu objects unmapped by their last user", (unsigned long long)sums[0]);
}

static void release_mutex(struct run *run) {
    counted_run(run, counted_mutex_body);
}

static void release_rwlock(struct run *run) {
    counted_run(run, counted_rwlock_body);
}

/* ---- semaphore and completion: the waiter frees as soon as it may return ---- */
struct completion {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
    sem_t sem;
};

struct errand {
    _Atomic(struct completion *) next; /* from the waiter to the doer */
    atomic_uint waiters_left;
    bool sem;
};

static void complete(struct worker *w, struct completion *c, bool sem) {
    if (rng_chance(&w->rng, 50))
        busy(rng_below(&w->rng, 2000));
    if (sem) {
        AT("sem_post, then gone");
        OK_ERRNO(sem_post(&c->sem));
        return;
    }
    OK(pthread_mutex_lock(&c->mutex));
    c->done = true;
    if (rng_chance(&w->rng, 50))
        OK(pthread_cond_signal(&c->cond));
    else
        OK(pthread_cond_broadcast(&c->cond));
    AT("unlock, then gone");
    OK(pthread_mutex_unlock(&c->mutex));
}

static void await(struct worker *w, struct completion *c, bool sem) {
    if (sem) {
        sem_take(w, &c->sem);
        if (rng_chance(&w->rng, 50))
            OK_ERRNO(sem_destroy(&c->sem));
        return;
    }
    OK(pthread_mutex_lock(&c->mutex));
    while (!c->done)
        cond_wait_any(w, &c->cond, &c->mutex, CLOCK_REALTIME, rng_chance(&w->rng, 30) ? ANY : FOREVER);
    OK(pthread_mutex_unlock(&c->mutex));
    if (rng_chance(&w->rng, 70)) {
        OK(pthread_cond_destroy(&c->cond));
        OK(pthread_mutex_destroy(&c->mutex));
    }
}

static void prepare(struct completion *c, bool sem) {
    c->done = false;
    if (sem) {
        OK_ERRNO(sem_init(&c->sem, 0, 0));
    } else {
        OK(pthread_mutex_init(&c->mutex, NULL));
        cond_make(&c->cond, CLOCK_REALTIME);
    }
}

static void hand_over(struct errand *e, struct completion *c) {
    struct completion *none = NULL;
    while (!atomic_compare_exchange_weak_explicit(&e->next, &none, c, memory_order_release, memory_order_relaxed)) {
        none = NULL;
        rest_ns(1000);
    }
}

/* On the stack: the frame is overwritten as soon as the wait is over. */
static __attribute__((noinline)) void errand_on_stack(struct worker *w, struct errand *e) {
    struct completion c;
    memset(&c, (int)rng_below(&w->rng, 256), sizeof c);
    prepare(&c, e->sem);
    hand_over(e, &c);
    await(w, &c, e->sem);
    memset(&c, (int)rng_below(&w->rng, 256), sizeof c);
    __asm__ volatile("" : : "r"(&c) : "memory");
}

static void errand_on_page(struct worker *w, struct errand *e) {
    struct completion *c = page_map();
    prepare(c, e->sem);
    hand_over(e, c);
    await(w, c, e->sem);
    page_unmap(c, &w->rng);
}

static void errand_body(struct worker *w) {
    struct errand *e = w->shared;
    uint64_t rounds = w->left;
    if (w->index & 1) { /* waiters odd, doers even */
        for (uint64_t i = 0; i < rounds; i++) {
            if (rng_chance(&w->rng, 50))
                errand_on_page(w, e);
            else
                errand_on_stack(w, e);
            w->n[0]++;
            DID();
        }
        atomic_fetch_sub_explicit(&e->waiters_left, 1, memory_order_relaxed);
        return;
    }
    while (atomic_load_explicit(&e->waiters_left, memory_order_relaxed) != 0) {
        struct completion *c = atomic_exchange_explicit(&e->next, NULL, memory_order_acquire);
        if (c != NULL)
            complete(w, c, e->sem);
        else
            rest_ns(1000);
    }
}

static void errand_run(struct run *run, bool sem) {
    struct errand e = {.sem = sem, .waiters_left = run->threads / 2};
    uint64_t sums[4];
    team_whole(run, run->threads & ~1u, errand_body, &e, sums);
    pages_flush();
    torture_note("%llu objects unmapped or overwritten by their waiter", (unsigned long long)sums[0]);
}

static void release_sem(struct run *run) {
    errand_run(run, true);
}

static void release_cond(struct run *run) {
    errand_run(run, false);
}

/* ---- the example of pthread_cond_destroy in POSIX: destroyed right after the broadcast ---- */
#define N_KEYS 4
struct element {
    pthread_cond_t not_busy;
    bool busy;
};

struct list {
    pthread_mutex_t mutex;
    struct element *elements[N_KEYS];
};

/* Marks the element busy for the caller, or NULL if there is none (any more). After a wait nothing of the old element
 * may be touched: it is looked up again. */
static struct element *acquire(struct worker *w, struct list *list, unsigned key) {
    OK(pthread_mutex_lock(&list->mutex));
    for (;;) {
        struct element *e = list->elements[key];
        if (e == NULL) {
            OK(pthread_mutex_unlock(&list->mutex));
            return NULL;
        }
        if (!e->busy) {
            e->busy = true;
            OK(pthread_mutex_unlock(&list->mutex));
            return e;
        }
        cond_wait_any(w, &e->not_busy, &list->mutex, CLOCK_MONOTONIC, rng_chance(&w->rng, 20) ? ANY : FOREVER);
    }
}

static void list_body(struct worker *w) {
    struct list *list = w->shared;
    while (worker_more(w)) {
        unsigned key = rng_below(&w->rng, N_KEYS);
        struct element *e = acquire(w, list, key);
        if (e == NULL) {
            OK(pthread_mutex_lock(&list->mutex));
            if (list->elements[key] == NULL) {
                list->elements[key] = page_map();
                cond_make(&list->elements[key]->not_busy, CLOCK_MONOTONIC);
            }
            OK(pthread_mutex_unlock(&list->mutex));
        } else {
            think(w);
            OK(pthread_mutex_lock(&list->mutex));
            CHECK(e->busy && list->elements[key] == e);
            if (rng_chance(&w->rng, 40)) {
                list->elements[key] = NULL;
                AT("broadcast, destroy");
                OK(pthread_cond_broadcast(&e->not_busy));
                OK(pthread_mutex_unlock(&list->mutex));
                OK(pthread_cond_destroy(&e->not_busy));
                page_unmap(e, &w->rng);
                w->n[0]++;
            } else {
                e->busy = false;
                AT("signal");
                OK(pthread_cond_signal(&e->not_busy));
                OK(pthread_mutex_unlock(&list->mutex));
            }
        }
        DID();
    }
}

static void release_list(struct run *run) {
    struct list list = {0};
    uint64_t sums[4];
    struct rng rng;
    rng_seed(&rng, run->seed, 10);
    OK(pthread_mutex_init(&list.mutex, NULL));
    team_whole(run, run->threads, list_body, &list, sums);
    for (unsigned i = 0; i < N_KEYS; i++)
        if (list.elements[i] != NULL)
            page_unmap(list.elements[i], &rng);
    pages_flush();
    OK(pthread_mutex_destroy(&list.mutex));
    torture_note("%llu conditions destroyed and unmapped after their broadcast", (unsigned long long)sums[0]);
}

const struct torture release_tortures[] = {
    {"release-mutex", "the last owner unmaps the mutex", release_mutex, 8, 16000, 0},
    {"release-rwlock", "the last writer unmaps the rwlock", release_rwlock, 8, 12000, 0},
    {"release-sem", "the waiter unmaps the semaphore", release_sem, 8, 16000, 0},
    {"release-cond", "the waiter unmaps mutex and condition", release_cond, 8, 12000, 0},
    {"release-list", "a condition destroyed right after its broadcast", release_list, 8, 12000, 0},
    {0},
};
