/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-write locks. As in glibc, readers are let in while others read even if a writer waits (a thread may lock for
 * reading twice), unless the lock's kind is PREFER_WRITER_NONRECURSIVE. The word and its table: rwlock.h.
 *
 * While QUEUED is set, an unlock that leaves no thread inside goes through the bucket's lock, unless a thread is about
 * to look. There it decides which waiters are next (direct_policy_let_in): all queued readers at once, by granting; or
 * the first writer, which is notified to try. For a writer that has starved the lock is kept (HANDED). That is taken
 * back if the writer was not asleep: it may be in a signal handler that waits for other threads, as with a mutex. So
 * the flags are acted upon under the bucket's lock only: rwlock_queue.c.
 */
#include <errno.h>

#include "core/object.h"
#include "core/probes.h"
#include "core/thread.h"
#include "engine/direct/direct.h"
#include "engine/direct/policy.h"
#include "engine/direct/rwlock_queue.h"
#include "engine/direct/self.h"
#include "os/arch.h"
#include "wait/park.h"
#include "wait/yield_gate.h"

#define RETRY_YIELDS 3
#define LOOK_AT_CLOCK_EVERY 16 /* unlocks that rely on an active or a notified waiter */

static int unlock_after_look(struct sbt_rwlock *lx);

static void let_in_next(struct sbt_rwlock *lx) {
    sbt_lot_unpark_one(direct_rwlock_key(lx), direct_rwlock_next_in, direct_rwlock_not_asleep);
}

/* ---- taking it ---- */

/*
 * `hold` has been given up, and `seen` was the state before. Let in the next waiters, unless the threads inside will do
 * it. After a writer they are let in whatever the count says: a count seen then is of readers on their way out again.
 * While those go, other readers may come in to stay, and beside them the queued readers must be let in.
 */
static void after_release(struct sbt_rwlock *lx, uint32_t seen, uint32_t hold) {
    bool empty = hold == RW_WRITER || ((seen - RW_READER) & (RW_WRITER | RW_READERS)) == 0;
    if (empty && (seen & (RW_QUEUED | RW_WOKEN)) == RW_QUEUED)
        let_in_next(lx);
}

static inline uint32_t bar_of(const struct sbt_rwlock *lx) {
    return direct_rwlock_prefers_writers(lx) ? RW_WRITER | RW_WRITERS : RW_WRITER;
}

/* `seen`: the word before the reader has counted itself in. */
static inline bool may_read(const struct sbt_rwlock *lx, uint32_t seen) {
    return (seen & bar_of(lx)) == 0 && seen < RW_READERS_MAX;
}

/* A reader that may not has counted itself in. EBUSY, or EAGAIN with too many readers. */
static int leave_again(struct sbt_rwlock *lx, uint32_t seen) {
    int r = (seen & bar_of(lx)) != 0 ? EBUSY : EAGAIN;
    after_release(lx, __atomic_fetch_sub(&lx->state, RW_READER, __ATOMIC_RELEASE), RW_READER);
    return r;
}

/*
 * Readers count themselves in with an addition, which unlike a compare-and-swap cannot fail because of other readers; a
 * reader that finds that it may not enter counts itself out again, as if it had been inside.
 * Acquire pairs with the release of the unlocks. 0, or what leave_again says.
 */
static inline int take_read(struct sbt_rwlock *lx) {
    if ((__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & bar_of(lx)) != 0)
        return EBUSY;
    uint32_t seen = __atomic_fetch_add(&lx->state, RW_READER, __ATOMIC_ACQUIRE);
    return SBT_LIKELY(may_read(lx, seen)) ? 0 : leave_again(lx, seen);
}

static int take(struct sbt_rwlock *lx, const struct sbt_lot_role *role) {
    return direct_rwlock_is_writing(role) ? direct_rwlock_take_write(lx) : take_read(lx);
}

/* ---- waiting ---- */

/* A notified thread yields to a writer that is inside before it sleeps again. It takes the lock in validate. */
static bool retry(struct sbt_waiter *w) {
    const struct sbt_rwlock *lx = direct_rwlock_of(w->key);
    for (int i = 0; w->wake_word == NULL && i < RETRY_YIELDS; i++)
        if ((__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & (RW_WRITER | RW_HANDED)) != RW_WRITER ||
            !sbt_yield_gate_offer(&sbt_yield_gate))
            break;
    return false;
}

static int try_unqueued(struct sbt_waiter *w) {
    return take(direct_rwlock_of(w->key), w->role);
}

static void abandoned(struct sbt_waiter *w, int result) {
    if (result == 0)
        unlock_after_look(direct_rwlock_of(w->key));
}

#define ROLE(is_cancelable)                                                                                            \
    {                                                                                                                  \
        .validate = direct_rwlock_validate, .successor = direct_rwlock_successor, .after = direct_rwlock_not_asleep,   \
        .passes_on = true, .held_up = direct_rwlock_held_up, .retry = retry, .poll = try_unqueued,                     \
        .abandoned = abandoned, .cancelable = (is_cancelable)                                                          \
    }
/* With asynchronous cancellation a waiter can be cancelled, as under glibc. */
const struct sbt_lot_role direct_rwlock_waits[DIRECT_RWLOCK_ROLES] = {
    [DIRECT_READS] = ROLE(false),
    [DIRECT_WRITES] = ROLE(false),
    [DIRECT_READS | DIRECT_ASYNCHRONOUSLY] = ROLE(true),
    [DIRECT_WRITES | DIRECT_ASYNCHRONOUSLY] = ROLE(true),
};

/* The lock has been taken by a thread that was awake: what unlocks may have relied on is made good. */
static void taken_awake(struct sbt_rwlock *lx, const struct sbt_lot_role *role, uint32_t seen, int r) {
    /* A writer's compare-and-swap has cleared it; while a reader is inside no unlock relies on it. */
    if ((seen & RW_ACTIVE) != 0)
        __atomic_fetch_and(&lx->state, ~(uint32_t)RW_ACTIVE, __ATOMIC_RELAXED);
    if (r == 0 && !direct_rwlock_is_writing(role) &&
        (seen & (RW_QUEUED | RW_WOKEN)) == RW_QUEUED) /* sleeping readers may come in beside it */
        let_in_next(lx);
}

/* Look as long as looking pays. EBUSY: it no longer does. */
static int take_awake(struct sbt_rwlock *lx, const struct sbt_lot_role *role, struct sbt_active *active) {
    do {
        int r = take(lx, role);
        uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
        if (r != EBUSY) {
            taken_awake(lx, role, seen, r);
            return r;
        }
        /* A reader that queued writers keep out, if the lock is of that kind, could not do what an unlock relies on. */
        bool barred = !direct_rwlock_is_writing(role) && direct_rwlock_prefers_writers(lx) && (seen & RW_WRITERS) != 0;
        if ((seen & (RW_QUEUED | RW_ACTIVE | RW_WOKEN)) == RW_QUEUED && !barred)
            __atomic_fetch_or(&lx->state, RW_ACTIVE, __ATOMIC_RELAXED);
    } while (sbt_active_step(active));
    return EBUSY;
}

static void unlock_held(void *lock) {
    unlock_after_look(lock);
}

static SBT_NOINLINE int lock_slow(struct sbt_rwlock *lx, const struct sbt_lot_role *role,
                                  const struct sbt_deadline *deadline) {
    struct sbt_active active;
    struct sbt_waiter w;
    int type, r = sbt_deadline_check(deadline);
    w.role = role;
    w.active = &active;
    if (r != 0)
        return r;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return sbt_lot_park(direct_rwlock_key(lx), &w, deadline);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        w.role = role + DIRECT_ASYNCHRONOUSLY;
    sbt_lot_relied_on(&w, direct_rwlock_key(lx));
    sbt_active_begin(&active, &lx->adapt);
    r = take_awake(lx, role, &active);
    if (r == EBUSY) {
        w.since_ns = sbt_active_since_ns(&active);
        r = sbt_lot_park(direct_rwlock_key(lx), &w, deadline);
    }
    sbt_lot_not_relied_on();
    sbt_active_end(&active, &lx->adapt);
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        direct_be_asynchronous_again(unlock_held, r == 0 ? lx : NULL);
    return r;
}

static bool mend_forked(struct sbt_rwlock *lx) {
    return sbt_fork_generation() != 0 &&
           (__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & (RW_HANDED | RW_WRITERS)) != 0 &&
           sbt_lot_ask(direct_rwlock_key(lx), direct_rwlock_mend);
}

int direct_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = take_read(lx);
    return r == EBUSY && SBT_UNLIKELY(mend_forked(lx)) ? take_read(lx) : r;
}

static bool is_writer(const struct sbt_rwlock *lx) {
    return __atomic_load_n(&lx->writer, __ATOMIC_RELAXED) ==
           sbt_thread_owner(); /* relaxed: only its own id can match */
}

/*
 * The caller has lately found writers or a queue: it looks before it changes the word, so that it need not change it
 * back, or go through the bucket. Otherwise it does not: on some processors a look behind the atomic operation of the
 * last call makes this one wait, and where other cores have the word it is got twice.
 */
static inline bool looks_first(void) {
    return SBT_UNLIKELY(direct_self.rw_looks != 0);
}

static void looked(bool in_vain) {
    if (!in_vain)
        direct_self.rw_looks = DIRECT_UNLOCK_LOOKS;
    else if (direct_self.rw_looks != 0)
        direct_self.rw_looks--;
}

/* The first try had the result r. */
static int read_else(pthread_rwlock_t *l, const struct sbt_deadline *deadline, int r) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    looked(r == 0);
    if (r == EBUSY)
        r = is_writer(lx) ? EDEADLK : lock_slow(lx, &direct_rwlock_waits[DIRECT_READS], deadline);
    if (r == 0)
        SBT_PROBE_THREADS1(rdlock_acquire_read, l);
    return r;
}

static SBT_NOINLINE int read_after_look(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    return read_else(l, deadline, take_read(sbt_rwlock_of(l)));
}

static SBT_NOINLINE int read_after_leaving(pthread_rwlock_t *l, const struct sbt_deadline *deadline, uint32_t seen) {
    return read_else(l, deadline, leave_again(sbt_rwlock_of(l), seen));
}

int direct_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    if (looks_first())
        return read_after_look(l, deadline);
    uint32_t seen = __atomic_fetch_add(&lx->state, RW_READER, __ATOMIC_ACQUIRE);
    if (SBT_UNLIKELY(!may_read(lx, seen)))
        return read_after_leaving(l, deadline, seen);
    SBT_PROBE_THREADS1(rdlock_acquire_read, l);
    return 0;
}

int direct_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = direct_rwlock_take_write(lx);
    if (r == EBUSY && SBT_UNLIKELY(mend_forked(lx)))
        r = direct_rwlock_take_write(lx);
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    return r;
}

/* The caller has taken it. */
static inline int own(struct sbt_rwlock *lx) {
    __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    SBT_PROBE_THREADS1(wrlock_acquire_write, lx);
    return 0;
}

static SBT_NOINLINE int write_slow(struct sbt_rwlock *lx, const struct sbt_deadline *deadline) {
    if (is_writer(lx))
        return EDEADLK;
    int r = lock_slow(lx, &direct_rwlock_waits[DIRECT_WRITES], deadline);
    return r == 0 ? own(lx) : r;
}

int direct_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    return SBT_LIKELY(direct_rwlock_take_write(lx) == 0) ? own(lx) : write_slow(lx, deadline);
}

/* Has the queue been left alone for long enough? Reads the clock now and then only. Relaxed: a hint. */
static bool queue_is_due(struct sbt_rwlock *lx) {
    uint32_t passed = __atomic_load_n(&lx->passed_over, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&lx->passed_over, passed, __ATOMIC_RELAXED);
    return passed % LOOK_AT_CLOCK_EVERY == 0 &&
           direct_policy_queue_is_due(sbt_now_ns(), __atomic_load_n(&lx->looked_us, __ATOMIC_RELAXED));
}

/* Unlock, and leave the queue to a thread that will look. False: decide about the queue instead. */
static bool unlock_to_one_awake(struct sbt_rwlock *lx, uint32_t seen, uint32_t hold) {
    while ((seen & RW_QUEUED) != 0 && (seen & (RW_ACTIVE | RW_WOKEN)) != 0 &&
           (hold == RW_WRITER || (seen & RW_READERS) == RW_READER)) {
        uint32_t relied_on = (seen & RW_WOKEN) != 0 ? 0 : RW_ACTIVE;
        if (__atomic_compare_exchange_n(&lx->state, &seen, (seen - hold) & ~relied_on, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static SBT_NOINLINE int unlock_after_look(struct sbt_rwlock *lx) {
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    uint32_t hold = (seen & RW_WRITER) != 0 ? RW_WRITER : RW_READER;
    bool due = false;
    looked((seen & RW_QUEUED) == 0);
    if ((seen & (RW_WRITER | RW_READERS)) == 0 || (seen & RW_HANDED) != 0)
        return 0; /* unlocked twice: undefined; a program that gets away with it under glibc goes on here */
    if (hold == RW_WRITER)
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY((seen & RW_QUEUED) != 0) && (seen & (RW_ACTIVE | RW_WOKEN)) != 0) {
        due = queue_is_due(lx);
        if (!due && unlock_to_one_awake(lx, seen, hold))
            return 0;
    }
    if (hold == RW_WRITER && (seen & RW_QUEUED) != 0 && SBT_LIKELY(!sbt_lot_busy())) {
        /* without letting others in between */
        sbt_lot_unpark_one(direct_rwlock_key(lx), direct_rwlock_after_writer, direct_rwlock_not_asleep);
        return 0;
    }
    seen = __atomic_fetch_sub(&lx->state, hold, __ATOMIC_RELEASE);
    after_release(lx, due ? seen & ~(uint32_t)RW_WOKEN : seen, hold);
    return 0;
}

/* `seen`: the word before a reader has counted itself out. Others that had no lock either may have done so before it.
 */
static inline bool had_no_reader(uint32_t seen) {
    return seen - RW_READER >= RW_READERS_BELOW_0;
}

/*
 * A reader has counted itself out, and `seen`, the word before, is unusual. If there was no reader it counts itself in
 * again: see unlock_after_look. A thread that came meanwhile has found the lock taken, and may sleep by now.
 */
static SBT_NOINLINE int unlocked_otherwise(struct sbt_rwlock *lx, uint32_t seen) {
    looked(false);
    if ((seen & RW_WRITER) != 0 || had_no_reader(seen)) {
        seen = __atomic_add_fetch(&lx->state, RW_READER, __ATOMIC_RELAXED) + RW_READER; /* it has released nothing */
        if ((seen & RW_WRITER) != 0)
            return unlock_after_look(lx);
    }
    after_release(lx, seen, RW_READER);
    return 0;
}

int direct_rwlock_unlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    if (looks_first())
        return unlock_after_look(lx);
    if (SBT_UNLIKELY(__atomic_load_n(&lx->writer, __ATOMIC_RELAXED) != 0)) {
        uint32_t alone = RW_WRITER;
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
        if (SBT_LIKELY(__atomic_compare_exchange_n(&lx->state, &alone, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)))
            return 0;
        return unlock_after_look(lx);
    }
    uint32_t seen = __atomic_fetch_sub(&lx->state, RW_READER, __ATOMIC_RELEASE);
    if (SBT_UNLIKELY((seen & (RW_WRITER | RW_QUEUED)) != 0 || had_no_reader(seen)))
        return unlocked_otherwise(lx, seen);
    return 0;
}

/* As under glibc, also of a lock that a thread holds: a program may take another result for a failure. */
int direct_rwlock_destroy(pthread_rwlock_t *l) {
    (void)l;
    return 0;
}
