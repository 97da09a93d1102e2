/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-write locks: what is decided under the lock of the bucket, where the queue stands still. Which waiters are let
 * in, when a hand-over is taken back, and whether a waiter that is about to sleep has the lock. Why: rwlock.c.
 */
#include "engine/direct/rwlock_queue.h"

#include "engine/direct/policy.h"

/* ---- which waiters are let in ---- */

static struct direct_rw_waiters count(const struct sbt_lot_queue *q, uint64_t now_ns) {
    struct direct_rw_waiters n = {0};
    for (struct sbt_waiter *w = sbt_lot_first(q); w != NULL; w = sbt_lot_next(q, w)) {
        n.total++;
        n.one_comes = n.one_comes || (w->designated && !direct_policy_is_overdue(now_ns, w->notified_ns));
        if (direct_rwlock_is_writing(w->role)) {
            n.writers++;
            n.writer = n.writer != NULL || w->inflight ? n.writer : w;
        } else if (!w->inflight) {
            n.readers_waiting++;
        }
    }
    return n;
}

/* The lock, already counted in the state, goes to every queued reader that is not inflight. */
static void grant_readers(struct sbt_lot_queue *q) {
    for (struct sbt_waiter *w = sbt_lot_first(q), *next; w != NULL; w = next) {
        next = sbt_lot_next(q, w);
        if (!w->inflight && !direct_rwlock_is_writing(w->role))
            sbt_lot_grant(q, w);
    }
}

/*
 * Give up `hold` (WRITER, or 0), let in the waiters that can go in now, and set the flags for the waiters that are
 * left. After the compare-and-swap only waiters that are still queued are touched, not the lock. Returns the writer to
 * notify. `relies`: a writer that has been notified before is relied on to look.
 */
static struct sbt_waiter *let_in(struct sbt_lot_queue *q, uint32_t hold, bool relies) {
    struct sbt_rwlock *lx = direct_rwlock_of(q->key);
    uint64_t now = sbt_now_ns();
    struct direct_rw_waiters n = count(q, now);
    struct direct_rw_change c;
    if (hold == 0 && n.total == 0) /* the lock may be gone, and needs nothing */
        return NULL;
    __atomic_store_n(&lx->looked_us, (uint32_t)(now / 1000), __ATOMIC_RELAXED);
    n.one_comes = n.one_comes && relies;
    n.hands_over = n.writer != NULL && direct_policy_hands_over_to_writer(now, n.writer->since_ns, lx->handed_us);
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    do {
        c = direct_policy_let_in(seen, hold, &n, direct_rwlock_prefers_writers(lx));
    } while (!__atomic_compare_exchange_n(&lx->state, &seen, c.want, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));

    if (!n.one_comes && (seen & RW_WOKEN) != 0)
        sbt_lot_designate_none(q);
    if (c.granted > 0)
        grant_readers(q);
    else if (c.writers_turn && n.hands_over)
        lx->handed_us = (uint32_t)(now / 1000); /* the writer is in the queue yet, so the lock is there */
    return c.writers_turn ? n.writer : NULL;
}

struct sbt_waiter *direct_rwlock_after_writer(struct sbt_lot_queue *q) {
    return let_in(q, RW_WRITER, true);
}

struct sbt_waiter *direct_rwlock_next_in(struct sbt_lot_queue *q) {
    return let_in(q, 0, true);
}

/* The notified writer does not sleep: do not rely on it either, and take back what was handed to it. */
struct sbt_waiter *direct_rwlock_not_asleep(struct sbt_lot_queue *q) {
    return let_in(q, 0, false);
}

/* A handler has interrupted a waiter that an unlock may have relied on, or may rely on later. */
struct sbt_waiter *direct_rwlock_held_up(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    if (sbt_lot_first(q) == NULL)
        return NULL;
    __atomic_fetch_and(&direct_rwlock_of(q->key)->state, ~(uint32_t)RW_ACTIVE, __ATOMIC_RELAXED);
    return let_in(q, 0, !w->designated);
}

/* ---- a waiter that is about to sleep, or leaves ---- */

/*
 * Take it. A reader does not count itself out again, which might need the bucket's lock. For a notified writer it may
 * be kept.
 */
static int take_queued(struct sbt_rwlock *lx, const struct sbt_waiter *w) {
    if (direct_rwlock_is_writing(w->role)) {
        if (!w->inflight || (__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & RW_HANDED) == 0)
            return direct_rwlock_take_write(lx);
        __atomic_fetch_and(&lx->state, ~(uint32_t)RW_HANDED, __ATOMIC_ACQUIRE);
        return 0;
    }
    uint32_t bar = direct_rwlock_prefers_writers(lx) ? RW_WRITER | RW_WRITERS : RW_WRITER;
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while ((seen & bar) == 0 && seen < RW_READERS_MAX)
        if (__atomic_compare_exchange_n(&lx->state, &seen, seen + RW_READER, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
    return (seen & bar) != 0 ? EBUSY : EAGAIN;
}

/*
 * The flags come before the last look: an unlock after that sees them and takes the bucket's lock. A WOKEN of a writer
 * that does not come, or of the process that this one was forked from, goes, as a mutex's does.
 */
static void announce(struct sbt_lot_queue *q, struct sbt_rwlock *lx, const struct sbt_waiter *w) {
    uint32_t flags = direct_rwlock_is_writing(w->role) ? RW_QUEUED | RW_WRITERS : RW_QUEUED;
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED), stale;
    do {
        stale = 0;
        if ((seen & (RW_WOKEN | RW_HANDED)) != 0 && !count(q, sbt_now_ns()).one_comes)
            stale = (seen & RW_HANDED) != 0 ? RW_WOKEN | RW_HANDED | RW_WRITER : RW_WOKEN;
    } while (!__atomic_compare_exchange_n(&lx->state, &seen, (seen & ~(RW_ACTIVE | stale)) | flags, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (stale != 0)
        sbt_lot_designate_none(q);
}

int direct_rwlock_validate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    struct sbt_rwlock *lx = direct_rwlock_of(q->key);
    if (!w->again)
        announce(q, lx, w);
    return take_queued(lx, w);
}

/*
 * A waiter that leaves may have been what kept others out. One that waits may have been relied on to look: the lock may
 * be free by now, or there may be sleepers that can go in where this one cannot.
 */
struct sbt_waiter *direct_rwlock_successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result) {
    struct sbt_rwlock *lx = direct_rwlock_of(q->key);
    if (result != EBUSY && sbt_lot_first(q) == NULL) {
        __atomic_fetch_and(&lx->state, ~(uint32_t)(RW_QUEUED | RW_WRITERS | RW_WOKEN), __ATOMIC_RELAXED);
        return NULL;
    }
    if (result == EBUSY && !w->again && (__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & RW_WRITER) != 0)
        return NULL; /* its unlock comes, and sees QUEUED */
    return direct_rwlock_next_in(q);
}

/* Flags of the process that this one was forked from, where there are no waiters: the lock was kept for one of them. */
bool direct_rwlock_mend(const struct sbt_lot_queue *q) {
    const uint32_t flags = RW_QUEUED | RW_WRITERS | RW_WOKEN | RW_HANDED;
    struct sbt_rwlock *lx = direct_rwlock_of(q->key);
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while (sbt_lot_first(q) == NULL)
        if (__atomic_compare_exchange_n(&lx->state, &seen, seen & ~(flags | ((seen & RW_HANDED) != 0 ? RW_WRITER : 0)),
                                        true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}
