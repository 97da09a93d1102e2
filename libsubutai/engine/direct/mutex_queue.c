/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes: what is decided under the lock of the mutex's bucket, where the queue stands still. Which waiter is notified
 * or handed the mutex, when a hand-over is taken back, and whether a waiter that is about to sleep has the mutex. The
 * modes, and why, are told in mutex.c.
 */
#include <errno.h>

#include "core/object.h"
#include "engine/direct/direct.h"
#include "engine/direct/mutex.h"
#include "engine/direct/policy.h"
#include "switch/switch.h"
#include "wait/parking_lot.h"

/* ---- which waiter is notified ---- */

/* A waiter is to be notified. If WOKEN is set in `seen`, another waiter is the designated waker: it is not any more. */
static void replace_designated(const struct sbt_lot_queue *q, uint32_t seen) {
    if (SBT_UNLIKELY((seen & DIRECT_WOKEN) != 0))
        sbt_lot_designate_none(q);
}

/* The first sleeper; NULL: there is none, and the mutex may be gone. */
static struct sbt_waiter *wake_one(struct sbt_lot_queue *q) {
    struct sbt_waiter *w = sbt_lot_first_waiting(q);
    if (w != NULL)
        replace_designated(q, __atomic_fetch_or(&direct_mutex_of(q->key)->state, DIRECT_WOKEN, __ATOMIC_RELAXED));
    return w;
}

/*
 * A notified waiter did not sleep: notify another as well. If there is none, let unlocks rely on no waiter. While
 * waiters are queued the mutex exists.
 */
struct sbt_waiter *direct_mutex_wake_another(struct sbt_lot_queue *q) {
    struct sbt_waiter *w = wake_one(q);
    if (w == NULL && sbt_lot_first(q) != NULL) {
        sbt_lot_designate_none(q);
        __atomic_fetch_and(&direct_mutex_of(q->key)->state, ~(uint32_t)DIRECT_WOKEN, __ATOMIC_RELAXED);
    }
    return w;
}

static bool any_inflight(const struct sbt_lot_queue *q) {
    for (struct sbt_waiter *w = sbt_lot_first(q); w != NULL; w = sbt_lot_next(q, w))
        if (w->inflight)
            return true;
    return false;
}

/*
 * The mutex was handed to a waiter that did not sleep. Free the mutex, unless a waiter has taken it, and rely on that
 * waiter no more: it may not be the one that has taken it. The mutex is found by its address: it exists as long as a
 * notified waiter is queued. (If another mutex lies at that address by now, a hand-over of that mutex is taken back.)
 */
static struct sbt_waiter *take_back(struct sbt_lot_queue *q) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    q->after = direct_mutex_wake_another;
    if (!any_inflight(q))
        return NULL;
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    while ((seen & DIRECT_HANDED) != 0)
        if (__atomic_compare_exchange_n(&mx->state, &seen, seen & ~(uint32_t)(DIRECT_LOCKED | DIRECT_HANDED), true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            break;
    return direct_mutex_wake_another(q);
}

/*
 * A handler has interrupted a waiter. An unlock may have relied on it, by ACTIVE, WOKEN or HANDED, and others may
 * later. If sleepers are queued the mutex exists.
 */
struct sbt_waiter *direct_mutex_held_up(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    q->after = direct_mutex_wake_another;
    if (sbt_lot_first(q) == NULL)
        return NULL;
    uint32_t seen = __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_ACTIVE, __ATOMIC_RELAXED);
    return w->inflight && (seen & DIRECT_HANDED) != 0 ? take_back(q) : direct_mutex_wake_another(q);
}

/*
 * The mutex has been freed, and there was no designated waker. If there is none now either, notify a sleeper. The mutex
 * may be gone, and is touched only if a waiter is queued.
 */
struct sbt_waiter *direct_mutex_wake_unless_woken(struct sbt_lot_queue *q) {
    bool woken = sbt_lot_first(q) != NULL &&
                 (__atomic_load_n(&direct_mutex_of(q->key)->state, __ATOMIC_RELAXED) & DIRECT_WOKEN) != 0;
    return woken ? NULL : wake_one(q);
}

/* ---- a waiter is about to sleep, or has left ---- */

/*
 * A thread that queues repairs a WOKEN that would keep every unlock from notifying a waiter: the designated waker is
 * overdue, or was a waiter of the process that this one was forked from. If HANDED is set as well, no thread has the
 * mutex, and the thread that queues takes it.
 */
static uint32_t stale_bits(const struct sbt_lot_queue *q, uint32_t seen) {
    if ((seen & (DIRECT_WOKEN | DIRECT_HANDED)) == 0)
        return 0;
    const struct sbt_waiter *w = sbt_lot_designated(q);
    if (w != NULL && !direct_policy_is_overdue(sbt_now_ns(), w->notified_ns))
        return 0;
    return seen & (DIRECT_WOKEN | DIRECT_HANDED);
}

int direct_mutex_validate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED), clear, want;
    bool has_it;
    do {
        clear = w->again ? (w->designated ? DIRECT_WOKEN : 0) : DIRECT_ACTIVE | stale_bits(q, seen);
        has_it = (seen & DIRECT_LOCKED) == 0 ||
                 ((seen & DIRECT_HANDED) != 0 && (w->inflight || (clear & DIRECT_HANDED) != 0));
        if (has_it)
            want = (seen | DIRECT_LOCKED) & ~(clear | DIRECT_HANDED | DIRECT_ACTIVE);
        else
            want = (seen & ~clear) | DIRECT_QUEUED;
        /* Acquire: as take_notified. The unlock's operation on the word is the partner of the step that sets QUEUED. */
    } while (want != seen &&
             !__atomic_compare_exchange_n(&mx->state, &seen, want, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    if (!w->again && (clear & (DIRECT_WOKEN | DIRECT_HANDED)) != 0)
        sbt_lot_designate_none(q);
    if (!has_it)
        mx->lost += w->inflight && mx->lost < DIRECT_LOST_MOST;
    return has_it ? 0 : EBUSY;
}

/*
 * The waiter has left: clear the bits that stood for its presence. Relaxed: the bits are only believed under the
 * bucket's lock, or by an unlock that then takes it.
 */
struct sbt_waiter *direct_mutex_successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    uint32_t clear = w->designated ? DIRECT_WOKEN : 0;
    if (sbt_lot_first(q) == NULL)
        clear |= DIRECT_QUEUED | DIRECT_WOKEN;
    if ((__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & clear) != 0)
        __atomic_fetch_and(&mx->state, ~clear, __ATOMIC_RELAXED);
    mx->lost -= result == 0 && w->inflight && mx->lost > 0;
    return NULL;
}

/* ---- an unlock with waiters ---- */

/*
 * A designated waker is on its way, and sleepers are left asleep because of that: is it late? The waiters that have
 * lost the race and sleep again come first in the queue.
 */
bool direct_mutex_is_late(const struct sbt_lot_queue *q) {
    const struct sbt_waiter *designated = NULL, *sleeper = NULL;
    uint32_t n_notified = 0;
    for (struct sbt_waiter *w = sbt_lot_first(q); w != NULL && (designated == NULL || sleeper == NULL);
         w = sbt_lot_next(q, w)) {
        designated = w->designated ? w : designated;
        sleeper = w->inflight || sleeper != NULL ? sleeper : w;
        n_notified += w->inflight;
    }
    return designated != NULL && sleeper != NULL &&
           direct_policy_is_late(sbt_now_ns(), designated->notified_ns, n_notified, direct_mutex_of(q->key)->lost,
                                 direct_policy_cores_may_idle(sbt_usable_cpus(), sbt_switch_takes_part()));
}

struct sbt_waiter *direct_mutex_hand_over(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    replace_designated(q, __atomic_load_n(&mx->state, __ATOMIC_RELAXED));
    q->after = take_back;
    mx->handed_us = (uint32_t)(sbt_now_ns() / 1000);
    __atomic_fetch_or(&mx->state, DIRECT_HANDED | DIRECT_WOKEN, __ATOMIC_RELEASE);
    return w;
}

struct sbt_waiter *direct_mutex_free_or_hand_over(struct sbt_lot_queue *q) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    struct sbt_waiter *w = sbt_lot_first_waiting(q);
    if (w == NULL) {
        /* All queued waiters are awake already; or this is a forked child, and the bits are stale. */
        uint32_t keep = sbt_lot_first(q) != NULL ? DIRECT_QUEUED | DIRECT_WOKEN : 0;
        __atomic_fetch_and(&mx->state, keep | DIRECT_SPUN, __ATOMIC_RELEASE);
        return NULL;
    }
    if (direct_policy_hands_over(sbt_now_ns(), w->since_ns, w->lost, mx->handed_us))
        return direct_mutex_hand_over(q, w);
    replace_designated(q, seen);
    while (!__atomic_compare_exchange_n(&mx->state, &seen, (seen & ~DIRECT_LOCKED) | DIRECT_WOKEN, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return w;
}

/* ---- for conditions ---- */

struct sbt_waiter *direct_mutex_after_move(struct sbt_lot_queue *q) {
    struct sbt_mutex *mx = direct_mutex_of(q->key);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED), want;
    const struct sbt_waiter *d = (seen & DIRECT_WOKEN) != 0 ? sbt_lot_designated(q) : NULL;
    bool one_comes = d != NULL && !direct_policy_is_overdue(sbt_now_ns(), d->notified_ns), held;
    if (!one_comes && (seen & DIRECT_WOKEN) != 0)
        sbt_lot_designate_none(q);
    /*
     * One step with the test for LOCKED: an owner that unlocks before QUEUED is set would notify no waiter. WOKEN stays
     * as it was seen: it changes under the bucket's lock only. ACTIVE goes: a forked child's may be stale, and the
     * unlock would rely on it. If HANDED is set and no waiter is relied on to come, no thread has the mutex, as in
     * stale_bits: the mutex is free again.
     */
    do {
        uint32_t kept = !one_comes && (seen & DIRECT_HANDED) != 0 ? DIRECT_LOCKED | DIRECT_HANDED : 0;
        held = (seen & ~kept & DIRECT_LOCKED) != 0;
        want = (seen & ~(kept | DIRECT_WOKEN | DIRECT_ACTIVE)) | DIRECT_QUEUED;
        want |= one_comes || !held ? DIRECT_WOKEN : 0;
        /* Relaxed: it only continues what the hand-over has released. */
    } while (!__atomic_compare_exchange_n(&mx->state, &seen, want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return one_comes || held ? NULL : sbt_lot_first_waiting(q);
}
