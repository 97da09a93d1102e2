/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/lot.h"

#include <string.h>
#include <sys/mman.h>

#include "core/handlers.h"
#include "switch/switch.h"
#include "wait/futex.h"

/* Enough that 1000 threads on as many objects rarely share a bucket; 32 KiB, a multiple of the page for madvise. */
#define N_BUCKETS 512

static union {
    struct sbt_bucket bucket[N_BUCKETS];
    char pages[(N_BUCKETS * sizeof(struct sbt_bucket) + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX];
} lot __attribute__((aligned(SBT_PAGE_MAX)));

void sbt_lot_start(void) {
    /* Refused on old kernels and by emulators: then the atfork handler calls sbt_lot_fork_child. */
    madvise(&lot, sizeof lot, MADV_WIPEONFORK);
}

void sbt_lot_fork_child(void) {
    memset(&lot, 0, sizeof lot);
}

static struct sbt_bucket *bucket_of(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    return &lot.bucket[h >> (64 - __builtin_ctz(N_BUCKETS))];
}

/* The order of in_lot against the lock matters to a handler on the same thread only: a compiler fence is enough. */
static void enter(void) {
    sbt_self.in_lot++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void wake_all(void);

static void leave(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.in_lot--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    while (SBT_UNLIKELY(sbt_self.overdue != 0 && sbt_self.in_lot == 0)) {
        sbt_self.overdue = 0;
        wake_all();
    }
    if (SBT_UNLIKELY(sbt_self.handlers_put_off != 0))
        sbt_handlers_catch_up();
}

struct sbt_bucket *sbt_lot_lock(const void *key) {
    struct sbt_bucket *b = bucket_of(key);
    enter();
    sbt_guard_take(&b->guard);
    return b;
}

void sbt_lot_unlock(struct sbt_bucket *b) {
    sbt_guard_drop(&b->guard);
    leave();
}

void sbt_lot_lock_pair(const void *key_a, const void *key_b, struct sbt_bucket **a, struct sbt_bucket **b) {
    *a = bucket_of(key_a);
    *b = bucket_of(key_b);
    enter();
    sbt_guard_take(&(*a < *b ? *a : *b)->guard);
    if (*a != *b)
        sbt_guard_take(&(*a < *b ? *b : *a)->guard);
}

void sbt_lot_unlock_pair(struct sbt_bucket *a, struct sbt_bucket *b) {
    sbt_guard_drop(&a->guard);
    if (a != b)
        sbt_guard_drop(&b->guard);
    leave();
}

struct sbt_bucket *sbt_lot_lock_waiter(struct sbt_waiter *w) {
    for (;;) {
        const void *key = __atomic_load_n(&w->key, __ATOMIC_RELAXED);
        struct sbt_bucket *b = sbt_lot_lock(key);
        if (__atomic_load_n(&w->key, __ATOMIC_RELAXED) == key)
            return b; /* relaxed: the key changes under this bucket's lock only */
        sbt_lot_unlock(b);
    }
}

void sbt_bucket_append(struct sbt_bucket *b, struct sbt_waiter *w, const void *key) {
    __atomic_store_n(&w->key, key, __ATOMIC_RELAXED);
    w->generation = sbt_thread_process_generation();
    w->next = NULL;
    w->prev = b->tail;
    if (b->tail != NULL)
        b->tail->next = w;
    else
        b->head = w;
    b->tail = w;
}

void sbt_bucket_remove(struct sbt_bucket *b, struct sbt_waiter *w) {
    if (SBT_UNLIKELY(w->generation != sbt_thread_process_generation()))
        return; /* forked by a signal handler during the wait: the lists were wiped */
    if (w->prev != NULL)
        w->prev->next = w->next;
    else
        b->head = w->next;
    if (w->next != NULL)
        w->next->prev = w->prev;
    else
        b->tail = w->prev;
}

static struct sbt_waiter *from(struct sbt_waiter *w, const void *key) {
    while (w != NULL && w->key != key)
        w = w->next;
    return w;
}

struct sbt_waiter *sbt_bucket_first(const struct sbt_bucket *b, const void *key) {
    return from(b->head, key);
}

struct sbt_waiter *sbt_bucket_next(const struct sbt_waiter *w, const void *key) {
    return from(w->next, key);
}

struct sbt_waiter *sbt_bucket_first_waiting(const struct sbt_bucket *b, const void *key) {
    struct sbt_waiter *w = sbt_bucket_first(b, key);
    while (w != NULL && w->inflight)
        w = sbt_bucket_next(w, key);
    return w;
}

bool sbt_bucket_any_inflight(const struct sbt_bucket *b, const void *key) {
    for (struct sbt_waiter *w = sbt_bucket_first(b, key); w != NULL; w = sbt_bucket_next(w, key))
        if (w->inflight)
            return true;
    return false;
}

bool sbt_bucket_expects(const struct sbt_bucket *b, const void *key) {
    for (struct sbt_waiter *w = sbt_bucket_first(b, key); w != NULL; w = sbt_bucket_next(w, key))
        if (w->counted_on)
            return sbt_now_ns() - w->told_ns <= SBT_OVERDUE_NS;
    return false;
}

void sbt_bucket_count_on_none(const struct sbt_bucket *b, const void *key) {
    for (struct sbt_waiter *w = sbt_bucket_first(b, key); w != NULL; w = sbt_bucket_next(w, key))
        w->counted_on = false;
}

uint32_t *sbt_waiter_tell(struct sbt_waiter *w, enum sbt_waiter_state state) {
    uint32_t *word = w->wake_word; /* now: once told it may be gone */
    if (word != NULL) {
        __atomic_store_n(&w->state, state, __ATOMIC_RELEASE);
        return word;
    }
    return __atomic_exchange_n(&w->state, state, __ATOMIC_RELEASE) == SBT_WAITER_PARKED ? &w->state : NULL;
}

uint32_t *sbt_waiter_tell_to_retry(struct sbt_waiter *w) {
    uint32_t *word = w->wake_word != NULL ? w->wake_word : &w->state;
    sbt_waiter_tell(w, SBT_WAITER_RETRY);
    return word;
}

uint32_t *sbt_waiter_word(void) {
    return sbt_context_word();
}

bool sbt_waiter_wake(uint32_t *word) {
    if (word == NULL)
        return true;
    return sbt_context_is_word(word) ? sbt_context_unpark(word) : sbt_futex_wake(word, 1) > 0;
}

void sbt_lot_wake_later(void) {
    sbt_self.overdue = 1;
}

/*
 * Tell everybody to try again. Always allowed: a mutex or rwlock waiter that finds nothing goes back to waiting, and a
 * condition may wake for no reason. Waking one by one under the lock is slow and as rare as the handlers that need it.
 */
static void wake_all(void) {
    for (struct sbt_bucket *b = lot.bucket; b < lot.bucket + N_BUCKETS; b++) {
        enter();
        sbt_guard_take(&b->guard);
        for (struct sbt_waiter *w = b->head; w != NULL; w = w->next)
            if (!w->inflight) {
                w->inflight = true;
                sbt_waiter_wake(sbt_waiter_tell(w, SBT_WAITER_RETRY));
            }
        sbt_guard_drop(&b->guard);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        sbt_self.in_lot--;
    }
}
