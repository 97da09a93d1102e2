/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/parking_lot.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/priority.h"
#include "core/probes.h"
#include "os/clock.h"
#include "os/futex.h"
#include "wait/park.h"
#include "wait/wake_gap.h"

/* Enough that 1000 threads on as many objects rarely share a bucket; 32 KiB, a multiple of the page for madvise. */
#define N_BUCKETS 512

static union {
    struct sbt_bucket bucket[N_BUCKETS];
    char pages[(N_BUCKETS * sizeof(struct sbt_bucket) + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX];
} lot __attribute__((aligned(SBT_PAGE_MAX)));

static void interrupt(struct sbt_waiter *w);

void sbt_lot_start(void) {
    sbt_handlers_interrupt = interrupt;
    /* Refused on old kernels and by emulators: then the atfork handler calls sbt_lot_fork_child. */
    sbt_syscall3(SYS_madvise, &lot, sizeof lot, MADV_WIPEONFORK);
}

void sbt_lot_fork_child(void) {
    memset(&lot, 0, sizeof lot);
}

/* ---- buckets ---- */

static struct sbt_bucket *bucket_of(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    return &lot.bucket[h >> (64 - __builtin_ctz(N_BUCKETS))];
}

/* The order of in_lot against the lock matters to a handler on the same thread only: a compiler fence is enough. */
static void enter(void) {
    sbt_self.in_lot++;
    sbt_handlers_hold();
}

static void notify_all(void);

static SBT_NOINLINE void pay_wakeups(void) {
    while (sbt_self.owes_wakeups != 0 && sbt_self.in_lot == 0) {
        sbt_self.owes_wakeups = 0;
        notify_all();
    }
}

/* Handlers stay deferred. */
static void leave_lot(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.in_lot--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_self.owes_wakeups != 0))
        pay_wakeups();
}

static void leave(void) {
    leave_lot();
    sbt_handlers_release();
}

static void lock(struct sbt_bucket *b) {
    enter();
    sbt_lock_take(&b->lock);
}

static void unlock(struct sbt_bucket *b) {
    sbt_lock_drop(&b->lock);
    leave();
}

/* Field by field: `word` need not be cleared. */
static inline void begin(struct sbt_lot_queue *q, const void *key, sbt_lot_choose *after) {
    q->key = key;
    q->bucket = bucket_of(key);
    q->after = after;
    q->notified = q->here = NULL;
    q->has_fibers = false;
    q->n_words = 0;
}

static inline void lock_key(struct sbt_lot_queue *q, const void *key, sbt_lot_choose *after) {
    begin(q, key, after);
    lock(q->bucket);
}

/* The last waiter that a waiter of that priority stands behind; NULL: it is the first. */
static struct sbt_waiter *last_not_below(const struct sbt_bucket *b, uint8_t priority) {
    struct sbt_waiter *w = b->tail;
    while (w != NULL && w->priority < priority)
        w = w->prev;
    return w;
}

/* Behind `before`; NULL: as the first. */
static inline void insert(struct sbt_bucket *b, struct sbt_waiter *w, struct sbt_waiter *before,
                          struct sbt_waiter *behind) {
    w->prev = before;
    w->next = behind;
    /* sbt_lot_is_empty reads the head without the lock */
    __atomic_store_n(before != NULL ? &before->next : &b->head, w, __ATOMIC_RELAXED);
    *(behind != NULL ? &behind->prev : &b->tail) = w;
}

static SBT_NOINLINE void insert_by_priority(struct sbt_bucket *b, struct sbt_waiter *w) {
    struct sbt_waiter *before = last_not_below(b, w->priority);
    insert(b, w, before, before != NULL ? before->next : b->head);
}

static void append(struct sbt_bucket *b, struct sbt_waiter *w, const void *key) {
    __atomic_store_n(&w->key, key, __ATOMIC_RELAXED);
    w->generation = sbt_fork_generation();
    w->queued = true;
    if (SBT_LIKELY(w->priority == 0))
        insert(b, w, b->tail, NULL);
    else
        insert_by_priority(b, w);
}

static void take_out(struct sbt_bucket *b, struct sbt_waiter *w) {
    w->queued = false;
    if (SBT_UNLIKELY(w->generation != sbt_fork_generation()))
        return; /* a signal handler has forked during the wait: the lists were wiped */
    if (w->prev != NULL)
        w->prev->next = w->next;
    else
        __atomic_store_n(&b->head, w->next, __ATOMIC_RELAXED);
    if (w->next != NULL)
        w->next->prev = w->prev;
    else
        b->tail = w->prev;
}

/* ---- queues ---- */

struct sbt_waiter *sbt_lot_first_waiting(const struct sbt_lot_queue *q) {
    struct sbt_waiter *w = sbt_lot_first(q);
    while (w != NULL && w->inflight)
        w = sbt_lot_next(q, w);
    return w;
}

struct sbt_waiter *sbt_lot_designated(const struct sbt_lot_queue *q) {
    struct sbt_waiter *w = sbt_lot_first(q);
    while (w != NULL && !w->designated)
        w = sbt_lot_next(q, w);
    return w;
}

void sbt_lot_designate_none(const struct sbt_lot_queue *q) {
    for (struct sbt_waiter *w = sbt_lot_first(q); w != NULL; w = sbt_lot_next(q, w))
        w->designated = false;
}

/* ---- notifying and waking ---- */

/*
 * End a wait. Returns the word to wake it by, NULL if it is awake and sees it by itself. Releases everything done
 * before to the waiter, which reads it with acquire. The waiter may be gone at once.
 */
static uint32_t *notify(struct sbt_waiter *w, enum sbt_waiter_state state) {
    uint32_t *word = w->wake_word;
    if (word != NULL) {
        __atomic_store_n(&w->state, state, __ATOMIC_RELEASE);
        return word;
    }
    return __atomic_exchange_n(&w->state, state, __ATOMIC_RELEASE) == SBT_WAITER_PARKED ? &w->state : NULL;
}

/* Make it the designated waker. Its word is kept even if it is awake, so that waking it tells whether it slept. */
static void designate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    if (w == NULL)
        return;
    w->inflight = w->designated = true;
    w->notified_ns = sbt_now_ns();
    q->notified = w->wake_word != NULL ? w->wake_word : &w->state;
    notify(w, SBT_WAITER_RETRY);
}

static void wake_later(struct sbt_lot_queue *q, uint32_t *word) {
    bool full = q->n_words == SBT_LOT_BATCH;
    if (!q->has_fibers && sbt_fiber_is_word(word)) {
        sbt_wake_list_begin(&q->fibers);
        q->has_fibers = true;
    }
    if (q->has_fibers && sbt_wake_list_add(&q->fibers, word, full))
        return;
    if (full)
        sbt_futex_wake(word, 1);
    else
        q->word[q->n_words++] = word;
}

void sbt_lot_grant(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    take_out(q->bucket, w);
    uint32_t *word = notify(w, SBT_WAITER_GRANTED);
    if (word != NULL)
        wake_later(q, word);
}

/*
 * A handler of the waiter's thread may wait by switching too. To grant the waiter something then would be to grant it
 * to a thread that does not look until the handler has returned.
 */
bool sbt_lot_grant_here(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    if (w->wake_word == NULL || __atomic_load_n(&w->held_up, __ATOMIC_RELAXED) || !sbt_fiber_seize(w->wake_word))
        return false;
    take_out(q->bucket, w);
    q->here = w->wake_word;
    notify(w, SBT_WAITER_GRANTED);
    return true;
}

static void wake_granted(struct sbt_lot_queue *q) {
    if (q->has_fibers)
        sbt_wake_list_end(&q->fibers);
    const uint32_t gap_ns = SBT_UNLIKELY(sbt_wake_gap_on) ? sbt_wake_gap_between(q->n_words) : 0;
    for (uint32_t i = 0; i < q->n_words; i++) {
        if (SBT_UNLIKELY(gap_ns != 0) && i != 0)
            sbt_wake_gap_pause(gap_ns);
        sbt_waiter_wake(q->word[i]);
    }
    q->has_fibers = false;
    q->n_words = 0;
}

/* A caller that is a waiter itself has released what it will wait for, and is about to sleep. */
static void run_granted(uint32_t *word) {
    if (sbt_self.waiter != NULL)
        sbt_fiber_run_next(word);
    else
        sbt_fiber_run_here(word);
}

/* Unlock, and wake the waiters by address: the object may be gone. */
static inline void unlock_and_wake(struct sbt_lot_queue *q) {
    if (q->notified == NULL && q->n_words == 0 && !q->has_fibers && q->here == NULL) {
        unlock(q->bucket);
        return;
    }
    sbt_handlers_hold();
    unlock(q->bucket);
    wake_granted(q);
    while (!sbt_waiter_wake(q->notified)) {
        q->notified = NULL;
        lock(q->bucket);
        designate(q, q->after != NULL ? q->after(q) : NULL);
        unlock(q->bucket);
        wake_granted(q);
    }
    if (q->here != NULL) /* last: other fibers run meanwhile */
        run_granted(q->here);
    sbt_handlers_release();
}

/*
 * A handler could not wake a waiter through the lot, so every waiter is notified to retry. Always allowed: a waiter
 * that finds nothing waits again, and a condition may have spurious wake-ups.
 */
static void notify_all(void) {
    struct sbt_lot_queue q;
    enter();
    begin(&q, NULL, NULL);
    for (struct sbt_bucket *b = lot.bucket; b < lot.bucket + N_BUCKETS; b++) {
        sbt_lock_take(&b->lock);
        for (struct sbt_waiter *w = b->head; w != NULL; w = w->next)
            if (!w->inflight) {
                w->inflight = true;
                w->notified_ns = sbt_now_ns();
                uint32_t *word = notify(w, SBT_WAITER_RETRY);
                if (word != NULL)
                    wake_later(&q, word);
            }
        sbt_lock_drop(&b->lock);
        wake_granted(&q);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.in_lot--;
    sbt_self.handlers_held--; /* the caller is in a section itself, and delivers the handlers at its end */
}

void sbt_lot_unpark_one(const void *key, sbt_lot_choose *choose, sbt_lot_choose *after) {
    struct sbt_lot_queue q;
    if (SBT_UNLIKELY(sbt_lot_busy())) {
        sbt_self.owes_wakeups = 1;
        return;
    }
    lock_key(&q, key, after);
    designate(&q, choose(&q));
    unlock_and_wake(&q);
}

/*
 * Few instructions matter here: a signal to a fiber costs about as much as the switch that it brings about. The choice
 * reads the queue's key and bucket alone.
 */
void sbt_lot_unpark_first(const void *key, sbt_lot_decide *decide, void *argument) {
    struct sbt_lot_queue q;
    uint32_t *word = NULL;
    bool is_fiber = false;
    if (SBT_UNLIKELY(sbt_lot_busy())) {
        sbt_self.owes_wakeups = 1;
        return;
    }
    q.key = key;
    q.bucket = bucket_of(key);
    lock(q.bucket);
    struct sbt_waiter *w = sbt_lot_first(&q);
    if (SBT_UNLIKELY(w != NULL && w->inflight))
        w = sbt_lot_first_waiting(&q);
    if (w != NULL && decide(&q, w, argument) == SBT_LOT_GRANT) {
        take_out(q.bucket, w);
        is_fiber = w->wake_word != NULL;
        word = notify(w, SBT_WAITER_GRANTED);
    }
    sbt_lock_drop(&q.bucket->lock);
    leave_lot();
    if (SBT_LIKELY(is_fiber))
        sbt_fiber_unpark(word);
    else
        sbt_waiter_wake(word);
    sbt_handlers_release();
}

uint32_t sbt_lot_sort(const void *from, const void *to, sbt_lot_decide *decide, void *argument, sbt_lot_choose *choose,
                      sbt_lot_choose *after) {
    struct sbt_lot_queue q;
    bool moved = false;
    uint32_t n = 0;
    if (SBT_UNLIKELY(sbt_lot_busy())) {
        sbt_self.owes_wakeups = 1;
        return 0;
    }
    begin(&q, from, after);
    struct sbt_bucket *a = q.bucket, *b = to != NULL ? bucket_of(to) : a;
    lock(a < b ? a : b);
    if (a != b)
        sbt_lock_take(&(a < b ? b : a)->lock);
    for (struct sbt_waiter *w = sbt_lot_first(&q), *next; w != NULL; w = next) {
        next = sbt_lot_next(&q, w);
        if (w->inflight)
            continue;
        enum sbt_lot_verdict verdict = decide(&q, w, argument);
        if (verdict == SBT_LOT_STOP)
            break;
        if (verdict == SBT_LOT_SKIP)
            continue;
        n++;
        if (verdict == SBT_LOT_GRANT) {
            sbt_lot_grant(&q, w);
        } else {
            take_out(a, w);
            append(b, w, to);
            moved = true;
        }
    }
    if (a != b)
        sbt_lock_drop(&(moved ? a : b)->lock);
    if (moved) {
        q.key = to;
        q.bucket = b;
        if (choose != NULL)
            designate(&q, choose(&q));
    }
    unlock_and_wake(&q);
    return n;
}

struct some {
    uint32_t left;
    enum sbt_lot_verdict verdict;
};

static enum sbt_lot_verdict decide_some(struct sbt_lot_queue *q, struct sbt_waiter *w, void *argument) {
    struct some *some = argument;
    (void)q, (void)w;
    return some->left-- != 0 ? some->verdict : SBT_LOT_STOP;
}

uint32_t sbt_lot_unpark_some(const void *key, uint32_t n) {
    struct some some = {n, SBT_LOT_GRANT};
    return sbt_lot_sort(key, NULL, decide_some, &some, NULL, NULL);
}

uint32_t sbt_lot_requeue(const void *from, const void *to, uint32_t n) {
    struct some some = {n, SBT_LOT_MOVE};
    return sbt_lot_sort(from, to, decide_some, &some, NULL, NULL);
}

bool sbt_lot_is_empty(const void *key) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the fence in a role's validate */
    return __atomic_load_n(&bucket_of(key)->head, __ATOMIC_RELAXED) == NULL;
}

bool sbt_lot_ask(const void *key, bool (*ask)(const struct sbt_lot_queue *queue)) {
    struct sbt_lot_queue q;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return false;
    lock_key(&q, key, NULL);
    bool answer = ask(&q);
    unlock(q.bucket);
    return answer;
}

/* ---- parking ---- */

/* Lock the bucket in which the waiter waits now, whatever key it has been moved to. */
static void lock_of(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    for (;;) {
        const void *key = __atomic_load_n(&w->key, __ATOMIC_RELAXED);
        lock_key(q, key, NULL);
        if (__atomic_load_n(&w->key, __ATOMIC_RELAXED) == key)
            return; /* relaxed: the key changes under this bucket's lock only */
        unlock(q->bucket);
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
        take_out(q->bucket, w);
        w->result = r;
    }
    q->after = role->after;
    if (role->successor != NULL && (r != EBUSY || role->passes_on))
        designate(q, role->successor(q, w, r));
    w->again = true;
    unlock_and_wake(q);
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

static SBT_NOINLINE int wait_until_over(struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    struct sbt_lot_queue q;
    int r = EBUSY;
    while (r == EBUSY) {
        int waited = wait_for_notice(w, deadline, w->parked_as->cancelable);
        if (is_granted(w))
            return 0;
        if (waited == 0 && w->role->retry != NULL && w->role->retry(w)) /* which is not moved while it is inflight */
            r = 0;
        lock_of(&q, w);
        bool moved = w->role != w->parked_as;
        w->parked_as = w->role;
        deadline = moved ? NULL : deadline;
        if (is_granted(w)) {
            unlock(q.bucket);
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
    unlock(q.bucket);
    return result;
}

/* It has just come, and is in the queue. EBUSY: it waits. */
static SBT_NOINLINE int look_first(const void *key, struct sbt_waiter *w) {
    struct sbt_lot_queue q;
    begin(&q, key, NULL);
    return look(&q, w, EBUSY, 0);
}

/* EBUSY: it waits. */
static inline int queue(const void *key, struct sbt_waiter *w) {
    struct sbt_bucket *b = bucket_of(key);
    lock(b);
    append(b, w, key);
    if (w->role->joined == NULL || SBT_UNLIKELY(w->interrupted))
        return look_first(key, w);
    w->role->joined(key);
    w->again = true;
    unlock(b);
    return EBUSY;
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
            sbt_park_fiber(NULL, w->parked_as->cancelable);
        if (SBT_LIKELY(is_granted(w)))
            return 0;
    }
    return wait_until_over(w, deadline);
}

static void abandon(void *waiter);

/* Leaves no record of this thread's stack in a queue, however the thread ends. `key` NULL: it is in one already. */
static inline int wait_guarded(const void *key, struct sbt_waiter *w, const struct sbt_deadline *deadline) {
    int r;
    pthread_cleanup_push(abandon, w);
    r = key != NULL ? queue_and_wait(key, w, deadline) : wait_until_over(w, deadline);
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
        unlock(q.bucket);
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
static void interrupt(struct sbt_waiter *w) {
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
        designate(&q, w->role->held_up(&q, w));
    unlock_and_wake(&q);
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
