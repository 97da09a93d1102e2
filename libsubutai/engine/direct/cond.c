/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions: waiters park under the condition's address; a signal wakes them, or moves them on to the mutex.
 *
 * A waiter that is still awake is granted its wake-up and competes for the mutex as any running thread does. So is the
 * first that sleeps, where a core may be idle: it takes longer to come than the owner holds the mutex. Any other that
 * sleeps is not woken to find the mutex held: it is moved, asleep, to the mutex's queue. The mutex's unlocks wake one
 * at a time (wait morphing). So a broadcast to n sleepers makes n wake-ups in a row and no stampede.
 *
 * A waiter of a real-time priority is moved too, for the mutex's queue keeps the order of priorities: woken, it might
 * come behind one that another signal has woken.
 *
 * Moved as well, the first would wait for all that were moved before it: an unlock wakes none while one is on its way.
 * A thread that signals for each of its items would have one thread woken by them all, and the cores idle.
 *
 * The word is 1 while the parking lot may have waiters; while it is 0 a signal returns at once. A waiter sets it before
 * it releases the mutex. A thread that changes the predicate under the mutex afterwards sees it, so relaxed suffices.
 *
 * A fiber (switch/) is moved only to a delegated mutex: otherwise to wake it costs less, and when it runs the mutex is
 * free more often than not, because a thread that signals with the mutex held goes on until it waits itself.
 *
 * A waiter does not touch the condition after it has been notified: POSIX lets it be destroyed as soon as a broadcast
 * has unblocked every waiter. Hence it is the signaller that teaches the condition how long its waits last.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "core/object.h"
#include "core/probes.h"
#include "core/thread.h"
#include "engine/direct/delegate.h"
#include "engine/direct/direct.h"
#include "engine/direct/policy.h"
#include "engine/direct/self.h"
#include "os/arch.h"
#include "os/real.h"
#include "switch/switch.h"
#include "wait/adapt.h"

/*
 * The key of a condition in the parking lot. Not the bare address: a signal that is passed on may come when the
 * condition is gone and a mutex or rwlock, with waiters of its own, lies in its place.
 */
static const void *key_of(const struct sbt_cond *cx) {
    return (const char *)cx + 1;
}

static struct sbt_cond *cond_of(const void *key) {
    return (struct sbt_cond *)((uintptr_t)key - 1);
}

struct wait {
    struct sbt_waiter w;
    pthread_cond_t *c;
    pthread_mutex_t *m;
    const struct direct_released *released;
    bool measured; /* the condition learns from it */
    bool travels;  /* the mutex is delegated */
    bool alone;    /* a signal has chosen it, and no broadcast; written before it is notified */
    struct sbt_active active;
};

static struct wait *wait_of(struct sbt_waiter *w) {
    return (struct wait *)(void *)((char *)w - offsetof(struct wait, w));
}

/* ---- signals ---- */

/*
 * Fibers mostly switch whatever the condition remembers, and to read the clock costs them as much as to switch: only
 * every so many waits are measured.
 */
#define LEARN_EVERY 32

static bool is_measured(struct sbt_cond *cx, bool behind) {
    if (!behind && !sbt_switch_roams())
        return true;
    uint8_t probe = __atomic_load_n(&cx->adapt.probe, __ATOMIC_RELAXED);
    /* Now: others may wait before it ends. */
    __atomic_store_n(&cx->adapt.probe, (uint8_t)(probe + 1), __ATOMIC_RELAXED);
    return probe % LEARN_EVERY == 0;
}

static SBT_NOINLINE void learn_from(struct sbt_cond *cx, const struct wait *wait) {
    sbt_active_end(&wait->active, &cx->adapt);
}

static void learn(struct sbt_cond *cx, const struct wait *wait) {
    if (SBT_UNLIKELY(wait->measured))
        learn_from(cx, wait);
}

/* A run of signals. */
struct run {
    uint32_t left;          /* so many waiters may still be signalled */
    bool all;               /* it is a broadcast */
    bool woken;             /* a waiter competes for the mutex already */
    pthread_mutex_t *mutex; /* its bucket is locked too, or is to be; NULL: none */
};

/*
 * Bucket locked. Does the waiter sleep on until it has the mutex? A fiber does if the mutex is delegated: its section
 * then begins where the mutex is unlocked. Not one on which a handler waits: it would have the mutex for that long.
 */
static SBT_NOINLINE bool travels_asleep(const struct sbt_waiter *w) {
    return !__atomic_load_n(&w->held_up, __ATOMIC_RELAXED) && sbt_fiber_is_parked(w->wake_word);
}

static bool cores_may_idle(void) {
    return direct_policy_cores_may_idle(sbt_usable_cpus(), sbt_switch_takes_part());
}

static bool sleeps_on(const struct wait *wait, const struct run *run) {
    const struct sbt_waiter *w = &wait->w;
    if (w->wake_word != NULL)
        return SBT_UNLIKELY(wait->travels) && travels_asleep(w);
    return __atomic_load_n(&w->state, __ATOMIC_RELAXED) == SBT_WAITER_PARKED &&
           (run->woken || wait->travels || SBT_UNLIKELY(w->priority != 0) || !cores_may_idle());
}

/*
 * Bucket locked. Would a thread go on while others may have to be moved yet? It might wait again behind them, and this
 * broadcast would reach it twice. So all are reached in one step, with both buckets. Not if it is a fiber: others are
 * then, and they are granted.
 */
static bool goes_too_early(const struct sbt_lot_queue *q, const struct wait *wait, const struct run *run) {
    return run->all && run->mutex == NULL && wait->w.wake_word == NULL && sbt_lot_next(q, &wait->w) != NULL;
}

/* Bucket locked. Everything about the condition is done before the waiter is notified: then it may be gone. */
static inline void choose(struct sbt_lot_queue *q, struct wait *wait, struct run *run) {
    struct sbt_cond *cx = cond_of(q->key);
    run->left--;
    wait->alone = !run->all;
    learn(cx, wait);
    if (sbt_lot_first(q) == &wait->w && sbt_lot_next(q, &wait->w) == NULL)
        __atomic_store_n(&cx->state, 0, __ATOMIC_RELAXED);
}

/* Once more, with the bucket of its mutex. */
static enum sbt_lot_verdict decide_again(const struct wait *wait, struct run *run) {
    run->mutex = wait->m;
    return SBT_LOT_STOP;
}

static SBT_NOINLINE enum sbt_lot_verdict decide_to_move(struct sbt_lot_queue *q, struct wait *wait, struct run *run) {
    if (wait->m != run->mutex)
        return decide_again(wait, run);
    choose(q, wait, run);
    run->woken |= wait->w.priority != 0; /* none of lower priority goes before it */
    wait->w.role = &direct_mutex_waits;
    return SBT_LOT_MOVE;
}

static enum sbt_lot_verdict decide(struct sbt_lot_queue *q, struct sbt_waiter *w, void *argument) {
    struct run *run = argument;
    struct wait *wait = wait_of(w);
    if (run->left == 0)
        return SBT_LOT_STOP;
    if (wait->released->moves && sleeps_on(wait, run))
        return decide_to_move(q, wait, run);
    if (wait->released->moves && goes_too_early(q, wait, run))
        return decide_again(wait, run);
    choose(q, wait, run);
    run->woken = true;
    return SBT_LOT_GRANT;
}

/* With waiters that move to a mutex: then the bucket of that is locked too. */
static SBT_NOINLINE void signal_and_move(const struct sbt_cond *cx, struct run *run) {
    const void *to;
    do {
        to = run->mutex;
        sbt_lot_sort(key_of(cx), to, decide, run, direct_mutex_after_move, direct_mutex_wake_another);
    } while (run->mutex != to);
}

static void signal_one(const struct sbt_cond *cx) {
    struct run run = {1, false, false, NULL};
    sbt_lot_unpark_first(key_of(cx), decide, &run);
    if (SBT_UNLIKELY(run.mutex != NULL))
        signal_and_move(cx, &run);
}

/* Is there a waiter? Only then is the condition touched. */
static bool begin_signal(const struct sbt_cond *cx) {
    direct_self.signalled_by = NULL;
    return __atomic_load_n(&cx->state, __ATOMIC_RELAXED) != 0;
}

int direct_cond_signal(pthread_cond_t *c) {
    if (begin_signal(sbt_cond_of(c)))
        signal_one(sbt_cond_of(c));
    return 0;
}

int direct_cond_broadcast(pthread_cond_t *c) {
    struct run run = {UINT32_MAX, true, false, NULL};
    if (begin_signal(sbt_cond_of(c)))
        signal_and_move(sbt_cond_of(c), &run);
    return 0;
}

/* Nothing to do: a waiter of a condition that is destroyed is lost by POSIX's rules too. */
int direct_cond_destroy(pthread_cond_t *c) {
    (void)c;
    return 0;
}

/* ---- waits ---- */

static int joined(const void *key, struct sbt_waiter *w) {
    (void)w;
    __atomic_store_n(&cond_of(key)->state, 1, __ATOMIC_RELAXED);
    return EBUSY;
}

static int validate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    int r = joined(q->key, w);
    return w->inflight ? 0 : r; /* notified to retry: a spurious wake-up, because of a signal handler */
}

static int release_mutex(struct sbt_waiter *w) {
    return wait_of(w)->released->unlock(wait_of(w)->m);
}

/* It leaves without a signal. The condition exists: a thread waits for it. */
static struct sbt_waiter *successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result) {
    struct sbt_cond *cx = cond_of(q->key);
    (void)result;
    learn(cx, wait_of(w));
    if (sbt_lot_first(q) == NULL)
        __atomic_store_n(&cx->state, 0, __ATOMIC_RELAXED);
    return NULL;
}

static void abandoned(struct sbt_waiter *w, int result);

static const struct sbt_lot_role waits = {.validate = validate,
                                          .joined = joined,
                                          .successor = successor,
                                          .before_sleep = release_mutex,
                                          .abandoned = abandoned,
                                          .cancelable = true};

/* The wait is over, by whatever means: hold the mutex. A waiter that was moved does. */
static int take_mutex(struct wait *wait) {
    if (wait->w.role == &waits)
        return wait->released->lock(wait->m);
    SBT_PROBE_THREADS1(mutex_acquired, wait->m); /* in the mutex's queue */
    return 0;
}

static bool is_signalled(const struct wait *wait) {
    return wait->w.role != &waits || __atomic_load_n(&wait->w.state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED;
}

/* Cancelled. A signal that had reached it is passed on, by address: the condition itself may be gone. */
static void abandoned(struct sbt_waiter *w, int result) {
    struct wait *wait = wait_of(w);
    (void)result;
    take_mutex(wait);
    if (is_signalled(wait))
        signal_one(sbt_cond_of(wait->c));
}

/*
 * Is it the wait of a fiber that switches at its beginning, and that nothing is learnt from? It needs no memory of what
 * the condition's waits were like.
 */
static bool switches_at_once(struct wait *wait) {
    bool behind = sbt_switch_waits_behind();
    wait->measured = is_measured(sbt_cond_of(wait->c), behind);
    return behind && !wait->measured && direct_self.signalled_by != wait->c;
}

static SBT_NOINLINE void begin_actively(struct wait *wait) {
    wait->w.active = &wait->active;
    sbt_active_begin(&wait->active, &sbt_cond_of(wait->c)->adapt);
    if (SBT_UNLIKELY(direct_self.signalled_by == wait->c))
        sbt_active_futile(&wait->active, direct_self.signalled_after);
    if (wait->measured)
        wait->active.start_ns = wait->active.last_ns = wait->w.since_ns = sbt_now_ns();
}

int direct_cond_wait_by(pthread_cond_t *c, pthread_mutex_t *m, const struct direct_released *released,
                        const struct sbt_deadline *deadline) {
    struct sbt_cond *cx = sbt_cond_of(c);
    struct wait wait;
    int type, r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    wait.w.role = &waits; /* field by field: the lot and sbt_active_begin set what is left */
    wait.w.active = NULL;
    wait.w.since_ns = 0;
    wait.c = c;
    wait.m = m;
    wait.released = released;
    wait.alone = false;
    wait.travels = released->moves && direct_is_delegated(sbt_mutex_of(m));
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type); /* an asynchronous cancel must not strike inside the lot */
    if (!sbt_lot_busy())                                   /* a handler in there must not end its thread */
        pthread_testcancel();
    if (SBT_LIKELY(switches_at_once(&wait)))
        sbt_switch_about_to_wait();
    else
        begin_actively(&wait);
    r = sbt_lot_park(key_of(cx), &wait.w, deadline);
    if (r == 0 || r == ETIMEDOUT) { /* else the mutex was not released */
        int taken = take_mutex(&wait);
        r = taken != 0 ? taken : r;
    }
    direct_self.signalled_by = r == 0 && wait.alone ? c : NULL;
    direct_self.signalled_after = wait.w.active != NULL ? wait.active.switches : 0;
    if (SBT_UNLIKELY(sbt_switch_servers != 0)) /* it may have taken a free mutex on the server of another section */
        direct_delegate_leave_server();
    if (SBT_UNLIKELY(type != PTHREAD_CANCEL_DEFERRED))
        pthread_setcanceltype(type, NULL);
    return r;
}

/* ---- what becomes of the mutex ---- */

static int lock_theirs(pthread_mutex_t *m) {
    return sbt_real.pthread_mutex_lock(m);
}

static int unlock_theirs(pthread_mutex_t *m) {
    return sbt_real.pthread_mutex_unlock(m);
}

static int nothing(pthread_mutex_t *m) {
    (void)m;
    return 0;
}

int direct_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline) {
    static const struct direct_released by[] = {
        [SBT_RELEASE_OURS] = {direct_mutex_lock, direct_mutex_unlock, true},
        [SBT_RELEASE_THEIRS] = {lock_theirs, unlock_theirs, false},
        [SBT_RELEASE_NOTHING] = {nothing, nothing, false},
    };
    return direct_cond_wait_by(c, m, &by[released], deadline);
}
