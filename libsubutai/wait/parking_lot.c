/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/lot_bucket.h"

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

union sbt_lot_memory sbt_lot __attribute__((aligned(SBT_PAGE_MAX)));

void sbt_lot_start(void) {
    sbt_handlers_interrupt = sbt_lot_interrupt;
    /* Refused on old kernels and by emulators: then the atfork handler calls sbt_lot_fork_child. */
    sbt_syscall3(SYS_madvise, &sbt_lot, sizeof sbt_lot, MADV_WIPEONFORK);
}

void sbt_lot_fork_child(void) {
    memset(&sbt_lot, 0, sizeof sbt_lot);
}

/* ---- queues ---- */

/* The last waiter that a waiter of that priority stands behind; NULL: it is the first. */
static struct sbt_waiter *last_not_below(const struct sbt_bucket *b, uint8_t priority) {
    struct sbt_waiter *w = b->tail;
    while (w != NULL && w->priority < priority)
        w = w->prev;
    return w;
}

void sbt_lot_insert_by_priority(struct sbt_bucket *b, struct sbt_waiter *w) {
    struct sbt_waiter *before = last_not_below(b, w->priority);
    sbt_lot_insert(b, w, before, before != NULL ? before->next : b->head);
}

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
void sbt_lot_designate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
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
    sbt_lot_take_out(q->bucket, w);
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
    sbt_lot_take_out(q->bucket, w);
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

void sbt_lot_unlock_and_wake(struct sbt_lot_queue *q) {
    if (q->notified == NULL && q->n_words == 0 && !q->has_fibers && q->here == NULL) {
        sbt_lot_unlock(q->bucket);
        return;
    }
    sbt_handlers_hold();
    sbt_lot_unlock(q->bucket);
    wake_granted(q);
    while (!sbt_waiter_wake(q->notified)) {
        q->notified = NULL;
        sbt_lot_lock(q->bucket);
        sbt_lot_designate(q, q->after != NULL ? q->after(q) : NULL);
        sbt_lot_unlock(q->bucket);
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
    sbt_lot_enter();
    sbt_lot_begin(&q, NULL, NULL);
    for (struct sbt_bucket *b = sbt_lot.bucket; b < sbt_lot.bucket + SBT_LOT_BUCKETS; b++) {
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

void sbt_lot_pay_wakeups(void) {
    while (sbt_self.owes_wakeups != 0 && sbt_self.in_lot == 0) {
        sbt_self.owes_wakeups = 0;
        notify_all();
    }
}

void sbt_lot_unpark_one(const void *key, sbt_lot_choose *choose, sbt_lot_choose *after) {
    struct sbt_lot_queue q;
    if (SBT_UNLIKELY(sbt_lot_busy())) {
        sbt_self.owes_wakeups = 1;
        return;
    }
    sbt_lot_lock_key(&q, key, after);
    sbt_lot_designate(&q, choose(&q));
    sbt_lot_unlock_and_wake(&q);
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
    q.bucket = sbt_lot_bucket(key);
    sbt_lot_lock(q.bucket);
    struct sbt_waiter *w = sbt_lot_first(&q);
    if (SBT_UNLIKELY(w != NULL && w->inflight))
        w = sbt_lot_first_waiting(&q);
    if (w != NULL && decide(&q, w, argument) == SBT_LOT_GRANT) {
        sbt_lot_take_out(q.bucket, w);
        is_fiber = w->wake_word != NULL;
        word = notify(w, SBT_WAITER_GRANTED);
    }
    sbt_lock_drop(&q.bucket->lock);
    sbt_lot_leave_early();
    if (SBT_LIKELY(is_fiber))
        sbt_fiber_unpark_deferred(word);
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
    sbt_lot_begin(&q, from, after);
    struct sbt_bucket *a = q.bucket, *b = to != NULL ? sbt_lot_bucket(to) : a;
    sbt_lot_lock(a < b ? a : b);
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
            sbt_lot_take_out(a, w);
            sbt_lot_append(b, w, to);
            moved = true;
        }
    }
    if (a != b)
        sbt_lock_drop(&(moved ? a : b)->lock);
    if (moved) {
        q.key = to;
        q.bucket = b;
        if (choose != NULL)
            sbt_lot_designate(&q, choose(&q));
    }
    sbt_lot_unlock_and_wake(&q);
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
    return __atomic_load_n(&sbt_lot_bucket(key)->head, __ATOMIC_RELAXED) == NULL;
}

bool sbt_lot_ask(const void *key, bool (*ask)(const struct sbt_lot_queue *queue)) {
    struct sbt_lot_queue q;
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return false;
    sbt_lot_lock_key(&q, key, NULL);
    bool answer = ask(&q);
    sbt_lot_unlock(q.bucket);
    return answer;
}
