/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parking lot: waiters queued by the address they wait on, only while they wait.
 *
 * A waiter is a record on the waiting thread's own stack; a bucket is a lock and a FIFO list of the waiters whose keys
 * hash to it. Nothing is created for an object and nothing can be left behind by one that is freed without destroy.
 *
 * Invariants
 *  - `next`, `prev`, `key`, `inflight`, `counted_on`, `beaten`, `told_ns` and membership in a list are protected by the
 *    lock of the bucket of `key`. Moving a waiter to another key needs the locks of both buckets.
 *  - `state` is the word the waiter sleeps on. Whoever ends a wait stores its last word there and afterwards touches
 *    the waiter's address for a futex wake only, which tolerates that the stack has been reused.
 *  - A waiter told SBT_WAITER_RETRY is still in its list (inflight) and takes itself out; one told
 *    SBT_WAITER_GRANTED has been taken out by whoever told it.
 *  - Lock order: at most two buckets, lower address first. No other lock is ever taken under a bucket lock.
 *
 * Fork: the buckets lie in memory that the kernel wipes in a forked child (MADV_WIPEONFORK), because the waiters of
 * the parent do not exist there; all-zero is an empty, unlocked bucket.
 *
 * Signals: a handler that interrupts its own thread inside the lot must not enter it (sbt_lot_busy). It polls
 * instead of queueing, and where it would have to wake somebody it calls sbt_lot_wake_later.
 */
#ifndef SBT_WAIT_LOT_H
#define SBT_WAIT_LOT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/thread.h"
#include "wait/adapt.h"
#include "wait/guard.h"

enum sbt_waiter_state {
    SBT_WAITER_WAITING, /* looking at `state`, awake */
    SBT_WAITER_PARKED,  /* asleep on `state`, or about to be */
    SBT_WAITER_RETRY,   /* woken: try again yourself; still queued */
    SBT_WAITER_GRANTED  /* what it waited for is its own; no longer queued */
};

enum sbt_waiter_role { SBT_WAITS_FOR_MUTEX, SBT_WAITS_FOR_COND, SBT_WAITS_TO_READ, SBT_WAITS_TO_WRITE };

struct sbt_waiter {
    struct sbt_waiter *next, *prev;
    const void *key;        /* written under the bucket locks, read by its own thread without (atomic) */
    uint32_t state;         /* enum sbt_waiter_state, atomic */
    uint8_t role;           /* enum sbt_waiter_role */
    uint32_t *wake_word;    /* from sbt_waiter_word before it is queued: by what it is woken; NULL: `state` */
    bool inflight;          /* told to retry, has not taken itself out or gone back to waiting yet */
    bool counted_on;        /* and unlocks leave the rest asleep, because it will look; one of a queue at most */
    bool beaten;            /* told to retry once, looked, and others had been quicker */
    bool alone;             /* condition waiters: a signal has chosen it, and no broadcast; written before it is told */
    pthread_mutex_t *mutex; /* condition waiters: the mutex to move to; NULL: never move */
    uint32_t generation;    /* of the process in which it was queued: in a forked child it is in no list */
    uint64_t since_ns;      /* when it began to wait */
    uint64_t told_ns;       /* counted_on: since when */
    const struct sbt_active
        *active; /* condition waiters: how they have waited so far, for the signaller to learn from */
};

struct sbt_bucket {
    struct sbt_guard guard;
    struct sbt_waiter *head, *tail;
} __attribute__((aligned(64)));

/* Once, before the process has a second thread if possible; the lot works without, but then a fork needs reset. */
void sbt_lot_start(void);

/* In a forked child whose kernel does not wipe: forget every waiter. Idempotent. */
void sbt_lot_fork_child(void);

/* May this thread enter the lot now? False only in a signal handler that interrupted the thread inside it. */
static inline bool sbt_lot_busy(void) {
    return sbt_self.in_lot != 0;
}

/* From such a handler: have every waiter woken as soon as the interrupted thread leaves the lot. */
void sbt_lot_wake_later(void);

/* Lock the bucket(s) of a key. May block for as long as another thread is inside the same bucket (no waiting there). */
struct sbt_bucket *sbt_lot_lock(const void *key);
void sbt_lot_unlock(struct sbt_bucket *bucket);
/* Both buckets, which may be the same one; unlock with sbt_lot_unlock_pair. */
void sbt_lot_lock_pair(const void *key_a, const void *key_b, struct sbt_bucket **a, struct sbt_bucket **b);
void sbt_lot_unlock_pair(struct sbt_bucket *a, struct sbt_bucket *b);

/* Lock the bucket in which `w` waits now, whatever key it has been moved to. */
struct sbt_bucket *sbt_lot_lock_waiter(struct sbt_waiter *w);

void sbt_bucket_append(struct sbt_bucket *b, struct sbt_waiter *w, const void *key);
void sbt_bucket_remove(struct sbt_bucket *b, struct sbt_waiter *w);
/* First waiter with that key, or the next one after `w`; NULL if none. */
struct sbt_waiter *sbt_bucket_first(const struct sbt_bucket *b, const void *key);
struct sbt_waiter *sbt_bucket_next(const struct sbt_waiter *w, const void *key);
/* First that is not inflight, and whether any is. */
struct sbt_waiter *sbt_bucket_first_waiting(const struct sbt_bucket *b, const void *key);
bool sbt_bucket_any_inflight(const struct sbt_bucket *b, const void *key);

/* Who was told longer ago than this and has not looked has no core, or is held up in a signal handler. */
#ifndef SBT_OVERDUE_NS
#define SBT_OVERDUE_NS 1000000u
#endif

#ifndef SBT_STARVES_UNBEATEN
#define SBT_STARVES_UNBEATEN false /* the model test hands over to everybody */
#endif

/* Is one counted on, and not overdue? Reads the clock if one is. */
bool sbt_bucket_expects(const struct sbt_bucket *b, const void *key);
/* Count on none of them, until one is told again. */
void sbt_bucket_count_on_none(const struct sbt_bucket *b, const void *key);

/* What to put into wake_word: how the calling thread is woken from here on. */
uint32_t *sbt_waiter_word(void);

/*
 * End a wait: store `state`. Returns the word to pass to sbt_waiter_wake once the bucket is unlocked, NULL if the
 * waiter is awake and sees it by itself. Releases everything done before to the waiter, which reads it with acquire.
 */
uint32_t *sbt_waiter_tell(struct sbt_waiter *w, enum sbt_waiter_state state);

/*
 * Tell it to try again, for whoever counts on it: returns the word whatever it does, so that waking it says whether it
 * slept. The word may be gone by then.
 */
uint32_t *sbt_waiter_tell_to_retry(struct sbt_waiter *w);

/*
 * Wake it. False: it was to be woken but did not sleep. It is on its way to sleep, or in a signal handler that has
 * interrupted it and may last: whoever counts on it should wake another one too.
 */
bool sbt_waiter_wake(uint32_t *word);

#endif
