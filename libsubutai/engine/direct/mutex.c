/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes. The state is in place, and the table of its word is in direct.h. Waiters are in the parking lot. There are
 * two modes, as in Go's sync.Mutex.
 *
 * Normal mode: an unlock frees the mutex, and the first thread to come has it. A running thread takes a free mutex at
 * once, where handing it to a sleeper would cost a context switch per section. The unlock also notifies one sleeper to
 * try. It leaves all asleep if another thread is certain to look:
 *  - a sleeper that has been notified already and is on its way (WOKEN: the designated waker);
 *  - a thread that is awake and is about to look (ACTIVE).
 * A further sleeper would only lose the race. So under contention sleepers sleep, and the running threads pass the
 * mutex on among themselves.
 *
 * Hand-over (starvation mode): a sleeper starves if it has waited for a millisecond, has been notified and has lost the
 * race. To that sleeper an unlock hands the mutex: it leaves LOCKED set, sets HANDED, and only a notified waiter may
 * take the mutex. A mutex is handed over at most once a millisecond. So many starving waiters are served one by one,
 * and do not turn every unlock into a context switch. The last of n starving waiters has the mutex after about n + 1
 * milliseconds, and at most two sections of other threads more.
 *
 * A hand-over is taken back when the waiter was not asleep. It may be in a signal handler that waits for other
 * threads, which wait for the mutex:
 *   1. The waiter is about to sleep; a signal handler interrupts it, and waits for thread B.
 *   2. The owner hands the mutex to the waiter. The wake-up finds that the waiter does not sleep.
 *   3. Thread B wants the mutex. Were it kept for the waiter, B, the handler and the waiter would wait for ever.
 * So the owner frees it after step 2, and notifies the next sleeper. A handler may also interrupt a waiter between its
 * wake-up and its look. Before that handler runs, the same is done (held_up). There is a third remedy for a waiter that
 * gets no core: a thread that queues while the designated waker is overdue takes the mutex itself (stale_bits).
 *
 * Why an unlock may leave sleepers asleep: the designated waker looks at the word after WOKEN was set, and clears WOKEN
 * in the same step in which it sees LOCKED (validate). In two steps an unlock could come between, see WOKEN, and notify
 * no waiter, while the designated waker goes to sleep.
 *
 * A limit that passes: the waiter looks once more under the bucket's lock (validate). If the mutex is free, or handed
 * over and this waiter was notified, the waiter takes it and does not time out. Otherwise it clears WOKEN if it is the
 * designated waker, and leaves the queue.
 *
 * When to spin, when a designated waker is late, when a hand-over is due: policy.c. What is decided under the bucket's
 * lock: mutex_queue.c.
 *
 * After the atomic operation that makes a mutex free, its next owner may destroy it. So the mutex is touched after that
 * in one case only: under the bucket's lock, while a waiter is queued. A queued waiter is inside its lock call, which
 * proves that the mutex exists.
 */
#include <errno.h>

#include "core/object.h"
#include "core/probes.h"
#include "core/thread.h"
#include "engine/direct/delegate.h"
#include "engine/direct/direct.h"
#include "engine/direct/mutex.h"
#include "engine/direct/policy.h"
#include "engine/direct/self.h"
#include "os/arch.h"
#include "switch/switch.h"
#include "wait/park.h"
#include "wait/yield_gate.h"

#define RETRY_YIELDS 3 /* looks of a notified waiter before it sleeps again */

static SBT_NOINLINE void wake_after_unlock(struct sbt_mutex *mx) {
    sbt_lot_unpark_one(mx, direct_mutex_wake_unless_woken, direct_mutex_wake_another);
}

/* ---- waiting ---- */

/* A notified waiter may also take a mutex that is handed over. Acquire pairs with the release in the unlocks. */
static bool take_notified(uint32_t *word, uint32_t *seen) {
    *seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((*seen & (DIRECT_LOCKED | DIRECT_HANDED)) != DIRECT_LOCKED)
        if (__atomic_compare_exchange_n(word, seen, (*seen | DIRECT_LOCKED) & ~(DIRECT_HANDED | DIRECT_ACTIVE), true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* A notified waiter that is a fiber looks for as long as it may spin; any other yields to the owner a few times. */
static bool retry(struct sbt_waiter *w) {
    struct sbt_mutex *mx = direct_mutex_of(w->key);
    struct sbt_active again = {0};
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    if (w->wake_word != NULL && (seen & DIRECT_HANDED) == 0)
        direct_mutex_spin(mx, &again);
    int yields = RETRY_YIELDS;
    do {
        if (take_notified(&mx->state, &seen)) {
            if (again.forced)
                direct_mutex_learn_taken(mx);
            return true;
        }
    } while (w->wake_word != NULL ? again.forced && sbt_active_step(&again)
                                  : yields-- > 0 && sbt_yield_gate_offer(&sbt_yield_gate));
    return false;
}

static int try_unqueued(struct sbt_waiter *w) {
    uint32_t seen;
    return direct_mutex_take(&direct_mutex_of(w->key)->state, &seen) ? 0 : EBUSY;
}

static void abandoned(struct sbt_waiter *w, int result) {
    if (result == 0)
        direct_mutex_unlock((pthread_mutex_t *)direct_mutex_of(w->key));
}

#define ROLE(is_cancelable)                                                                                            \
    {                                                                                                                  \
        .validate = direct_mutex_validate, .successor = direct_mutex_successor, .held_up = direct_mutex_held_up,       \
        .retry = retry, .poll = try_unqueued, .abandoned = abandoned, .cancelable = (is_cancelable)                    \
    }
const struct sbt_lot_role direct_mutex_waits = ROLE(false);
/* With asynchronous cancellation a waiter can be cancelled, as under glibc: a thread that waits for itself ends so. */
static const struct sbt_lot_role waits_asynchronously = ROLE(true);

/* Look as long as looking pays. ACTIVE is set before a look, so an unlock may rely on that look. */
static bool take_awake(struct sbt_mutex *mx, struct sbt_active *active) {
    uint32_t seen;
    direct_mutex_spin(mx, active);
    do {
        if (direct_mutex_take(&mx->state, &seen)) {
            if (active->forced) {
                direct_mutex_learn_taken(mx);
                direct_mutex_learn_luck(mx, active->start_ns == 0); /* it has not begun to yield */
            }
            return true;
        }
        if ((seen & (DIRECT_QUEUED | DIRECT_ACTIVE)) == DIRECT_QUEUED)
            __atomic_fetch_or(&mx->state, DIRECT_ACTIVE, __ATOMIC_RELAXED);
    } while (sbt_active_step(active));
    if (active->forced)
        direct_mutex_learn_luck(mx, false);
    return false;
}

/* A fiber queues for a delegated mutex without a look: its section is to run where the mutex's data is. */
static int travel(struct sbt_mutex *mx, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    *w->active = (struct sbt_active){0};
    w->since_ns = 0; /* a reading of the clock saved: it counts as starving */
    sbt_switch_about_to_wait();
    return sbt_lot_park(mx, w, deadline);
}

static void unlock_held(void *mutex) {
    direct_mutex_unlock(mutex);
}

static SBT_NOINLINE int lock_slow(struct sbt_mutex *mx, const struct sbt_deadline *deadline) {
    struct sbt_active active;
    struct sbt_waiter w;
    int type, r = sbt_deadline_check(deadline);
    w.role = &direct_mutex_waits;
    w.active = &active;
    if (r != 0)
        return r;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return sbt_lot_park(mx, &w, deadline);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        w.role = &waits_asynchronously;
    uint64_t timed_ns = SBT_UNLIKELY(direct_auto) ? direct_auto_begin_wait() : 0;
    if (direct_is_delegated(mx) && sbt_switch_roams()) {
        if (SBT_UNLIKELY(sbt_switch_servers != 0)) /* its last section of the mutex was ended by another thread */
            sbt_switch_end_section(mx);
        r = travel(mx, &w, deadline);
    } else {
        sbt_lot_relied_on(&w, mx);
        sbt_active_begin(&active, &mx->adapt);
        if (take_awake(mx, &active)) {
            sbt_lot_not_relied_on();
        } else {
            w.since_ns = sbt_active_since_ns(&active);
            r = sbt_lot_park(mx, &w, deadline);
        }
        sbt_active_end(&active, &mx->adapt);
    }
    if (SBT_UNLIKELY(timed_ns != 0) && r == 0)
        direct_auto_begin_section(mx, timed_ns);
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        direct_be_asynchronous_again(unlock_held, r == 0 ? mx : NULL);
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

/* Not inlined: then the way of a free mutex needs no stack frame. */
static SBT_NOINLINE int lock_taken(pthread_mutex_t *m) {
    int r = lock_slow(sbt_mutex_of(m), NULL);
    if (r == 0)
        SBT_PROBE_THREADS1(mutex_acquired, m);
    return r;
}

int direct_mutex_lock(pthread_mutex_t *m) {
    if (SBT_UNLIKELY(!set_locked(&sbt_mutex_of(m)->state)))
        return lock_taken(m);
    SBT_PROBE_THREADS1(mutex_acquired, m);
    return 0;
}

int direct_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    uint32_t seen;
    return direct_mutex_take(&sbt_mutex_of(m)->state, &seen) ? 0 : lock_slow(sbt_mutex_of(m), deadline);
}

/* ---- unlocking ---- */

static SBT_NOINLINE void unlock_to_sleeper(struct sbt_mutex *mx) {
    sbt_lot_unpark_one(mx, direct_mutex_free_or_hand_over, direct_mutex_wake_another);
}

/*
 * An unlock that leaves sleepers asleep relies on the designated waker. Now and then it looks whether that waker is
 * late. A look counts twice, so that a thread that takes several mutexes in turn does not always look at the same one.
 */
static inline bool looks_at_clock(void) {
    if (SBT_LIKELY(!direct_policy_looks_at_clock(direct_self.passed_over)))
        return false;
    direct_self.passed_over++;
    return true;
}

static SBT_NOINLINE bool has_late_waker(const struct sbt_mutex *mx) {
    bool cores_may_idle = direct_policy_cores_may_idle(sbt_usable_cpus(), sbt_switch_takes_part());
    return direct_policy_looks_into_queue(direct_self.passed_over, cores_may_idle) &&
           sbt_lot_ask(mx, direct_mutex_is_late);
}

/* Free it. If there are sleepers and no designated waker, this thread notifies one. */
static inline void free_it(struct sbt_mutex *mx) {
    uint32_t seen = __atomic_fetch_sub(&mx->state, DIRECT_LOCKED, __ATOMIC_RELEASE);
    if (SBT_UNLIKELY((seen & (DIRECT_QUEUED | DIRECT_WOKEN)) == DIRECT_QUEUED))
        wake_after_unlock(mx);
}

/* There are sleepers, and a thread is awake that will look: free it and leave them asleep. */
static void unlock_to_active(struct sbt_mutex *mx, uint32_t seen) {
    direct_self.passed_over++;
    while ((seen & DIRECT_ACTIVE) != 0)
        if (__atomic_compare_exchange_n(&mx->state, &seen, seen & ~(uint32_t)(DIRECT_LOCKED | DIRECT_ACTIVE), true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    free_it(mx);
}

/* There are sleepers: is one of them to be served now, rather than a thread that will look? */
static bool is_sleepers_turn(const struct sbt_mutex *mx, uint32_t seen) {
    if ((seen & DIRECT_WOKEN) != 0)
        return looks_at_clock() && has_late_waker(mx);
    if ((seen & DIRECT_ACTIVE) != 0)
        return looks_at_clock() && !sbt_lot_busy() && direct_policy_may_hand_over(sbt_now_ns(), mx->handed_us);
    return !sbt_lot_busy();
}

/* The unlock of a word with any other bits. True if the caller should yield its core now. */
static SBT_NOINLINE bool unlock_slow(struct sbt_mutex *mx, uint32_t seen) {
    if ((seen & DIRECT_LOCKED) == 0 || (seen & DIRECT_HANDED) != 0)
        return false; /* unlocked twice, which is undefined; under glibc such a program goes on, so it does here */
    if (SBT_UNLIKELY((seen & DIRECT_TIMED) != 0))
        seen = direct_auto_end_section(mx);
    bool hands_over =
        (seen & (DIRECT_QUEUED | DIRECT_WOKEN)) == DIRECT_QUEUED && direct_is_delegated(mx) && !sbt_lot_busy();
    if (SBT_UNLIKELY((seen & DIRECT_SERVED) != 0)) {
        sbt_switch_end_section(mx);
        seen = hands_over ? seen : direct_delegate_not_served(mx);
    }
    if (hands_over) {
        direct_delegate_unlock(mx);
        return false;
    }
    enum direct_spun spun = (seen & DIRECT_SPUN) != 0 ? direct_mutex_spun(mx) : DIRECT_SPUN_NOT;
    if ((seen & DIRECT_QUEUED) != 0 && is_sleepers_turn(mx, seen)) {
        unlock_to_sleeper(mx);
    } else if ((seen & (DIRECT_QUEUED | DIRECT_ACTIVE)) == (DIRECT_QUEUED | DIRECT_ACTIVE)) {
        unlock_to_active(mx, seen);
    } else {
        direct_self.passed_over += (seen & DIRECT_WOKEN) != 0;
        free_it(mx);
    }
    return spun != DIRECT_SPUN_NOT && direct_mutex_unlock_yields(spun);
}

static SBT_NOINLINE int unlock_otherwise(struct sbt_mutex *mx, uint32_t seen) {
    bool one_comes = seen == (DIRECT_LOCKED | DIRECT_QUEUED | DIRECT_WOKEN);
    if (one_comes && !(looks_at_clock() && has_late_waker(mx))) {
        free_it(mx);
        direct_self.passed_over++; /* now: a store before the atomic operation would make that wait */
    } else if (one_comes) {
        unlock_to_sleeper(mx);
    } else {
        bool yields = unlock_slow(mx, seen);
        if (SBT_UNLIKELY((seen & DIRECT_SERVED) != 0))
            direct_delegate_leave_server();
        if (yields)
            sbt_wait_yield_to_fibers();
    }
    direct_self.unlock_looks = DIRECT_UNLOCK_LOOKS;
    return 0;
}

static SBT_NOINLINE int unlock_after_look(struct sbt_mutex *mx) {
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED);
    if (seen != DIRECT_LOCKED)
        return unlock_otherwise(mx, seen);
    free_it(mx);
    direct_self.unlock_looks--;
    return 0;
}

/*
 * The caller's mutexes have had other bits lately: it looks first, since an exchange in vain takes as long as one that
 * succeeds. Otherwise it does not, and needs no stack frame: on some processors a look behind the lock's atomic
 * operation, or a store before this one, makes this one wait (docs/tuning.md, DIRECT_UNLOCK_LOOKS).
 */
int direct_mutex_unlock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t seen = DIRECT_LOCKED;
    if (SBT_UNLIKELY(direct_self.unlock_looks != 0))
        return unlock_after_look(mx);
    if (SBT_UNLIKELY(!__atomic_compare_exchange_n(&mx->state, &seen, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)))
        return unlock_otherwise(mx, seen);
    return 0;
}

int direct_mutex_destroy(pthread_mutex_t *m) {
    return (__atomic_load_n(&sbt_mutex_of(m)->state, __ATOMIC_RELAXED) & DIRECT_LOCKED) != 0 ? EBUSY : 0;
}
