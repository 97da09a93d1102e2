/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions: waiters queue in the lot under the condition's address; a signal moves them on to the mutex.
 *
 * A waiter that is still awake is told and competes for the mutex as any running thread does. One that sleeps is not
 * woken to find the mutex held: it is moved, asleep, to the mutex's queue, whose unlocks wake one at a time. So a
 * broadcast to n sleepers makes n wake-ups in a row and no stampede, and a signal under the held mutex makes one.
 *
 * The word is 1 while the lot may have waiters, and lets a signal to nobody return at once. It is set before the waiter
 * releases the mutex, so whoever changes the predicate under the mutex afterwards sees it: relaxed suffices.
 *
 * A context (switch/) is never moved: to wake it costs less, and when it runs the mutex is free more often than not,
 * because whoever signals with the mutex held goes on until it waits itself.
 *
 * A waiter does not touch the condition after it has been told: POSIX lets it be destroyed as soon as a broadcast has
 * unblocked everybody. Hence it is the signaller that teaches the condition how long its waits last.
 */
#include <errno.h>

#include "core/arch.h"
#include "core/handlers.h"
#include "core/object.h"
#include "core/real.h"
#include "core/thread.h"
#include "engine/direct/direct.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/futex.h"
#include "wait/park.h"

#define WAKE_BATCH 32

/*
 * What the lot knows a condition by. Not the bare address: a signal that is passed on may come when the condition is
 * gone and a mutex or rwlock, with waiters of its own, lies in its place.
 */
static const void *key_of(const struct sbt_cond *cx) {
    return (const char *)cx + 1;
}

/* Whom to wake once the buckets are unlocked; when the words are full, a wake-up is made under the lock. */
struct wakes {
    struct sbt_chain contexts;
    uint32_t n;
    uint32_t *word[WAKE_BATCH];
    pthread_mutex_t *mutex; /* and of those moved to it the one to wake, by that word; NULL: none */
    uint32_t *moved;
};

static void wakes_begin(struct wakes *wakes) {
    sbt_chain_begin(&wakes->contexts);
    wakes->n = 0;
    wakes->moved = NULL;
}

static void wakes_add(struct wakes *wakes, uint32_t *word) {
    bool full = wakes->n == WAKE_BATCH;
    if (word == NULL || sbt_chain_add(&wakes->contexts, word, full))
        return;
    if (full)
        sbt_futex_wake(word, 1);
    else
        wakes->word[wakes->n++] = word;
}

static void wakes_end(const struct wakes *wakes) {
    sbt_chain_end(&wakes->contexts);
    for (uint32_t i = 0; i < wakes->n; i++)
        sbt_waiter_wake(wakes->word[i]);
    if (wakes->moved != NULL)
        direct_mutex_wake_told(wakes->mutex, wakes->moved);
}

/* A waiter has left the condition's queue, or does so now, under the bucket lock. The condition exists: it had it. */
static void left_queue(struct sbt_cond *cx, struct sbt_bucket *b) {
    if (sbt_bucket_first(b, key_of(cx)) == NULL)
        __atomic_store_n(&cx->state, 0, __ATOMIC_RELAXED);
}

/* Is it awake? Then it is told, and what the signaller did before is released to it. Its memory may be gone at once. */
static bool tell_awake(struct sbt_waiter *w) {
    uint32_t awake = SBT_WAITER_WAITING;
    return __atomic_compare_exchange_n(&w->state, &awake, SBT_WAITER_GRANTED, false, __ATOMIC_RELEASE,
                                       __ATOMIC_RELAXED);
}

/*
 * Contexts mostly switch whatever the condition remembers, and to read the clock costs them as much as to switch: only
 * every so many waits are measured.
 */
#define LEARN_EVERY 8

static bool is_measured(struct sbt_cond *cx, const struct sbt_waiter *w) {
    if (w->wake_word == NULL)
        return true;
    uint8_t probe = __atomic_load_n(&cx->adapt.probe, __ATOMIC_RELAXED);
    /* Now: others may wait before it ends. */
    __atomic_store_n(&cx->adapt.probe, (uint8_t)(probe + 1), __ATOMIC_RELAXED);
    return probe % LEARN_EVERY == 0;
}

static void learn(struct sbt_cond *cx, const struct sbt_waiter *w) {
    if (w->active != NULL)
        sbt_active_end(w->active, &cx->adapt);
}

/* A run of signals. */
struct run {
    unsigned left;          /* how many waiters may still be signalled */
    bool all;               /* it is a broadcast */
    pthread_mutex_t *mutex; /* whose bucket is locked too, NULL: none */
    struct wakes wakes;
};

/*
 * Signal waiters from the front. Returns NULL when done, or the mutex whose bucket must be locked to go on: that of a
 * sleeper which is to be moved.
 */
static pthread_mutex_t *signal_run(struct sbt_cond *cx, struct run *run, struct sbt_bucket *bc, struct sbt_bucket *bm) {
    struct sbt_waiter *w = sbt_bucket_first_waiting(bc, key_of(cx));
    pthread_mutex_t *needed = NULL;
    bool moved = false;

    for (struct sbt_waiter *next; w != NULL && run->left > 0; w = next) {
        next = sbt_bucket_next(w, key_of(cx));
        if (w->inflight)
            continue;
        w->alone = !run->all;
        bool asleep = __atomic_load_n(&w->state, __ATOMIC_RELAXED) == SBT_WAITER_PARKED;
        if (asleep && w->mutex != NULL && w->mutex != run->mutex) {
            needed = w->mutex;
            break;
        }
        /* Learn and take it out of the queue first: once told it may be gone. */
        learn(cx, w);
        sbt_bucket_remove(bc, w);
        left_queue(cx, bc); /* before it is told: then the condition may be gone as well */
        if (w->wake_word == NULL && tell_awake(w)) {
            /* It was awake: it competes. */
        } else if (w->mutex == NULL) {
            wakes_add(&run->wakes, sbt_waiter_tell(w, SBT_WAITER_GRANTED));
        } else if (w->mutex == run->mutex) {
            direct_mutex_adopt(w->mutex, w, bm);
            moved = true;
        } else {
            /* It fell asleep since we looked: wake it rather than lock once more. */
            wakes_add(&run->wakes, sbt_waiter_tell(w, SBT_WAITER_GRANTED));
        }
        run->left--;
    }
    if (moved) {
        run->wakes.mutex = run->mutex;
        run->wakes.moved = direct_mutex_wake_moved(run->mutex, bm);
    }
    return needed;
}

/* Does not touch *c unless somebody waits on it. */
static void signal_some(pthread_cond_t *c, unsigned max) {
    struct sbt_cond *cx = sbt_cond_of(c);
    struct run run = {.left = max, .all = max == UINT32_MAX};
    do {
        struct sbt_bucket *bc, *bm;
        sbt_handlers_hold(); /* who has been told is no longer found by others: until it is woken */
        wakes_begin(&run.wakes);
        if (run.mutex == NULL) {
            bc = sbt_lot_lock(key_of(cx));
            run.mutex = signal_run(cx, &run, bc, NULL);
            sbt_lot_unlock(bc);
        } else {
            sbt_lot_lock_pair(key_of(cx), run.mutex, &bc, &bm);
            run.mutex = signal_run(cx, &run, bc, bm);
            sbt_lot_unlock_pair(bc, bm);
        }
        wakes_end(&run.wakes);
        sbt_handlers_release();
    } while (run.mutex != NULL);
}

int direct_cond_signal(pthread_cond_t *c) {
    sbt_self.woken_by = NULL;
    if (__atomic_load_n(&sbt_cond_of(c)->state, __ATOMIC_RELAXED) == 0)
        return 0;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        sbt_lot_wake_later();
    else
        signal_some(c, 1);
    return 0;
}

int direct_cond_broadcast(pthread_cond_t *c) {
    sbt_self.woken_by = NULL;
    if (__atomic_load_n(&sbt_cond_of(c)->state, __ATOMIC_RELAXED) == 0)
        return 0;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        sbt_lot_wake_later();
    else
        signal_some(c, UINT32_MAX);
    return 0;
}

/* Nothing to do: who still waits on a condition that is destroyed is lost by POSIX's rules too. */
int direct_cond_destroy(pthread_cond_t *c) {
    (void)c;
    return 0;
}

/* One wait, for the clean-up of a cancelled one. */
struct wait {
    pthread_cond_t *c;
    pthread_mutex_t *m;
    enum sbt_released released;
    struct sbt_waiter w;
    struct sbt_active active;
};

static int mutex_lock(const struct wait *wait) {
    int r;
    switch (wait->released) {
    case SBT_RELEASE_OURS:
        return direct_mutex_lock(wait->m);
    case SBT_RELEASE_THEIRS:
        return sbt_real.pthread_mutex_lock(wait->m);
    case SBT_RELEASE_BY_ENGINE:
        while ((r = sbt_engine.mutex_lock(wait->m)) == EAGAIN) /* ni without a queue element: not to be returned with */
            sbt_give_way(false);
        return r;
    case SBT_RELEASE_NOTHING:
        break;
    }
    return 0;
}

static int mutex_unlock(const struct wait *wait) {
    switch (wait->released) {
    case SBT_RELEASE_OURS:
        return direct_mutex_unlock(wait->m);
    case SBT_RELEASE_THEIRS:
        return sbt_real.pthread_mutex_unlock(wait->m);
    case SBT_RELEASE_BY_ENGINE:
        return sbt_engine.mutex_unlock(wait->m);
    case SBT_RELEASE_NOTHING:
        break;
    }
    return 0;
}

/*
 * The wait has ended, by whatever means. Leave whichever queue the waiter is in and hold the mutex. *signalled says
 * whether a signal had reached it. Returns what taking the mutex returned.
 */
static int finish(struct wait *wait, bool *signalled) {
    struct sbt_cond *cx = sbt_cond_of(wait->c);
    struct sbt_waiter *w = &wait->w;
    bool granted = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED;

    if (!granted) {
        struct sbt_bucket *b = sbt_lot_lock_waiter(w);
        granted = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED;
        if (!granted && w->role == SBT_WAITS_FOR_COND) {
            sbt_bucket_remove(b, w);
            learn(cx, w);
            left_queue(cx, b);
            sbt_lot_unlock(b);
            *signalled = false;
            return mutex_lock(wait);
        }
        sbt_lot_unlock(b);
    }
    *signalled = true;
    if (w->role == SBT_WAITS_FOR_COND)
        return mutex_lock(wait);
    return direct_mutex_finish(wait->m, w, NULL, &wait->active);
}

static void cancelled(void *argument) {
    struct wait *wait = argument;
    bool signalled;
    finish(wait, &signalled);
    if (signalled)
        signal_some(wait->c, 1); /* by address: the condition itself may be gone */
}

/* From a signal handler that interrupted its own thread inside the lot: a wake-up for no reason, a moment later. */
static int wait_without_queue(struct wait *wait) {
    int r = mutex_unlock(wait);
    if (r != 0)
        return r;
    sbt_pause_ns(200000);
    return mutex_lock(wait);
}

int direct_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline) {
    struct sbt_cond *cx = sbt_cond_of(c);
    struct wait wait = {.c = c, .m = m, .released = released};
    int type, r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return wait_without_queue(&wait);

    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type); /* an asynchronous cancel must not strike inside the lot */
    pthread_testcancel();
    sbt_active_begin(&wait.active, &cx->adapt);
    if (SBT_UNLIKELY(sbt_self.woken_by == c))
        sbt_active_in_vain(&wait.active, sbt_self.woken_after);
    wait.w.role = SBT_WAITS_FOR_COND;
    wait.w.wake_word = sbt_waiter_word();
    wait.w.mutex = released == SBT_RELEASE_OURS && wait.w.wake_word == NULL ? m : NULL;
    if (is_measured(cx, &wait.w)) {
        wait.active.start_ns = wait.active.last_ns = wait.w.since_ns = sbt_now_ns();
        wait.w.active = &wait.active;
    }
    struct sbt_bucket *b = sbt_lot_lock(key_of(cx));
    __atomic_store_n(&cx->state, 1, __ATOMIC_RELAXED);
    sbt_bucket_append(b, &wait.w, key_of(cx));
    sbt_lot_unlock(b);

    r = mutex_unlock(&wait);
    if (r != 0) {
        b = sbt_lot_lock_waiter(&wait.w);
        if (__atomic_load_n(&wait.w.state, __ATOMIC_ACQUIRE) !=
            SBT_WAITER_GRANTED) { /* else a signal has taken it out */
            sbt_bucket_remove(b, &wait.w);
            left_queue(cx, b);
        }
        sbt_lot_unlock(b);
    } else {
        int waited;
        bool signalled;
        pthread_cleanup_push(cancelled, &wait);
        waited = sbt_waiter_wait(&wait.w, deadline, &wait.active, true);
        pthread_cleanup_pop(0);
        r = finish(&wait, &signalled);
        if (r == 0 && waited == ETIMEDOUT && !signalled)
            r = ETIMEDOUT;
        sbt_self.woken_by = r == 0 && wait.w.alone ? c : NULL;
        sbt_self.woken_after = wait.active.switches;
    }
    pthread_setcanceltype(type, NULL);
    return r;
}
