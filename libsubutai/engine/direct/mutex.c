/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes: state in place, barging with a bounded hand-over.
 *
 * An unlock frees the mutex and lets whoever comes first have it, because handing it to a sleeper costs a context
 * switch per section; it wakes a sleeper only if none is on its way already, because more would only find it taken. In
 * return a sleeper that has waited STARVING_NS, and has been woken and found others quicker, is handed the mutex, at
 * most once per HANDOFF_US, so that a crowd of starving waiters is served one by one and does not turn every unlock
 * into a context switch. Each of n waiters is thus passed over for at most about n * HANDOFF_US + STARVING_NS, and two
 * of others' sections. (Who has not been beaten does not starve: it waits for an owner that has no core, or comes out
 * of a long wait for a condition. Handing over on time alone cost a database with 16 threads on 2 cores 5 % of its
 * transactions.) To hand it over is to keep it for one that has been told to try. Should that one not have been asleep
 * it may be in a signal handler that waits for others, who wait for the mutex: then it is taken back.
 *
 * A mutex is never touched after the atomic operation that makes it free: its next owner may destroy it.
 */
#include <errno.h>

#include "core/arch.h"
#include "core/handlers.h"
#include "core/object.h"
#include "core/thread.h"
#include "engine/direct/direct.h"
#include "engine/direct/mutex.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/futex.h"
#include "wait/park.h"
#include "wait/turn.h"

#define STARVING_NS 1000000u
#define HANDOFF_US 1000u
#define LATE_NS 50000u         /* who was told so long ago is not waited for alone */
#define LOST_MOST 8            /* the doublings of that for those that were told and found it taken */
#define LATE_MOST 16           /* told at a time */
#define LOOK_AT_CLOCK_EVERY 16 /* unlocks that pass sleepers over */
#define LOOK_SELDOM 256        /* the same, where nobody should be late */
#define RETRY_YIELDS 3         /* tries of a woken waiter before it sleeps again */

/* direct_mutex_take for a waiter that has been told to try: the mutex may be kept for it. */
static bool take_told(uint32_t *word, uint32_t *seen) {
    *seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((*seen & (DIRECT_LOCKED | DIRECT_HANDED)) != DIRECT_LOCKED)
        if (__atomic_compare_exchange_n(word, seen, (*seen | DIRECT_LOCKED) & ~(DIRECT_HANDED | DIRECT_ACTIVE), true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    return false;
}

/*
 * The waiter leaves its queue, under the bucket lock: clear what its presence meant. Relaxed: the bits are only
 * believed under the bucket lock, or by an unlock that then takes it.
 */
static void leave_queue(struct sbt_mutex *mx, struct sbt_bucket *b, struct sbt_waiter *w) {
    uint32_t clear = w->counted_on ? DIRECT_WOKEN : 0;
    sbt_bucket_remove(b, w);
    if (sbt_bucket_first(b, mx) == NULL)
        clear |= DIRECT_QUEUED | DIRECT_WOKEN;
    if (clear != 0)
        __atomic_fetch_and(&mx->state, ~clear, __ATOMIC_RELAXED);
}

/* It is about to be told to try, in place of whoever was counted on, if WOKEN is set in `seen`. */
static void count_on(struct sbt_mutex *mx, struct sbt_bucket *b, struct sbt_waiter *w, uint32_t seen) {
    if (SBT_UNLIKELY((seen & DIRECT_WOKEN) != 0))
        sbt_bucket_count_on_none(b, mx);
    w->inflight = w->counted_on = true;
    w->told_ns = sbt_now_ns();
}

/* Choose the waiter to wake, mark it inflight; NULL if there is none. Under the bucket lock. */
static uint32_t *wake_one(struct sbt_mutex *mx, struct sbt_bucket *b) {
    struct sbt_waiter *w = sbt_bucket_first_waiting(b, mx);
    if (w == NULL)
        return NULL;
    count_on(mx, b, w, __atomic_load_n(&mx->state, __ATOMIC_RELAXED));
    __atomic_fetch_or(&mx->state, DIRECT_WOKEN, __ATOMIC_RELAXED);
    return sbt_waiter_tell_to_retry(w);
}

/*
 * One that was told does not sleep: tell another as well, and if there is none let unlocks count on nobody. While
 * somebody is queued the mutex is there.
 */
static uint32_t *wake_another(struct sbt_mutex *mx, struct sbt_bucket *b) {
    uint32_t *word = wake_one(mx, b);
    if (word == NULL && sbt_bucket_first(b, mx) != NULL) {
        sbt_bucket_count_on_none(b, mx);
        __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_WOKEN, __ATOMIC_RELAXED);
    }
    return word;
}

/* Wake the chosen waiter; as long as the chosen one turns out not to sleep, choose another as well. */
static void wake_or_next(struct sbt_mutex *mx, uint32_t *word) {
    while (!sbt_waiter_wake(word)) {
        struct sbt_bucket *b = sbt_lot_lock(mx);
        word = wake_another(mx, b);
        sbt_lot_unlock(b);
    }
}

/* Who has been told is not told again by others: no handler of this thread's comes between that and the wake-up. */
static void unlock_and_wake(struct sbt_mutex *mx, struct sbt_bucket *b, uint32_t *word) {
    sbt_handlers_hold();
    sbt_lot_unlock(b);
    wake_or_next(mx, word);
    sbt_handlers_release();
}

/*
 * Whom it was handed to did not sleep: unless it is taken by now, let others have it. By address: the mutex is there if
 * one that has been told still waits for it. (If the address is another mutex's by now, that is taken back.)
 */
static void take_back(struct sbt_mutex *mx) {
    uint32_t *word = NULL;
    struct sbt_bucket *b = sbt_lot_lock(mx);
    if (sbt_bucket_any_inflight(b, mx)) {
        uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
        while ((seen & DIRECT_HANDED) != 0)
            if (__atomic_compare_exchange_n(&mx->state, &seen, seen & ~(uint32_t)(DIRECT_LOCKED | DIRECT_HANDED), true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
                word = wake_another(mx, b);
                break;
            }
    }
    unlock_and_wake(mx, b, word);
}

/* The mutex is free again and somebody sleeps on it, with nobody on the way: by address, for the mutex may be gone. */
static SBT_NOINLINE void wake_after_unlock(struct sbt_mutex *mx) {
    if (SBT_UNLIKELY(sbt_lot_busy())) {
        sbt_lot_wake_later();
        return;
    }
    struct sbt_bucket *b = sbt_lot_lock(mx);
    bool expected =
        sbt_bucket_first(b, mx) != NULL && (__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & DIRECT_WOKEN) != 0;
    uint32_t *word = expected ? NULL : wake_one(mx, b);
    unlock_and_wake(mx, b, word);
}

/* A signal handler interrupted its own thread inside the lot: it may not queue, so it looks again and again. */
static int lock_by_polling(struct sbt_mutex *mx, const struct sbt_deadline *deadline) {
    uint32_t seen;
    while (!direct_mutex_take(&mx->state, &seen)) {
        sbt_pause_ns(200000);
        if (deadline != NULL && sbt_deadline_passed(deadline))
            return ETIMEDOUT;
    }
    return 0;
}

/* An inflight waiter that did not get the mutex goes back to waiting, keeping its place. True: it got it after all. */
static bool wait_again(struct sbt_mutex *mx, struct sbt_waiter *w) {
    struct sbt_bucket *b = sbt_lot_lock(mx);
    uint32_t seen;
    bool got = take_told(&mx->state, &seen);
    if (got) {
        leave_queue(mx, b, w);
    } else {
        uint32_t clear = w->counted_on ? DIRECT_WOKEN : 0;
        w->beaten |= w->inflight;
        mx->lost += mx->lost < LOST_MOST;
        w->inflight = false;
        __atomic_store_n(&w->state, SBT_WAITER_WAITING, __ATOMIC_RELAXED);
        /*
         * Clearing WOKEN and seeing LOCKED must be one step: an unlock in between would see WOKEN and wake nobody. The
         * unlock's compare-and-swap on the same word is the partner.
         */
        while (!__atomic_compare_exchange_n(&mx->state, &seen, (seen & ~clear) | DIRECT_QUEUED, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
            if ((seen & DIRECT_LOCKED) == 0 && direct_mutex_take(&mx->state, &seen)) {
                leave_queue(mx, b, w); /* which clears WOKEN if that still stands for it */
                got = true;
                break;
            }
        }
        w->counted_on = false;
    }
    sbt_lot_unlock(b);
    return got;
}

/* The deadline has passed: leave, unless the mutex is to be had after all. */
static int give_up(struct sbt_mutex *mx, struct sbt_waiter *w) {
    uint32_t *word = NULL, seen;
    struct sbt_bucket *b = sbt_lot_lock(mx);
    bool was_inflight = w->inflight, got = was_inflight && take_told(&mx->state, &seen);
    leave_queue(mx, b, w);
    /* It was the one that would try: unless somebody holds the mutex and will unlock it, wake the next. */
    if (was_inflight && !got &&
        (__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & (DIRECT_LOCKED | DIRECT_QUEUED)) == DIRECT_QUEUED)
        word = wake_one(mx, b);
    unlock_and_wake(mx, b, word);
    return got ? 0 : ETIMEDOUT;
}

/*
 * Two cores that take a mutex from each other get more done than one if there is time enough between: the word goes
 * from core to core each time. So threads spin for it unless those that do have had it within DENSE_NS of each other,
 * DENSE_MANY times in a row; then the next contended locks, up to 255, do not, and all is done by one core. Nor do they
 * if the last SPINS_FAILED have failed, because sections are long, but for every SPIN_EVERY-th; a context does, in
 * place of its carrier.
 */
#define DENSE_NS 700
#define DENSE_MANY 8
#define SPINS_FAILED 16
#define SPIN_EVERY 64

static void spin(struct sbt_mutex *mx, struct sbt_active *active) {
    uint8_t dense = __atomic_load_n(&mx->dense, __ATOMIC_RELAXED);
    uint16_t failed = __atomic_load_n(&mx->spins_failed, __ATOMIC_RELAXED);
    if (dense >= DENSE_MANY) {
        __atomic_store_n(&mx->dense, dense == DENSE_MANY ? 0 : dense - 1, __ATOMIC_RELAXED);
    } else if (failed >= SPINS_FAILED && sbt_self.context == NULL) {
        failed = failed == SPINS_FAILED + SPIN_EVERY ? SPINS_FAILED - 1 : failed + 1;
        __atomic_store_n(&mx->spins_failed, failed, __ATOMIC_RELAXED);
    } else {
        sbt_active_spin(active);
    }
}

/* It has spun, and has it or not. */
static void learn_luck(struct sbt_mutex *mx, bool got) {
    uint16_t failed = __atomic_load_n(&mx->spins_failed, __ATOMIC_RELAXED);
    if (got ? failed != 0 : failed < SPINS_FAILED)
        __atomic_store_n(&mx->spins_failed, got ? 0 : failed + 1, __ATOMIC_RELAXED);
}

/* The caller has spun for it, and has it. */
static void learn_density(struct sbt_mutex *mx) {
    uint32_t now = (uint32_t)sbt_now_ns();
    uint8_t dense = __atomic_load_n(&mx->dense, __ATOMIC_RELAXED);
    if (dense < DENSE_MANY) {
        if (now - mx->contended_ns > DENSE_NS)
            dense -= dense != 0;
        else
            dense = dense + 1 < DENSE_MANY ? dense + 1 : UINT8_MAX;
        __atomic_store_n(&mx->dense, dense, __ATOMIC_RELAXED);
    }
    mx->contended_ns = now;
}

static int wait_in_queue(struct sbt_mutex *mx, struct sbt_waiter *w, const struct sbt_deadline *deadline,
                         struct sbt_active *active) {
    for (;;) {
        int r = sbt_waiter_wait(w, deadline, active, false);
        struct sbt_active again = {0};
        uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
        if (w->wake_word != NULL && (seen & DIRECT_HANDED) == 0)
            spin(mx, &again);
        int yields = RETRY_YIELDS;
        do {
            if (r == 0 ? take_told(&mx->state, &seen) : direct_mutex_take(&mx->state, &seen)) {
                if (again.insists)
                    learn_density(mx);
                struct sbt_bucket *b = sbt_lot_lock(mx);
                leave_queue(mx, b, w);
                mx->lost -= mx->lost > 0;
                sbt_lot_unlock(b);
                return 0;
            }
            if (r == ETIMEDOUT)
                return give_up(mx, w);
        } while (w->wake_word != NULL ? again.insists && sbt_active_step(&again) : yields-- > 0 && sbt_turn_offer());
        if (wait_again(mx, w))
            return 0;
    }
}

struct queued {
    struct sbt_mutex *mx;
    struct sbt_waiter *w;
};

/* The thread ends while it waits (pthread_exit in a signal handler): its stack must not stay in the queue. */
static void abandon(void *argument) {
    struct queued *queued = argument;
    if (give_up(queued->mx, queued->w) == 0)
        direct_mutex_unlock((pthread_mutex_t *)queued->mx);
}

int direct_mutex_finish(pthread_mutex_t *m, struct sbt_waiter *w, const struct sbt_deadline *deadline,
                        struct sbt_active *active) {
    struct queued queued = {sbt_mutex_of(m), w};
    int r;
    pthread_cleanup_push(abandon, &queued);
    r = wait_in_queue(queued.mx, w, deadline, active);
    pthread_cleanup_pop(0);
    return r;
}

static SBT_NOINLINE int lock_slow(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    struct sbt_active active;
    uint32_t seen;
    int r = 0;

    sbt_active_begin(&active, &mx->adapt);
    spin(mx, &active);
    do {
        if (direct_mutex_take(&mx->state, &seen)) {
            if (active.insists) {
                learn_density(mx);
                learn_luck(mx, active.start_ns == 0); /* it has not begun to yield */
            }
            sbt_active_end(&active, &mx->adapt);
            return 0;
        }
        if ((seen & (DIRECT_QUEUED | DIRECT_ACTIVE)) == DIRECT_QUEUED)
            __atomic_fetch_or(&mx->state, DIRECT_ACTIVE, __ATOMIC_RELAXED);
    } while (sbt_active_step(&active));

    if (active.insists)
        learn_luck(mx, false);
    r = sbt_deadline_check(deadline);
    if (r != 0 || SBT_UNLIKELY(sbt_lot_busy())) {
        if ((__atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_ACTIVE, __ATOMIC_RELAXED) &
             (DIRECT_LOCKED | DIRECT_QUEUED | DIRECT_WOKEN)) == DIRECT_QUEUED)
            wake_after_unlock(mx); /* an unlock may have relied on this thread */
        return r != 0 ? r : lock_by_polling(mx, deadline);
    }

    struct sbt_waiter w = {
        .role = SBT_WAITS_FOR_MUTEX, .since_ns = sbt_active_since_ns(&active), .wake_word = sbt_waiter_word()};
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type); /* an asynchronous cancel must not unwind a queued waiter */
    struct sbt_bucket *b = sbt_lot_lock(mx);
    seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    for (;;) {
        if ((seen & DIRECT_LOCKED) == 0) {
            if (direct_mutex_take(&mx->state, &seen)) {
                sbt_lot_unlock(b);
                goto out;
            }
            continue;
        }
        /*
         * A WOKEN of one who does not come, or that is stale, of the process that this one was forked from, would keep
         * every unlock from waking.
         */
        uint32_t stale = 0;
        if ((seen & (DIRECT_WOKEN | DIRECT_HANDED)) != 0 && !sbt_bucket_expects(b, mx))
            stale = (seen & DIRECT_HANDED) != 0 ? DIRECT_WOKEN | DIRECT_HANDED | DIRECT_LOCKED : DIRECT_WOKEN;
        uint32_t want = (seen & ~(stale | DIRECT_ACTIVE)) | ((stale & DIRECT_LOCKED) == 0 ? DIRECT_QUEUED : 0);
        if (want != seen &&
            !__atomic_compare_exchange_n(&mx->state, &seen, want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        if (stale != 0)
            sbt_bucket_count_on_none(b, mx);
        if ((want & DIRECT_LOCKED) != 0)
            break;
        seen = want; /* it was kept for one who does not come */
    }
    sbt_bucket_append(b, &w, mx);
    sbt_lot_unlock(b);
    r = direct_mutex_finish(m, &w, deadline, &active);
out:
    sbt_active_end(&active, &mx->adapt);
    pthread_setcanceltype(type, NULL);
    return r;
}

/*
 * One atomic whatever the other bits say: with sleepers queued the mutex is taken as quickly as without. A function of
 * its own, which gcc makes one instruction (bts) on x86 and not a loop that has to load the word first.
 */
static inline bool set_locked(uint32_t *word) {
    return (__atomic_fetch_or(word, 1u, __ATOMIC_ACQUIRE) & 1u) == 0;
}
_Static_assert(DIRECT_LOCKED == 1, "the bit that set_locked sets");

int direct_mutex_lock(pthread_mutex_t *m) {
    if (SBT_LIKELY(set_locked(&sbt_mutex_of(m)->state)))
        return 0;
    return lock_slow(m, NULL);
}

int direct_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    uint32_t seen;
    return direct_mutex_take(&sbt_mutex_of(m)->state, &seen) ? 0 : lock_slow(m, deadline);
}

/* Is the first waiter's turn overdue, and the last hand-over long enough ago? */
static bool hand_over_due(const struct sbt_mutex *mx, const struct sbt_waiter *first) {
    uint64_t now = sbt_now_ns();
    return (first->beaten || SBT_STARVES_UNBEATEN) && now - first->since_ns > STARVING_NS &&
           (uint32_t)(now / 1000) - mx->handoff_us > HANDOFF_US;
}

/* Held by the caller, with sleepers and none of them on the way: hand it over or free it and wake one. */
static SBT_NOINLINE void unlock_to_sleeper(struct sbt_mutex *mx) {
    uint32_t *word;
    struct sbt_bucket *b = sbt_lot_lock(mx);
    struct sbt_waiter *first = sbt_bucket_first_waiting(b, mx);
    if (first == NULL) {
        /* Nobody to wake: those that are queued are awake already, or this is a forked child and the bits are stale. */
        uint32_t keep = sbt_bucket_first(b, mx) != NULL ? DIRECT_QUEUED | DIRECT_WOKEN : 0;
        __atomic_fetch_and(&mx->state, keep | DIRECT_SPUN, __ATOMIC_RELEASE);
    } else if (hand_over_due(mx, first)) {
        mx->handoff_us = (uint32_t)(sbt_now_ns() / 1000);
        count_on(mx, b, first, __atomic_load_n(&mx->state, __ATOMIC_RELAXED));
        __atomic_fetch_or(&mx->state, DIRECT_HANDED | DIRECT_WOKEN, __ATOMIC_RELEASE);
        word = sbt_waiter_tell_to_retry(first);
        sbt_handlers_hold(); /* as in unlock_and_wake */
        sbt_lot_unlock(b);
        if (!sbt_waiter_wake(word))
            take_back(mx);
        sbt_handlers_release();
        return;
    } else {
        uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
        count_on(mx, b, first, seen);
        while (!__atomic_compare_exchange_n(&mx->state, &seen, (seen & ~DIRECT_LOCKED) | DIRECT_WOKEN, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
        word = sbt_waiter_tell_to_retry(first);
        unlock_and_wake(mx, b, word);
        return;
    }
    sbt_lot_unlock(b);
}

/*
 * Of this thread's unlocks that leave sleepers asleep, because somebody comes: does this one look whether he does? A
 * look counts twice, lest one who takes several mutexes in turn always looks at the same.
 */
static inline bool looks_at_clock(void) {
    if (SBT_LIKELY(sbt_self.passed_over % LOOK_AT_CLOCK_EVERY != LOOK_AT_CLOCK_EVERY - 1))
        return false;
    sbt_self.passed_over++;
    return true;
}

/*
 * Somebody was told and is on the way, so the rest may sleep; but the kernel may have put him behind the caller, until
 * the next tick, beside a core that idles. Another, who last ran there, may come sooner: so tell one more after
 * LATE_NS, and after twice as long each time, because all cores may have something to do, and while those that are told
 * find it taken. (2 cores, 16 threads, 1 us inside and 3 us outside: a third of the time one core had nothing; nothing
 * outside: who is told comes for nothing.) Contexts are put where they will soon be run, and one core does not idle:
 * there only who is overdue, in a signal handler perhaps, is late. Those that have lost and sleep again come first in
 * the queue.
 */
static SBT_NOINLINE bool is_late(struct sbt_mutex *mx) {
    bool soon = sbt_n_cpus > 1 && sbt_self.context == NULL;
    if (SBT_UNLIKELY(sbt_lot_busy()) || (!soon && sbt_self.passed_over % LOOK_SELDOM != 0))
        return false;
    struct sbt_bucket *b = sbt_lot_lock(mx);
    const struct sbt_waiter *expected = NULL, *sleeps = NULL, *w = sbt_bucket_first(b, mx);
    unsigned told = 0;
    for (; w != NULL && (expected == NULL || sleeps == NULL); w = sbt_bucket_next(w, mx)) {
        expected = w->counted_on ? w : expected;
        sleeps = w->inflight || sleeps != NULL ? sleeps : w;
        told += w->inflight;
    }
    bool late = sleeps != NULL && expected != NULL && told <= LATE_MOST &&
                sbt_now_ns() - expected->told_ns > (soon ? (uint64_t)LATE_NS << mx->lost : SBT_OVERDUE_NS)
                                                       << (told - 1);
    sbt_lot_unlock(b);
    return late;
}

/* With sleepers, and somebody awake who will take it: free it and leave them asleep, unless it is time for one of them.
 */
static SBT_NOINLINE void unlock_to_active(struct sbt_mutex *mx, uint32_t seen) {
    if (looks_at_clock() && ((seen & DIRECT_WOKEN) != 0
                                 ? is_late(mx)
                                 : !sbt_lot_busy() && (uint32_t)(sbt_now_ns() / 1000) - mx->handoff_us > HANDOFF_US)) {
        unlock_to_sleeper(mx);
        return;
    }
    sbt_self.passed_over++;
    while ((seen & DIRECT_ACTIVE) != 0)
        if (__atomic_compare_exchange_n(&mx->state, &seen, seen & ~(uint32_t)(DIRECT_LOCKED | DIRECT_ACTIVE), true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    if ((__atomic_fetch_sub(&mx->state, DIRECT_LOCKED, __ATOMIC_RELEASE) & (DIRECT_QUEUED | DIRECT_WOKEN)) ==
        DIRECT_QUEUED)
        wake_after_unlock(mx);
}

/* Whatever else the word says. True if the caller should give the core away now. */
static SBT_NOINLINE bool unlock_slow(struct sbt_mutex *mx, uint32_t seen) {
    if ((seen & DIRECT_LOCKED) == 0 || (seen & DIRECT_HANDED) != 0)
        return false; /* unlocked twice, which is undefined; under glibc such a program goes on, so it does here */
    enum direct_spun spun = (seen & DIRECT_SPUN) != 0 ? direct_mutex_spun(mx) : DIRECT_SPUN_NOT;
    if ((seen & (DIRECT_QUEUED | DIRECT_ACTIVE)) == (DIRECT_QUEUED | DIRECT_ACTIVE)) {
        unlock_to_active(mx, seen);
    } else if ((seen & DIRECT_QUEUED) != 0 &&
               ((seen & DIRECT_WOKEN) != 0 ? looks_at_clock() && is_late(mx) : !sbt_lot_busy())) {
        unlock_to_sleeper(mx);
    } else {
        sbt_self.passed_over += (seen & DIRECT_WOKEN) != 0;
        if ((__atomic_fetch_sub(&mx->state, DIRECT_LOCKED, __ATOMIC_RELEASE) & (DIRECT_QUEUED | DIRECT_WOKEN)) ==
            DIRECT_QUEUED)
            wake_after_unlock(mx);
    }
    return spun != DIRECT_SPUN_NOT && direct_mutex_gives_way(spun);
}

int direct_mutex_unlock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    bool one_comes = seen == (DIRECT_LOCKED | DIRECT_QUEUED | DIRECT_WOKEN);
    if (SBT_LIKELY(seen == DIRECT_LOCKED || (one_comes && !(looks_at_clock() && is_late(mx))))) {
        seen = __atomic_fetch_sub(&mx->state, DIRECT_LOCKED, __ATOMIC_RELEASE);
        if (SBT_UNLIKELY((seen & (DIRECT_QUEUED | DIRECT_WOKEN)) == DIRECT_QUEUED))
            wake_after_unlock(mx);
        if (one_comes)
            sbt_self.passed_over++; /* now: a store before the atomic operation would make that wait */
    } else if (one_comes) {
        unlock_to_sleeper(mx);
    } else if (unlock_slow(mx, seen)) {
        sbt_give_way_to_contexts();
    }
    return 0;
}

int direct_mutex_destroy(pthread_mutex_t *m) {
    return (__atomic_load_n(&sbt_mutex_of(m)->state, __ATOMIC_RELAXED) & DIRECT_LOCKED) != 0 ? EBUSY : 0;
}

void direct_mutex_adopt(pthread_mutex_t *m, struct sbt_waiter *w, struct sbt_bucket *to) {
    w->role = SBT_WAITS_FOR_MUTEX;
    sbt_bucket_append(to, w, sbt_mutex_of(m));
}

uint32_t *direct_mutex_wake_moved(pthread_mutex_t *m, struct sbt_bucket *b) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    bool expected = (seen & DIRECT_WOKEN) != 0 && sbt_bucket_expects(b, mx);
    if (!expected && (seen & DIRECT_WOKEN) != 0)
        sbt_bucket_count_on_none(b, mx);
    /*
     * One step with the test for LOCKED: an owner that unlocks before QUEUED is set would wake nobody. (WOKEN stays as
     * it was seen: it changes under the bucket lock only.)
     */
    for (;;) {
        /* ACTIVE too: a forked child's may be stale, and the unlock would rely on it. */
        uint32_t want = (seen & ~(uint32_t)(DIRECT_WOKEN | DIRECT_ACTIVE)) | DIRECT_QUEUED |
                        (expected || !(seen & DIRECT_LOCKED) ? DIRECT_WOKEN : 0);
        if (__atomic_compare_exchange_n(&mx->state, &seen, want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    return expected || (seen & DIRECT_LOCKED) != 0 ? NULL : wake_one(mx, b);
}

void direct_mutex_wake_told(pthread_mutex_t *m, uint32_t *word) {
    wake_or_next(sbt_mutex_of(m), word);
}
