/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parking lot's waits: a thread queues, waits until it is notified, looks, and leaves or waits on. */
#include <errno.h>
#include <pthread.h>

#include "core/priority.h"
#include "core/probes.h"
#include "os/clock.h"
#include "wait/lot_bucket.h"
#include "wait/park.h"

/* Lock the bucket in which the waiter waits now, whatever key it has been moved to. */
static void lock_of(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    for (;;) {
        const void *key = __atomic_load_n(&w->key, __ATOMIC_RELAXED);
        sbt_lot_lock_key(q, key, NULL);
        if (__atomic_load_n(&w->key, __ATOMIC_RELAXED) == key)
            return; /* relaxed: the key changes under this bucket's lock only */
        sbt_lot_unlock(q->bucket);
    }
}

/*
 * The bucket is locked, and is unlocked here. What becomes of the waiter: EBUSY, it waits (on); otherwise it has left.
 * `result`: it leaves with that; EBUSY: ask its role. `over`: a waiter that would wait on leaves with that; 0: it
 * waits.
 */
static int look(struct sbt_lot_queue *q, struct sbt_waiter *w, int result, int over) {
    const struct sbt_lot_role *role = w->role;
    int r = result != EBUSY ? result : role->validate(q, w);
    if (r == EBUSY && (w->inflight || w->interrupted)) {
        w->lost |= w->inflight;
        w->inflight = w->designated = false;
        w->interrupted = false;
        __atomic_store_n(&w->state, SBT_WAITER_WAITING, __ATOMIC_RELAXED);
    }
    if (r == EBUSY && over != 0)
        r = over;
    if (r != EBUSY) {
        sbt_lot_take_out(q->bucket, w);
        w->result = r;
    }
    q->after = role->after;
    if (role->successor != NULL && (r != EBUSY || role->passes_on))
        sbt_lot_designate(q, role->successor(q, w, r));
    w->again = true;
    sbt_lot_unlock_and_wake(q);
    return r;
}

/*
 * Until it is notified: actively while that pays, then asleep. 0, ETIMEDOUT, or EINTR if the role allows it. Acquire:
 * pairs with notify.
 */
static int wait_for_notice(struct sbt_waiter *w, const struct sbt_deadline *deadline, bool cancelable) {
    for (;;) {
        uint32_t state = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
        if (state > SBT_WAITER_PARKED)
            return 0;
        if (state == SBT_WAITER_WAITING && w->active != NULL && sbt_active_step(w->active))
            continue;
        /* A fiber's token says whether it must be woken. Relaxed: going to sleep publishes nothing. */
        if (state == SBT_WAITER_WAITING && w->wake_word == NULL &&
            !__atomic_compare_exchange_n(&w->state, &state, SBT_WAITER_PARKED, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&w->held_up, false, __ATOMIC_RELAXED); /* a handler that comes now sets it again */
        int r = sbt_park_own(&w->state, SBT_WAITER_PARKED, w->wake_word, deadline, cancelable);
        if (r == ETIMEDOUT || (r == EINTR && w->parked_as->looks_after_handler))
            return r;
    }
}

static bool is_granted(const struct sbt_waiter *w) {
    return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED;
}

/* `ended`: EINTR, a sleep has ended so already; 0: it sleeps, unless it has been notified. */
static SBT_NOINLINE int wait_until_over(struct sbt_waiter *w, const struct sbt_deadline *deadline, int ended) {
    struct sbt_lot_queue q;
    int r = EBUSY;
    while (r == EBUSY) {
        int waited = ended != 0 ? ended : wait_for_notice(w, deadline, w->parked_as->cancelable);
        ended = 0;
        if (is_granted(w))
            return 0;
        if (waited == 0 && w->role->retry != NULL && w->role->retry(w)) /* which is not moved while it is inflight */
            r = 0;
        lock_of(&q, w);
        bool moved = w->role != w->parked_as;
        w->parked_as = w->role;
        deadline = moved ? NULL : deadline;
        if (is_granted(w)) {
            sbt_lot_unlock(q.bucket);
            return 0;
        }
        r = look(&q, w, r, moved ? 0 : waited);
    }
    return r;
}

/* It does not wait after all, unless it has been notified already. */
static SBT_NOINLINE int leave_with(struct sbt_waiter *w, int result) {
    struct sbt_lot_queue q;
    lock_of(&q, w);
    if (w->queued)
        return look(&q, w, result, 0);
    sbt_lot_unlock(q.bucket);
    return result;
}

/* It has just come, and is in the queue. EBUSY: it waits. */
static SBT_NOINLINE int look_first(const void *key, struct sbt_waiter *w) {
    struct sbt_lot_queue q;
    sbt_lot_begin(&q, key, NULL);
    return look(&q, w, EBUSY, 0);
}

/* EBUSY: it waits. */
static inline int queue(const void *key, struct sbt_waiter *w) {
    struct sbt_bucket *b = sbt_lot_bucket(key);
    sbt_lot_lock(b);
    sbt_lot_append(b, w, key);
    if (w->role->joined == NULL || SBT_UNLIKELY(w->interrupted))
        return look_first(key, w);
    int r = w->role->joined(key, w);
    if (SBT_UNLIKELY(r != EBUSY)) {
        sbt_lot_take_out(b, w);
        w->result = r;
    }
    w->again = true;
    sbt_lot_unlock(b);
    return r;
}

static inline int queue_and_wait(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    int r = queue(key, w);
    if (r != EBUSY)
        return r;
    if (!w->sleeps && (r = w->parked_as->before_sleep(w)) != 0)
        return leave_with(w, r);
    w->sleeps = true;
    /* The usual wait of a fiber, in few instructions: `wait_for_notice`, once. */
    if (w->active == NULL && w->wake_word != NULL && deadline == NULL) {
        __atomic_store_n(&w->held_up, false, __ATOMIC_RELAXED);
        if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_WAITING)
            r = sbt_park_fiber(NULL, w->parked_as->cancelable);
        if (SBT_LIKELY(is_granted(w)))
            return 0;
    }
    return wait_until_over(w, deadline, r == EINTR && w->parked_as->looks_after_handler ? EINTR : 0);
}

static void abandon(void *waiter);

/* Leaves no record of this thread's stack in a queue, however the thread ends. `key` NULL: it is in one already. */
static inline int wait_guarded(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    int r;
    pthread_cleanup_push(abandon, w);
    r = key != NULL ? queue_and_wait(key, w, deadline) : wait_until_over(w, deadline, 0);
    pthread_cleanup_pop(0);
    sbt_lot_not_relied_on();
    return r;
}

static SBT_NOINLINE int wait_on_guarded(struct sbt_waiter *w) {
    sbt_self.waiter = w;
    return wait_guarded(NULL, w, NULL);
}

/*
 * The thread is cancelled, or ends in a signal handler. A waiter that has been moved to a mutex waits until it has the
 * mutex: the wait under its first role is over.
 */
static void abandon(void *waiter) {
    struct sbt_waiter *w = waiter;
    const struct sbt_lot_role *role = w->parked_as;
    struct sbt_lot_queue q;
    int r = 0;
    sbt_lot_not_relied_on();
    lock_of(&q, w);
    bool moved = w->role != role, queued = w->queued;
    w->parked_as = w->role;
    if (queued && !moved)
        r = look(&q, w, EBUSY, ETIMEDOUT);
    else
        sbt_lot_unlock(q.bucket);
    if (!queued)
        r = is_granted(w) ? 0 : w->result;
    else if (moved)
        r = wait_on_guarded(w);
    if (w->sleeps && role->abandoned != NULL)
        role->abandoned(w, r);
}

/*
 * A handler is about to run on the waiter's own thread, and the waiter shall look when the handler has returned. It may
 * be about to sleep: so the word that it sleeps on changes, or its fiber gets the token. A system call that the kernel
 * restarts after the handler then ends at once.
 */
static void look_after_handler(struct sbt_waiter *w) {
    uint32_t state = __atomic_load_n(&w->state, __ATOMIC_RELAXED);
    w->interrupted = true;
    while (state <= SBT_WAITER_PARKED) /* relaxed: for this thread alone */
        if (__atomic_compare_exchange_n(&w->state, &state, SBT_WAITER_RETRY, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    if (w->wake_word != NULL)
        sbt_waiter_wake(w->wake_word);
}

/* A handler of the program is about to run. A waiter that sleeps is not relied on: its waker would learn of that. */
void sbt_lot_interrupt(struct sbt_waiter *w, int signal) {
    (void)signal;
    struct sbt_lot_queue q;
    if (w->role->looks_after_handler) {
        look_after_handler(w);
        return;
    }
    uint32_t state = __atomic_load_n(&w->state, __ATOMIC_RELAXED);
    if (state == SBT_WAITER_PARKED || state == SBT_WAITER_GRANTED)
        return;
    lock_of(&q, w);
    __atomic_store_n(&w->held_up, true, __ATOMIC_RELAXED);
    q.after = w->role->after;
    if (w->role->held_up != NULL && !is_granted(w))
        sbt_lot_designate(&q, w->role->held_up(&q, w));
    sbt_lot_unlock_and_wake(&q);
}

/* A signal handler has interrupted its own thread inside the lot: it may not queue. */
static int poll_for(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    int r = 0;
    w->key = key;
    if (w->role->before_sleep != NULL && (r = w->role->before_sleep(w)) != 0)
        return r;
    do {
        sbt_pause_ns(SBT_HANDLER_POLL_NS);
        r = w->role->poll != NULL ? w->role->poll(w) : 0;
    } while (r == EBUSY && (deadline == NULL || !sbt_deadline_passed(deadline)));
    return r == EBUSY ? ETIMEDOUT : r;
}

int sbt_lot_park(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    w->parked_as = w->role;
    w->lost = w->again = w->interrupted = w->held_up = false;
    w->sleeps = w->role->before_sleep == NULL;
    w->result = EBUSY; /* should a handler end the thread before it has looked */
    w->notified_ns = 0;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return poll_for(key, w, deadline);
    /* As for a semaphore: where threads are interrupted, a wait that can fail with EINTR sleeps on its home thread. */
    w->wake_word = w->role->looks_after_handler && sbt_switch_interrupts ? NULL : sbt_fiber_word();
    w->priority = sbt_priority_of_caller();
    sbt_lot_relied_on(w, key);
    SBT_PROBE1(park, key);
    int r = wait_guarded(key, w, deadline);
    SBT_PROBE2(unpark, key, r);
    return r;
}
