/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parking lot: waiters queued by the address they wait on, only while they wait. The idea and its name are WebKit's
 * (WTF::ParkingLot); folly has it too. Any address is a key; nothing is created for an object, and an object that is
 * freed without destroy leaves nothing behind.
 *
 * A waiter is a record on the waiting thread's own stack. A bucket is a lock and a list: the list has the waiters of
 * all keys with the same hash value, in the order of their coming. Real-time waiters stand before others, the highest
 * priority first. A role is what one kind of object decides for its waiters: a struct of functions, which the lot calls
 * with the bucket locked. Everything else happens here:
 *
 *  1. A thread queues its waiter, and asks the role whether it must wait at all (`validate`).
 *  2. If it must, the thread waits: actively for as long as its caller has set up active waiting (`active`), then
 *     asleep. A waiter for a mutex has waited actively before it queues; a waiter for a condition does it in the queue.
 *  3. A waker locks the bucket, chooses a waiter, marks it, notifies it, unlocks the bucket and wakes it.
 *  4. A waiter that was notified GRANTED has what it waited for, and is out of the queue. A waiter that was notified
 *     RETRY keeps its place: it looks (`retry`), and leaves the queue or waits again.
 *  5. A waiter that was notified RETRY is the designated waker, as in nsync: wakers rely on its look, and leave the
 *     others asleep. If it was not asleep, it may be in a signal handler that lasts. The waker learns that when it
 *     wakes the waiter, and then chooses the next waiter as well (`after`).
 *  6. A signal handler that interrupts a waiter may last as well. Before it runs, the role takes back what wakers rely
 *     on (`held_up`), and the next waiter is notified.
 *  7. A waiter leaves the queue when its time is up, when it is cancelled, and when its thread ends.
 *
 * Invariants
 *  - `next`, `prev`, `key`, `role`, `inflight`, `designated`, `lost`, `notified_ns` and membership in a list are
 *    protected by the lock of the bucket of `key`. Moving a waiter to another key needs the locks of both buckets.
 *  - `state` is the word that the waiter sleeps on. The thread that ends a wait stores the last value there. Afterwards
 *    it uses the waiter's address for a futex wake only, which does no harm if the stack has been reused.
 *  - Lock order: at most two buckets, lower address first. No other lock is taken under a bucket's lock. Sleepers are
 *    woken after the bucket has been unlocked, with one exception: of more than SBT_LOT_BATCH threads that are granted
 *    at once, the ones beyond are woken by a system call under the bucket's lock. Fibers go into a wake list, which has
 *    no limit.
 *
 * Fork: the buckets lie in memory that the kernel wipes in a forked child (MADV_WIPEONFORK), because the waiters of
 * the parent do not exist there; all-zero is an empty, unlocked bucket.
 *
 * Signals: the program's handlers are deferred while their thread is in the lot, and from the notification of a waiter
 * to its wake-up, because other threads do not choose a notified waiter again. Some handlers cannot be deferred. One
 * that has interrupted its own thread inside the lot (sbt_lot_busy) must not queue: it polls. Where it would have to
 * wake a waiter, the interrupted thread does so when it leaves the lot.
 */
#ifndef SBT_WAIT_PARKING_LOT_H
#define SBT_WAIT_PARKING_LOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/thread.h"
#include "os/lock.h"
#include "switch/switch.h"
#include "wait/adapt.h"

enum sbt_waiter_state {
    SBT_WAITER_WAITING, /* looking at `state`, awake */
    SBT_WAITER_PARKED,  /* asleep on `state`, or about to be */
    SBT_WAITER_RETRY,   /* notified: look yourself; still queued */
    SBT_WAITER_GRANTED  /* what it waited for is its own; no longer queued */
};

struct sbt_lot_role;

/* Set by its thread before it parks: role, active, since_ns. The rest is the lot's. */
struct sbt_waiter {
    struct sbt_waiter *next, *prev;
    const void *key;                      /* written under the bucket locks, read by its own thread without (atomic) */
    const struct sbt_lot_role *role;      /* changes when the waiter is moved to another kind of object */
    const struct sbt_lot_role *parked_as; /* the one that its own thread knows of */
    struct sbt_active *active;            /* its active waiting: how it has waited, and how long it may go on; NULL:
                                             it does not wait actively */
    uint32_t *wake_word;                  /* from sbt_waiter_word: the word it is woken by; NULL: `state` */
    uint32_t state;                       /* enum sbt_waiter_state, atomic */
    uint32_t generation; /* of the process in which it was queued: in a forked child it is in no list */
    uint8_t priority;    /* real-time, of its thread; 0: none */
    bool inflight;       /* notified to retry, and has neither left nor gone back to waiting yet */
    bool designated;     /* the designated waker: at most one of a key's waiters */
    bool lost;           /* has lost the race: was notified to retry, and found that another thread had been quicker */
    bool again;          /* `validate` has said before that it has to wait */
    bool queued;         /* is in the list of its key */
    bool sleeps;         /* before_sleep is behind it; its own */
    bool held_up;        /* a handler has run on its thread since it last went to sleep, or runs still; atomic: set
                            under the bucket's lock */
    int result;          /* EBUSY, or what it has left the queue with; its own */
    /*
     * A handler has run since it last looked (`looks_after_handler`); its own. Not within eight bytes of `inflight`:
     * where both are tested a compiler would load them together, and that load would wait until the stores of single
     * bytes before it are in the cache.
     */
    bool interrupted;
    uint64_t since_ns;    /* when it began to wait */
    uint64_t notified_ns; /* when it was last notified to retry; 0: never */
};
_Static_assert(offsetof(struct sbt_waiter, interrupted) >= offsetof(struct sbt_waiter, inflight) + 8, "no one load");

struct sbt_bucket {
    struct sbt_lock lock;
    struct sbt_waiter *head, *tail;
} __attribute__((aligned(64)));

/* The waiters of one key while the bucket is locked; and the waiters to wake when it has been unlocked. */
#define SBT_LOT_BATCH 32
struct sbt_lot_queue {
    const void *key;
    struct sbt_bucket *bucket;
    struct sbt_waiter *(*after)(struct sbt_lot_queue *queue); /* as below; a choice may set another */
    uint32_t *notified;                                       /* word of the waiter that was notified to retry, NULL */
    uint32_t *here;                                           /* word of the waiter that was granted here, NULL */
    struct sbt_wake_list fibers;                              /* granted */
    bool has_fibers;
    uint32_t n_words;
    uint32_t *word[SBT_LOT_BATCH]; /* of threads, granted */
};

/*
 * Choose the waiter to notify to retry, or NULL. The bucket is locked: the function neither blocks nor enters the lot.
 * It also changes the object as the notification requires, because the object is not touched afterwards.
 */
typedef struct sbt_waiter *sbt_lot_choose(struct sbt_lot_queue *queue);

/* What an object of some kind decides for its waiters. NULL where nothing is to be decided. */
struct sbt_lot_role {
    /*
     * Bucket locked. The waiter is in the queue; it has just come, has been notified to retry, or has run out of time.
     * 0: it has what it waits for. EBUSY: it has to wait, and the object's word says so. Any other value is the result
     * of the wait.
     */
    int (*validate)(struct sbt_lot_queue *queue, struct sbt_waiter *w);
    /*
     * Bucket locked. A waiter has just come: asked in place of `validate` then, with the key. EBUSY: it waits. Any
     * other value is the result of the wait, and no successor is asked for. NULL: `validate` is asked.
     */
    int (*joined)(const void *key, struct sbt_waiter *w);
    /*
     * Bucket locked, after `validate`: the waiter has left the queue with that result, or, with `passes_on`, it waits
     * (EBUSY). Wakers do not rely on it any more. Returns the waiter to notify now; if that one does not sleep, `after`
     * chooses the next.
     */
    struct sbt_waiter *(*successor)(struct sbt_lot_queue *queue, struct sbt_waiter *w, int result);
    sbt_lot_choose *after;
    bool passes_on; /* `successor` is asked for a waiter that waits too */
    /*
     * Bucket locked. A handler of the program is about to run on the waiter's thread, which is awake; it may be queued,
     * notified, or not yet in the lot (sbt_lot_relied_on). Wakers do not rely on it any more. Returns as `successor`.
     */
    struct sbt_waiter *(*held_up)(struct sbt_lot_queue *queue, struct sbt_waiter *w);
    /* Once, before it waits for the first time, when it can be notified already. Not 0: it does not wait after all. */
    int (*before_sleep)(struct sbt_waiter *w);
    /* Notified to retry: true, it has what it waits for. May spin and yield. */
    bool (*retry)(struct sbt_waiter *w);
    /* As validate, of a thread that cannot queue and looks now and then. NULL: one look is enough. */
    int (*poll)(struct sbt_waiter *w);
    /* The thread is cancelled or ends. The waiter is out of the queue, with that result. */
    void (*abandoned)(struct sbt_waiter *w, int result);
    bool cancelable; /* the wait is a cancellation point */
    /*
     * The wait may fail with EINTR, as a system call does. A handler that restarts such a call makes the waiter look
     * again: `validate` is asked, with `interrupted` set, and may end the wait.
     */
    bool looks_after_handler;
};

/* Once, before the process has a second thread if possible; the lot works without, but then a fork needs reset. */
void sbt_lot_start(void);

/* In a forked child, if the kernel does not wipe: forget every waiter. Idempotent. */
void sbt_lot_fork_child(void);

/* False: this thread may enter the lot now. True only in a signal handler that interrupted the thread inside it. */
static inline bool sbt_lot_busy(void) {
    return sbt_self.in_lot != 0;
}

/*
 * From now on wakers may rely on the caller, which is awake, to look: for its role's `held_up`. Until sbt_lot_park
 * returns, or sbt_lot_not_relied_on. The caller has deferred asynchronous cancellation, which would leave the waiter.
 */
static inline void sbt_lot_relied_on(struct sbt_waiter *w, const void *key) {
    w->key = key;
    w->state = SBT_WAITER_WAITING;
    w->inflight = w->designated = w->queued = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler on this thread reads the waiter */
    sbt_self.waiter = w;
}
static inline void sbt_lot_not_relied_on(void) {
    sbt_self.waiter = NULL;
}

/*
 * Does no thread wait for `key`, or for a key of the same bucket? What the caller wrote before is in order before the
 * look, and a waiter's look (`validate`, after a fence) is in order after its queueing: so either this sees the waiter,
 * or the waiter sees what the caller wrote.
 */
bool sbt_lot_is_empty(const void *key);

/*
 * Park: wait for `key` until the deadline. 0, ETIMEDOUT, EINTR if the role allows it, or what validate or before_sleep
 * returned. Blocks. If the
 * waiter was moved meanwhile, to a queue of another role, that role's functions have decided, and there is no deadline.
 * What the waker did before is acquired. The caller has deferred asynchronous cancellation.
 */
int sbt_lot_park(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline);

/*
 * Unpark one: notify the chosen waiter to retry, and wake it; as long as the notified waiter does not sleep, choose by
 * `after`. Where the lot may not be entered (sbt_lot_busy), every waiter is notified a little later.
 */
void sbt_lot_unpark_one(const void *key, sbt_lot_choose *choose, sbt_lot_choose *after);

/*
 * Ask about the waiters, with the bucket locked; false where the lot may not be entered. The answer may be old when it
 * comes. A thread that asks before it frees an object does not keep the bucket locked for those that take the object.
 * In a forked child the question may also mend a word that stands for waiters of the parent.
 */
bool sbt_lot_ask(const void *key, bool (*ask)(const struct sbt_lot_queue *queue));

/* What becomes of a waiter: SBT_LOT_MOVE, only with a key to move to; SBT_LOT_SKIP, it waits on, and is not counted. */
enum sbt_lot_verdict { SBT_LOT_GRANT, SBT_LOT_MOVE, SBT_LOT_STOP, SBT_LOT_SKIP };
typedef enum sbt_lot_verdict sbt_lot_decide(struct sbt_lot_queue *queue, struct sbt_waiter *w, void *argument);

/*
 * Ask of one waiter after the other, first come first and without those in flight, what becomes of it, until
 * SBT_LOT_STOP. Both buckets are locked meanwhile; `to` may be NULL, and is not `from`. After moves, `choose` and
 * `after` choose of the waiters of `to`; they may be NULL. Returns how many were granted or moved. Where the lot may
 * not be entered: 0, and as unpark_one.
 */
uint32_t sbt_lot_sort(const void *from, const void *to, sbt_lot_decide *decide, void *argument, sbt_lot_choose *choose,
                      sbt_lot_choose *after);

/*
 * The same of the first waiter alone, the usual one of a signal: SBT_LOT_GRANT, or SBT_LOT_STOP, and it waits on.
 * `decide` looks at the queue by sbt_lot_first and sbt_lot_next.
 */
void sbt_lot_unpark_first(const void *key, sbt_lot_decide *decide, void *argument);

/* Grant the first n waiters what they wait for; exactly how many. Waiters in flight are passed over. */
uint32_t sbt_lot_unpark_some(const void *key, uint32_t n);
static inline uint32_t sbt_lot_unpark_all(const void *key) {
    return sbt_lot_unpark_some(key, UINT32_MAX);
}

/* Move the first n waiters, asleep or not, behind those of another key; exactly how many. */
uint32_t sbt_lot_requeue(const void *from, const void *to, uint32_t n);

/* ---- for choices, the bucket being locked ---- */

static inline struct sbt_waiter *sbt_lot_with_key(struct sbt_waiter *w, const void *key) {
    while (w != NULL && w->key != key)
        w = w->next;
    return w;
}

/* The first waiter, or the next one after `w`; NULL: none. */
static inline struct sbt_waiter *sbt_lot_first(const struct sbt_lot_queue *queue) {
    return sbt_lot_with_key(queue->bucket->head, queue->key);
}
static inline struct sbt_waiter *sbt_lot_next(const struct sbt_lot_queue *queue, const struct sbt_waiter *w) {
    return sbt_lot_with_key(w->next, queue->key);
}
/* The first one that is not inflight. */
struct sbt_waiter *sbt_lot_first_waiting(const struct sbt_lot_queue *queue);
/* The designated waker; NULL: none. */
struct sbt_waiter *sbt_lot_designated(const struct sbt_lot_queue *queue);
/* There is no designated waker, until a waiter is notified to retry again. */
void sbt_lot_designate_none(const struct sbt_lot_queue *queue);
/* Out of the queue, and granted what it waits for; it is woken when the bucket has been unlocked. */
void sbt_lot_grant(struct sbt_lot_queue *queue, struct sbt_waiter *w);
/*
 * The same, of one waiter at most, if its fiber waits by switching: when the bucket has been unlocked it runs in the
 * caller's place (sbt_fiber_run_here). False: it does not wait so, or in a handler, and nothing has been done.
 */
bool sbt_lot_grant_here(struct sbt_lot_queue *queue, struct sbt_waiter *w);

#endif
