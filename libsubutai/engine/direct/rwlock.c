/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-write locks. As in glibc, readers are let in while others read even if a writer waits (a thread may lock for
 * reading twice), unless the lock's kind is PREFER_WRITER_NONRECURSIVE.
 *
 * | bits    | meaning                                  | set and cleared                                             |
 * |---------|------------------------------------------|-------------------------------------------------------------|
 * | WRITER  | held by a writer                         | its CAS, or granted under the bucket lock; its unlock       |
 * | QUEUED  | the lot has waiters with this key        | under the bucket lock                                       |
 * | WRITERS | writers are among them                   | under the bucket lock                                       |
 * | ACTIVE  | somebody awake will look once more, so   | a waiter that looks again and again, while QUEUED; whoever  |
 * |         | one unlock need not decide who is next   | takes or queues, and the unlock that relies on it           |
 * | WOKEN   | a writer that was told to try will look  | under the bucket lock                                       |
 * |         | once more: no unlock need decide either  |                                                             |
 * | HANDED  | with WRITER: nobody's, kept for a queued | under the bucket lock                                       |
 * |         | writer that was told to try              |                                                             |
 * | READERS | how many hold it to read, times READER   | their CAS, or granted under the bucket lock; their unlock   |
 *
 * Illegal: WRITER with readers; WRITERS, WOKEN or HANDED without QUEUED, but in a forked child, whose queue is empty.
 * While QUEUED is set, an unlock that leaves nobody inside goes through the bucket lock, unless somebody is about to
 * look, and decides who is next: all queued readers at once, by granting; or the first writer, which is woken to try,
 * the lock being kept for it if it has starved and taken back should it not have been asleep, for then it may be in a
 * signal handler that waits for others. So what the flags say is only ever acted upon under the bucket lock.
 */
#include <errno.h>

#include "core/arch.h"
#include "core/handlers.h"
#include "core/object.h"
#include "core/thread.h"
#include "engine/direct/direct.h"
#include "wait/adapt.h"
#include "wait/futex.h"
#include "wait/park.h"
#include "wait/turn.h"

enum { WRITER = 1, QUEUED = 2, WRITERS = 4, ACTIVE = 8, WOKEN = 16, HANDED = 32, READER = 64 };
#define READERS (~(uint32_t)(READER - 1))
#define READERS_MAX 0xF0000000u /* the rest is room for those that count themselves out again */
#define STARVING_NS 2000000u
#define HANDOFF_US 1000u /* at most this often it is kept for a writer, which costs a context switch */
#define RETRY_YIELDS 3
#define SETTLE_US 1000u        /* at least this often the queue's turn comes although somebody else will look */
#define LOOK_AT_CLOCK_EVERY 16 /* unlocks that rely on an active or a woken waiter */
#define WAKE_BATCH 32

/* What the lot knows a rwlock by: not what a mutex or condition goes by that may lie there when an unlock ends. */
static const void *key_of(const struct sbt_rwlock *lx) {
    return (const char *)lx + 2;
}

static bool nonrecursive(const struct sbt_rwlock *lx) {
    return lx->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static void settle(struct sbt_rwlock *lx, struct sbt_bucket *b, uint32_t hold);

/*
 * What was held has been given up, or nothing (0) by one that others relied on to look, and `seen` was the state before
 * that: see who is next, unless that is for those inside. After a writer in any case: a count seen then is of readers
 * on their way out again, and while they go others may come in to stay, beside whom the queued readers must be let in.
 */
static void after_release(struct sbt_rwlock *lx, uint32_t seen, uint32_t hold) {
    uint32_t inside = hold == WRITER ? 0 : hold == READER ? (seen - READER) & (WRITER | READERS) : seen & WRITER;
    if ((seen & (QUEUED | WOKEN)) != QUEUED || inside != 0)
        return;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        sbt_lot_wake_later();
    else
        settle(lx, sbt_lot_lock(key_of(lx)), 0);
}

/*
 * Readers count themselves in with an addition, which unlike a compare-and-swap cannot fail because of other readers;
 * one that finds that it may not enter counts itself out again, as if it had been inside.
 * Acquire pairs with the release of whoever unlocked. EBUSY, or EAGAIN with too many readers.
 */
static int take_read(struct sbt_rwlock *lx) {
    uint32_t bar = nonrecursive(lx) ? WRITER | WRITERS : WRITER;
    if ((__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & bar) != 0)
        return EBUSY;
    uint32_t seen = __atomic_fetch_add(&lx->state, READER, __ATOMIC_ACQUIRE);
    if (SBT_LIKELY((seen & bar) == 0 && seen < READERS_MAX))
        return 0;
    int r = (seen & bar) != 0 ? EBUSY : EAGAIN;
    after_release(lx, __atomic_fetch_sub(&lx->state, READER, __ATOMIC_RELEASE), READER);
    return r;
}

static int take_write(struct sbt_rwlock *lx) {
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while ((seen & (WRITER | READERS)) == 0)
        if (__atomic_compare_exchange_n(&lx->state, &seen, (seen | WRITER) & ~(uint32_t)ACTIVE, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return 0;
    return EBUSY;
}

static int take(struct sbt_rwlock *lx, enum sbt_waiter_role role) {
    return role == SBT_WAITS_TO_READ ? take_read(lx) : take_write(lx);
}

/* The same under the bucket lock, which counting oneself out might need; for one that was told to try it may be kept.
 */
static int take_queued(struct sbt_rwlock *lx, const struct sbt_waiter *w) {
    if (w->role == SBT_WAITS_TO_WRITE) {
        if (!w->inflight || (__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & HANDED) == 0)
            return take_write(lx);
        __atomic_fetch_and(&lx->state, ~(uint32_t)HANDED, __ATOMIC_ACQUIRE);
        return 0;
    }
    uint32_t bar = nonrecursive(lx) ? WRITER | WRITERS : WRITER;
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while ((seen & bar) == 0 && seen < READERS_MAX)
        if (__atomic_compare_exchange_n(&lx->state, &seen, seen + READER, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
    return (seen & bar) != 0 ? EBUSY : EAGAIN;
}

/* Who waits, under the bucket lock. */
struct queue {
    uint32_t total, writers;
    uint32_t readers_waiting;  /* readers that are not inflight */
    struct sbt_waiter *writer; /* the first that is not */
    bool expected;             /* somebody is, and counted on, and may be: not for too long */
};

static struct queue look(const struct sbt_rwlock *lx, const struct sbt_bucket *b, uint64_t now_ns) {
    struct queue q = {0, 0, 0, NULL, false};
    for (struct sbt_waiter *w = sbt_bucket_first(b, key_of(lx)); w != NULL; w = sbt_bucket_next(w, key_of(lx))) {
        q.total++;
        q.expected = q.expected || (w->counted_on && now_ns - w->told_ns <= SBT_OVERDUE_NS);
        if (w->role == SBT_WAITS_TO_WRITE) {
            q.writers++;
            q.writer = q.writer != NULL || w->inflight ? q.writer : w;
        } else if (!w->inflight) {
            q.readers_waiting++;
        }
    }
    return q;
}

/* Grant the lock, already counted in the state, to every queued reader that is not inflight. */
static void tell_readers(struct sbt_rwlock *lx, struct sbt_bucket *b, uint32_t *words[], uint32_t *n_words) {
    for (struct sbt_waiter *w = sbt_bucket_first_waiting(b, key_of(lx)), *next; w != NULL; w = next) {
        next = sbt_bucket_next(w, key_of(lx));
        if (w->inflight || w->role != SBT_WAITS_TO_READ)
            continue;
        sbt_bucket_remove(b, w);
        uint32_t *word = sbt_waiter_tell(w, SBT_WAITER_GRANTED);
        if (word != NULL && *n_words < WAKE_BATCH)
            words[(*n_words)++] = word;
        else
            sbt_waiter_wake(word);
    }
}

/*
 * Give up `hold` (WRITER, READER or 0), let in who can go in now, and make the flags say who is left. Unlocks the
 * bucket. After the compare-and-swap only the waiters that are still queued are touched, not the lock. What to wake the
 * writer by that has been told to try; NULL: none. Who has been told before is `counted_on` to look, or not.
 */
static uint32_t *let_in(struct sbt_rwlock *lx, struct sbt_bucket *b, uint32_t hold, bool counted_on) {
    uint64_t now = sbt_now_ns();
    struct queue q = look(lx, b, now);
    if (hold == 0 && q.total == 0) { /* the lock may be gone, and needs nothing */
        sbt_lot_unlock(b);
        return NULL;
    }
    __atomic_store_n(&lx->settled_us, (uint32_t)(now / 1000), __ATOMIC_RELAXED);
    bool prefer_writers = nonrecursive(lx) && q.writers != 0, expects = counted_on && q.expected, writers_turn;
    bool hand_over_due = q.writer != NULL && now - q.writer->since_ns > STARVING_NS &&
                         (uint32_t)(now / 1000) - lx->handed_us > HANDOFF_US;
    uint32_t *words[WAKE_BATCH], n_words = 0, *woken = NULL;
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED), want, granted;
    do {
        uint32_t given_up = !expects && (seen & HANDED) != 0 ? WRITER : hold;
        want = (seen - given_up) & ~(uint32_t)(QUEUED | WRITERS | WOKEN | (expects ? 0 : HANDED));
        granted = 0;
        if ((want & WRITER) == 0 && !prefer_writers &&
            (want & READERS) / READER + q.readers_waiting <= READERS / READER)
            granted = q.readers_waiting;
        writers_turn = granted == 0 && (want & (WRITER | READERS)) == 0 && q.writer != NULL && !expects;
        want += granted * READER;
        if (writers_turn)
            want |= hand_over_due ? WOKEN | WRITER | HANDED : WOKEN;
        want |= expects ? WOKEN : 0;
        want |= q.total > granted ? QUEUED : 0;
        want |= q.writers > 0 ? WRITERS : 0;
    } while (!__atomic_compare_exchange_n(&lx->state, &seen, want, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));

    if (!expects && (seen & WOKEN) != 0)
        sbt_bucket_count_on_none(b, key_of(lx));
    if (granted > 0) {
        tell_readers(lx, b, words, &n_words);
    } else if (writers_turn) {
        if (hand_over_due)
            lx->handed_us = (uint32_t)(now / 1000); /* it is in the queue yet, so the lock is there */
        q.writer->inflight = q.writer->counted_on = true;
        q.writer->told_ns = now;
        woken = sbt_waiter_tell_to_retry(q.writer);
    }
    sbt_lot_unlock(b);
    for (uint32_t i = 0; i < n_words; i++)
        sbt_waiter_wake(words[i]);
    return woken;
}

/*
 * The same, and wake that writer; as long as the one that was told does not sleep, do not count on it either. Who has
 * been told is not told again by others: no handler of this thread's comes between that and the wake-up.
 */
static void settle(struct sbt_rwlock *lx, struct sbt_bucket *b, uint32_t hold) {
    sbt_handlers_hold();
    uint32_t *woken = let_in(lx, b, hold, true);
    while (!sbt_waiter_wake(woken))
        woken = let_in(lx, sbt_lot_lock(key_of(lx)), 0, false);
    sbt_handlers_release();
}

/* Out of the queue, under the bucket lock, which is unlocked. It may have been what kept others out. */
static void leave(struct sbt_rwlock *lx, struct sbt_bucket *b, struct sbt_waiter *w) {
    sbt_bucket_remove(b, w);
    if (sbt_bucket_first(b, key_of(lx)) == NULL) {
        __atomic_fetch_and(&lx->state, ~(uint32_t)(QUEUED | WRITERS | WOKEN), __ATOMIC_RELAXED);
        sbt_lot_unlock(b);
    } else {
        settle(lx, b, 0);
    }
}

/* The waiter, told to retry or out of time, either holds the lock, or leaves, or waits again. 0, ETIMEDOUT, EBUSY. */
static int resolve(struct sbt_rwlock *lx, struct sbt_waiter *w, bool out_of_time) {
    struct sbt_bucket *b = sbt_lot_lock(key_of(lx));
    if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED) {
        sbt_lot_unlock(b);
        return 0;
    }
    int r = take_queued(lx, w) == 0 ? 0 : out_of_time ? ETIMEDOUT : EBUSY;
    if (r == EBUSY) {
        w->inflight = w->counted_on = false;
        __atomic_store_n(&w->state, SBT_WAITER_WAITING, __ATOMIC_RELAXED);
        settle(lx, b, 0); /* the lock may be free by now, and whoever freed it counted on this waiter */
    } else {
        leave(lx, b, w);
    }
    return r;
}

static int wait_in_queue(struct sbt_rwlock *lx, struct sbt_waiter *w, const struct sbt_deadline *deadline,
                         struct sbt_active *active) {
    for (;;) {
        int waited = sbt_waiter_wait(w, deadline, active, false);
        int r = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == SBT_WAITER_GRANTED ? 0 : EBUSY;
        for (int i = 0; r == EBUSY && waited == 0 && i < RETRY_YIELDS; i++) {
            if (w->wake_word != NULL || (__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & (WRITER | HANDED)) != WRITER)
                break;
            if (!sbt_turn_offer())
                break;
        }
        if (r == EBUSY)
            r = resolve(lx, w, waited == ETIMEDOUT);
        if (r != EBUSY)
            return r;
    }
}

struct queued {
    struct sbt_rwlock *lx;
    struct sbt_waiter *w;
};

/* The thread ends while it waits (pthread_exit in a signal handler): its stack must not stay in the queue. */
static void abandon(void *argument) {
    struct queued *queued = argument;
    if (resolve(queued->lx, queued->w, true) == 0)
        direct_rwlock_unlock((pthread_rwlock_t *)queued->lx);
}

static int lock_by_polling(struct sbt_rwlock *lx, enum sbt_waiter_role role, const struct sbt_deadline *deadline) {
    int r;
    while ((r = take(lx, role)) == EBUSY) {
        sbt_pause_ns(200000);
        if (deadline != NULL && sbt_deadline_passed(deadline))
            return ETIMEDOUT;
    }
    return r;
}

static SBT_NOINLINE int lock_slow(struct sbt_rwlock *lx, enum sbt_waiter_role role,
                                  const struct sbt_deadline *deadline) {
    struct sbt_active active;
    int type, r;

    sbt_active_begin(&active, &lx->adapt);
    do {
        r = take(lx, role);
        uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
        if (r != EBUSY) {
            if ((seen & ACTIVE) !=
                0) /* a writer's compare-and-swap has done it; while a reader is inside nobody relies on it */
                __atomic_fetch_and(&lx->state, ~(uint32_t)ACTIVE, __ATOMIC_RELAXED);
            /* An unlock may have relied on this reader: others that sleep may come in beside it. */
            if (r == 0 && role == SBT_WAITS_TO_READ && (seen & (QUEUED | WOKEN)) == QUEUED) {
                if (SBT_UNLIKELY(sbt_lot_busy()))
                    sbt_lot_wake_later();
                else
                    settle(lx, sbt_lot_lock(key_of(lx)), 0);
            }
            goto learned;
        }
        /* A reader that queued writers keep out, if the lock is of that kind, could not do what an unlock relies on. */
        bool barred = role == SBT_WAITS_TO_READ && nonrecursive(lx) && (seen & WRITERS) != 0;
        if ((seen & (QUEUED | ACTIVE | WOKEN)) == QUEUED && !barred)
            __atomic_fetch_or(&lx->state, ACTIVE, __ATOMIC_RELAXED);
    } while (sbt_active_step(&active));
    r = sbt_deadline_check(deadline);
    if (r != 0 || SBT_UNLIKELY(sbt_lot_busy())) {
        /* An unlock may have relied on this thread. */
        after_release(lx, __atomic_fetch_and(&lx->state, ~(uint32_t)ACTIVE, __ATOMIC_RELAXED), 0);
        return r != 0 ? r : lock_by_polling(lx, role, deadline);
    }

    struct sbt_waiter w = {
        .role = (uint8_t)role, .since_ns = sbt_active_since_ns(&active), .wake_word = sbt_waiter_word()};
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type); /* an asynchronous cancel must not unwind a queued waiter */
    struct sbt_bucket *b = sbt_lot_lock(key_of(lx));
    /* Flags before the last try: an unlock that comes after it sees them and goes through the bucket lock. */
    uint32_t flags = role == SBT_WAITS_TO_WRITE ? QUEUED | WRITERS : QUEUED;
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED), stale;
    do { /* a WOKEN of one who does not come, or of the process that this one was forked from: as of a mutex */
        stale = 0;
        if ((seen & (WOKEN | HANDED)) != 0 && !sbt_bucket_expects(b, key_of(lx)))
            stale = (seen & HANDED) != 0 ? WOKEN | HANDED | WRITER : WOKEN;
    } while (!__atomic_compare_exchange_n(&lx->state, &seen, (seen & ~(ACTIVE | stale)) | flags, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    if (stale != 0)
        sbt_bucket_count_on_none(b, key_of(lx));
    sbt_bucket_append(b, &w, key_of(lx));
    r = take_queued(lx, &w);
    if (r != EBUSY) {
        leave(lx, b, &w);
        goto out;
    }
    /* An unlock may have relied on this one, which could not go in, or not beside others that sleep and could. */
    if ((__atomic_load_n(&lx->state, __ATOMIC_RELAXED) & WRITER) == 0)
        settle(lx, b, 0);
    else
        sbt_lot_unlock(b);
    struct queued queued = {lx, &w};
    pthread_cleanup_push(abandon, &queued);
    r = wait_in_queue(lx, &w, deadline, &active);
    pthread_cleanup_pop(0);
out:
    pthread_setcanceltype(type, NULL);
learned:
    sbt_active_end(&active, &lx->adapt);
    return r;
}

/*
 * What the flags of a process say that this one was forked from, where nobody waits: kept for a writer that is not
 * here, or to be kept free of readers for one.
 */
static bool mend_forked(struct sbt_rwlock *lx) {
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    if (SBT_LIKELY((seen & (HANDED | WRITERS)) == 0) || sbt_thread_process_generation() == 0 || sbt_lot_busy())
        return false;
    struct sbt_bucket *b = sbt_lot_lock(key_of(lx));
    bool stale = sbt_bucket_first(b, key_of(lx)) == NULL;
    seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while (stale && !__atomic_compare_exchange_n(
                        &lx->state, &seen,
                        seen & ~(uint32_t)(QUEUED | WRITERS | WOKEN | HANDED | ((seen & HANDED) != 0 ? WRITER : 0)),
                        true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    sbt_lot_unlock(b);
    return stale;
}

int direct_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = take_read(lx);
    return r == EBUSY && SBT_UNLIKELY(mend_forked(lx)) ? take_read(lx) : r;
}

static bool is_writer(const struct sbt_rwlock *lx) {
    return __atomic_load_n(&lx->writer, __ATOMIC_RELAXED) == sbt_thread_tid(); /* relaxed: only its own id can match */
}

int direct_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = take_read(lx);
    if (SBT_LIKELY(r == 0))
        return 0;
    if (r == EBUSY && is_writer(lx))
        return EDEADLK;
    return r == EBUSY ? lock_slow(lx, SBT_WAITS_TO_READ, deadline) : r;
}

int direct_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = take_write(lx);
    if (r == EBUSY && SBT_UNLIKELY(mend_forked(lx)))
        r = take_write(lx);
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_tid(), __ATOMIC_RELAXED);
    return r;
}

int direct_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    int r = take_write(lx);
    if (SBT_UNLIKELY(r != 0)) {
        if (is_writer(lx))
            return EDEADLK;
        r = lock_slow(lx, SBT_WAITS_TO_WRITE, deadline);
    }
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_tid(), __ATOMIC_RELAXED);
    return r;
}

/* Has the queue been left alone for long enough? Reads the clock now and then only. Relaxed: a hint. */
static bool queue_is_due(struct sbt_rwlock *lx) {
    uint32_t passed = __atomic_load_n(&lx->passed_over, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&lx->passed_over, passed, __ATOMIC_RELAXED);
    return passed % LOOK_AT_CLOCK_EVERY == 0 &&
           (uint32_t)(sbt_now_ns() / 1000) - __atomic_load_n(&lx->settled_us, __ATOMIC_RELAXED) > SETTLE_US;
}

/* Unlock, leaving who is next to one that will look. False: do it the other way. */
static bool unlock_to_one_awake(struct sbt_rwlock *lx, uint32_t seen, uint32_t hold) {
    while ((seen & QUEUED) != 0 && (seen & (ACTIVE | WOKEN)) != 0 && (hold == WRITER || (seen & READERS) == READER)) {
        uint32_t relied_on = (seen & WOKEN) != 0 ? 0 : ACTIVE;
        if (__atomic_compare_exchange_n(&lx->state, &seen, (seen - hold) & ~relied_on, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

int direct_rwlock_unlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    uint32_t hold = (seen & WRITER) != 0 ? WRITER : READER;
    bool due = false;
    if ((seen & (WRITER | READERS)) == 0 || (seen & HANDED) != 0)
        return 0; /* nobody holds it: undefined; a program that gets away with it under glibc goes on here */
    if (hold == WRITER)
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY((seen & QUEUED) != 0) && (seen & (ACTIVE | WOKEN)) != 0) {
        due = queue_is_due(lx);
        if (!due && unlock_to_one_awake(lx, seen, hold))
            return 0;
    }
    if (hold == WRITER) {
        if ((seen & QUEUED) != 0 && SBT_LIKELY(!sbt_lot_busy())) {
            settle(lx, sbt_lot_lock(key_of(lx)), WRITER); /* hands over without letting others in between */
            return 0;
        }
    }
    seen = __atomic_fetch_sub(&lx->state, hold, __ATOMIC_RELEASE);
    after_release(lx, due ? seen & ~(uint32_t)WOKEN : seen, hold);
    return 0;
}

int direct_rwlock_destroy(pthread_rwlock_t *l) {
    return (__atomic_load_n(&sbt_rwlock_of(l)->state, __ATOMIC_RELAXED) & (WRITER | READERS)) != 0 ? EBUSY : 0;
}
