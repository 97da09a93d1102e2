/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* C11: mtx_*, cnd_*, call_once and thrd_* are names of their own that must reach the same engine. */
#include "objects.h"

#include <stdlib.h>

/* A sanitizer must see every thread begin, and does not know thrd_create. */
#define THRD (!HAVE_TSAN && !HAVE_ASAN)

#define ROOM 3
struct shop {
    mtx_t plain, timed, recursive, queue_mutex;
    struct guard plain_guard, timed_guard, recursive_guard;
    cnd_t not_empty, not_full;
    unsigned n_inside;
    uint64_t in, out;
    once_flag flags[64];
    struct worker *workers;
};

static atomic_uint n_called;

static void called_once(void) {
    atomic_fetch_add_explicit(&n_called, 1, memory_order_relaxed);
}

static void shop_section(struct worker *w, struct shop *s) {
    struct timespec deadline;
    int result;
    switch (rng_below(&w->rng, 3)) {
    case 0:
        AT("mtx_lock");
        if (rng_chance(&w->rng, 30)) {
            result = mtx_trylock(&s->plain);
            CHECK(result == thrd_success || result == thrd_busy);
        } else {
            CHECK_INT(result = mtx_lock(&s->plain), thrd_success);
        }
        if (result != thrd_success)
            break;
        guard_section(&s->plain_guard, w);
        CHECK_INT(mtx_unlock(&s->plain), thrd_success);
        break;
    case 1:
        AT("mtx_timedlock");
        random_deadline(w, CLOCK_REALTIME, &deadline);
        result = mtx_timedlock(&s->timed, &deadline);
        CHECK(result == thrd_success || result == thrd_timedout);
        CHECK(result == thrd_success || time_is_past(CLOCK_REALTIME, &deadline));
        if (result != thrd_success)
            break;
        guard_section(&s->timed_guard, w);
        CHECK_INT(mtx_unlock(&s->timed), thrd_success);
        break;
    case 2:
        AT("mtx_lock, recursive");
        CHECK_INT(mtx_lock(&s->recursive), thrd_success);
        CHECK_INT(mtx_trylock(&s->recursive), thrd_success);
        guard_section(&s->recursive_guard, w);
        CHECK_INT(mtx_unlock(&s->recursive), thrd_success);
        CHECK_INT(mtx_unlock(&s->recursive), thrd_success);
        break;
    }
}

static void shop_put(struct shop *s) {
    CHECK_INT(mtx_lock(&s->queue_mutex), thrd_success);
    AT("cnd_wait");
    while (s->n_inside == ROOM)
        CHECK_INT(cnd_wait(&s->not_full, &s->queue_mutex), thrd_success);
    s->n_inside++;
    s->in++;
    CHECK_INT(cnd_signal(&s->not_empty), thrd_success);
    CHECK_INT(mtx_unlock(&s->queue_mutex), thrd_success);
}

static void shop_get(struct worker *w, struct shop *s) {
    CHECK_INT(mtx_lock(&s->queue_mutex), thrd_success);
    AT("cnd_wait or cnd_timedwait");
    while (s->n_inside == 0) {
        struct timespec soon = time_in_ns(CLOCK_REALTIME, rng_below(&w->rng, 100000));
        if (w->index % 4 != 1) {
            CHECK_INT(cnd_wait(&s->not_empty, &s->queue_mutex), thrd_success);
            continue;
        }
        int result = cnd_timedwait(&s->not_empty, &s->queue_mutex, &soon);
        CHECK(result == thrd_success || result == thrd_timedout);
        CHECK(result == thrd_success || time_is_past(CLOCK_REALTIME, &soon));
    }
    s->n_inside--;
    s->out++;
    CHECK_INT(cnd_signal(&s->not_full), thrd_success);
    CHECK_INT(mtx_unlock(&s->queue_mutex), thrd_success);
}

static int shop_main(void *argument) {
    struct worker *w = argument;
    struct shop *s = w->shared;
    uint64_t quota = w->left;
    torture_enter();
    for (uint64_t i = 0; i < quota; i++) {
        shop_section(w, s);
        if (w->index & 1)
            shop_get(w, s);
        else
            shop_put(s);
        if (i < 64)
            call_once(&s->flags[i], called_once);
        DID();
    }
    torture_leave();
    if (THRD && rng_chance(&w->rng, 50))
        thrd_exit((int)w->index);
    return (int)w->index;
}

static void *shop_pthread(void *argument) {
    return (void *)(intptr_t)shop_main(argument);
}

static void c11_shop(struct run *run) {
    struct shop *s = calloc(1, sizeof *s);
    unsigned n = run->threads & ~1u;
    thrd_t *ids = calloc(n, sizeof *ids); /* a pthread_t in glibc */
    uint64_t quota = run->ops / n + 1;
    s->workers = calloc(n, sizeof *s->workers);
    CHECK_INT(mtx_init(&s->plain, mtx_plain), thrd_success);
    CHECK_INT(mtx_init(&s->queue_mutex, mtx_plain), thrd_success);
    CHECK_INT(mtx_init(&s->timed, mtx_timed), thrd_success);
    CHECK_INT(mtx_init(&s->recursive, mtx_plain | mtx_recursive), thrd_success);
    CHECK_INT(cnd_init(&s->not_empty), thrd_success);
    CHECK_INT(cnd_init(&s->not_full), thrd_success);
    for (unsigned i = 0; i < 64; i++)
        s->flags[i] = (once_flag)ONCE_FLAG_INIT;
    atomic_store(&n_called, 0);
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &s->workers[i];
        *w = (struct worker){.index = i, .left = quota, .run = run, .shared = s};
        rng_seed(&w->rng, run->seed, i);
        if (THRD)
            CHECK_INT(thrd_create(&ids[i], shop_main, w), thrd_success);
        else
            OK(pthread_create(&ids[i], NULL, shop_pthread, w));
    }
    for (unsigned i = 0; i < n; i++) {
        int result = -1;
        void *pointer = NULL;
        AT("thrd_join");
        if (THRD) {
            CHECK_INT(thrd_join(ids[i], &result), thrd_success);
        } else {
            OK(pthread_join(ids[i], &pointer));
            result = (int)(intptr_t)pointer;
        }
        CHECK_INT(result, i);
    }
    CHECK_INT(s->in, s->out);
    CHECK_INT(s->in, quota * n / 2);
    CHECK_INT(n_called, quota < 64 ? quota : 64);
    torture_note("%llu items, %llu sections", (unsigned long long)s->out,
                 (unsigned long long)(s->plain_guard.after + s->timed_guard.after + s->recursive_guard.after));
    mtx_destroy(&s->plain);
    mtx_destroy(&s->timed);
    mtx_destroy(&s->recursive);
    mtx_destroy(&s->queue_mutex);
    cnd_destroy(&s->not_empty);
    cnd_destroy(&s->not_full);
    free(s->workers);
    free(ids);
    free(s);
}

const struct torture c11_tortures[] = {
    {"c11-shop", "mtx_, cnd_, call_once and thrd_ keep the same promises", c11_shop, 8, 20000, NEEDS_C11},
    {0},
};
