/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parking lot's buckets and queues, for the two files that it is made of: parking_lot.c, which wakes, and
 * parking.c, which waits. Every wait and wake-up passes here, so what is short is inline.
 */
#ifndef SBT_WAIT_LOT_BUCKET_H
#define SBT_WAIT_LOT_BUCKET_H

#include "core/handlers.h"
#include "os/fork.h"
#include "os/lock.h"
#include "wait/parking_lot.h"

/* Enough that 1000 threads on as many objects rarely share a bucket; 32 KiB, a multiple of the page for madvise. */
#define SBT_LOT_BUCKETS 512

union sbt_lot_memory {
    struct sbt_bucket bucket[SBT_LOT_BUCKETS];
    char pages[(SBT_LOT_BUCKETS * sizeof(struct sbt_bucket) + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX];
};
extern union sbt_lot_memory sbt_lot SBT_HIDDEN;

/* The thread has left the lot: wake what its handlers could not. */
void sbt_lot_pay_wakeups(void);

/* Bucket locked. Behind all waiters of that priority, before lower ones. */
void sbt_lot_insert_by_priority(struct sbt_bucket *b, struct sbt_waiter *w);

/* Bucket locked. Make it the designated waker; NULL: none. */
void sbt_lot_designate(struct sbt_lot_queue *q, struct sbt_waiter *w);

/* Unlock, and wake the waiters by address: the object may be gone. */
void sbt_lot_unlock_and_wake(struct sbt_lot_queue *q);

/* A handler of the program is about to run on the waiter's own thread, which others may rely on. */
void sbt_lot_interrupt(struct sbt_waiter *w, int signal);

static inline struct sbt_bucket *sbt_lot_bucket(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    return &sbt_lot.bucket[h >> (64 - __builtin_ctz(SBT_LOT_BUCKETS))];
}

/* The order of in_lot against the lock matters to a handler on the same thread only: a compiler fence is enough. */
static inline void sbt_lot_enter(void) {
    sbt_self.in_lot++;
    sbt_handlers_hold();
}

/* Handlers stay deferred. */
static inline void sbt_lot_leave_early(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.in_lot--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_self.owes_wakeups != 0))
        sbt_lot_pay_wakeups();
}

static inline void sbt_lot_leave(void) {
    sbt_lot_leave_early();
    sbt_handlers_release();
}

static inline void sbt_lot_lock(struct sbt_bucket *b) {
    sbt_lot_enter();
    sbt_lock_take(&b->lock);
}

static inline void sbt_lot_unlock(struct sbt_bucket *b) {
    sbt_lock_drop(&b->lock);
    sbt_lot_leave();
}

/* Field by field: `word` need not be cleared. */
static inline void sbt_lot_begin(struct sbt_lot_queue *q, const void *key, sbt_lot_choose *after) {
    q->key = key;
    q->bucket = sbt_lot_bucket(key);
    q->after = after;
    q->notified = q->here = NULL;
    q->has_fibers = false;
    q->n_words = 0;
}

static inline void sbt_lot_lock_key(struct sbt_lot_queue *q, const void *key, sbt_lot_choose *after) {
    sbt_lot_begin(q, key, after);
    sbt_lot_lock(q->bucket);
}

/* Behind `before`; NULL: as the first. */
static inline void sbt_lot_insert(struct sbt_bucket *b, struct sbt_waiter *w, struct sbt_waiter *before,
                                  struct sbt_waiter *behind) {
    w->prev = before;
    w->next = behind;
    /* sbt_lot_is_empty reads the head without the lock */
    __atomic_store_n(before != NULL ? &before->next : &b->head, w, __ATOMIC_RELAXED);
    *(behind != NULL ? &behind->prev : &b->tail) = w;
}

static inline void sbt_lot_append(struct sbt_bucket *b, struct sbt_waiter *w, const void *key) {
    __atomic_store_n(&w->key, key, __ATOMIC_RELAXED);
    w->generation = sbt_fork_generation();
    w->queued = true;
    if (SBT_LIKELY(w->priority == 0))
        sbt_lot_insert(b, w, b->tail, NULL);
    else
        sbt_lot_insert_by_priority(b, w);
}

static inline void sbt_lot_take_out(struct sbt_bucket *b, struct sbt_waiter *w) {
    w->queued = false;
    if (SBT_UNLIKELY(w->generation != sbt_fork_generation()))
        return; /* a signal handler has forked during the wait: the lists were wiped */
    if (w->prev != NULL)
        w->prev->next = w->next;
    else
        __atomic_store_n(&b->head, w->next, __ATOMIC_RELAXED);
    if (w->next != NULL)
        w->next->prev = w->prev;
    else
        b->tail = w->prev;
}

#endif
