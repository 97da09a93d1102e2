/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes: waiters in the parking lot, under a key that no object of pthreads has. An object lies at an even address,
 * and the key of a futex is odd. So a wake-up of a word that was freed, and is now a mutex, finds no waiter of the
 * mutex. Calls with FUTEX_PRIVATE_FLAG and without have different keys: in the kernel they do not meet either.
 *
 * A word's value is looked at under the bucket's lock, with the waiter in the queue:
 *
 *  1. The waiter queues, makes a fence, and reads the word.
 *  2. The waker has written the word; it makes a fence, and looks whether the bucket is empty (sbt_lot_is_empty).
 *
 * Either the waker sees the waiter, and takes the lock; or the waiter reads what the waker has written, and does not
 * wait. A wake-up that no thread waits for is a fence and a look.
 */
#include <errno.h>

#include "core/object.h"
#include "engine/direct/direct.h"
#include "engine/engine.h"
#include "switch/switch.h"
#include "wait/parking_lot.h"

struct wait {
    struct sbt_waiter waiter;
    const uint32_t *word;
    uint32_t expected, bits;
};

static const void *key_of(const uint32_t *word, bool shared) {
    return (const char *)word + (shared ? 3 : 1);
}

static struct wait *wait_of(struct sbt_waiter *w) {
    return (struct wait *)((char *)w - offsetof(struct wait, waiter));
}

static bool has_changed(const struct wait *wait) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the fence of sbt_lot_is_empty */
    return __atomic_load_n(wait->word, __ATOMIC_RELAXED) != wait->expected;
}

/*
 * A waiter that was notified to retry returns as after a wake-up for which there is no reason; futex(2) may. So does
 * the only waiter that a forked child has: its handler forked in the midst of the wait, and the child has empty queues.
 */
static int validate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    (void)q;
    if (w->inflight || w->generation != sbt_fork_generation())
        return 0;
    if (w->again && !w->interrupted)
        return EBUSY;
    return has_changed(wait_of(w)) ? EAGAIN : EBUSY;
}

static int joined(const void *key, struct sbt_waiter *w) {
    (void)key;
    return has_changed(wait_of(w)) ? EAGAIN : EBUSY;
}

static const struct sbt_lot_role role = {.validate = validate, .joined = joined, .looks_after_handler = true};

/*
 * Where another fiber is runnable a fiber switches at once, and needs no memory of what the word's waits were like.
 * Only every so many of these waits are learnt from: to do so takes half as long as to switch.
 */
#define LEARN_EVERY 32

static bool switches_at_once(struct sbt_adapt *memory) {
    if (!sbt_switch_waits_behind())
        return false;
    uint8_t probe = __atomic_load_n(&memory->probe, __ATOMIC_RELAXED);
    __atomic_store_n(&memory->probe, (uint8_t)(probe + 1), __ATOMIC_RELAXED); /* now: others may wait before it ends */
    return probe % LEARN_EVERY != 0;
}

/* With a memory of what the word's waits are like. In a frame of its own, deeper than a fiber's that switches. */
static SBT_NOINLINE int wait_actively(const void *key, struct sbt_waiter *w, struct sbt_adapt *memory,
                                      const struct sbt_deadline *deadline) {
    struct sbt_active active;
    w->active = &active;
    sbt_active_begin(&active, memory);
    int r = sbt_lot_park(key, w, deadline);
    if (r != EAGAIN)
        sbt_active_end(&active, memory);
    return r;
}

int direct_futex_wait(uint32_t *word, bool shared, uint32_t expected, uint32_t bits,
                      const struct sbt_deadline *deadline, uint64_t in_ns) {
    (void)in_ns;
    struct sbt_adapt *memory = sbt_adapt_of_word(word);
    struct wait wait; /* field by field: the lot sets what is left */
    if (SBT_UNLIKELY(sbt_lot_busy()))
        return EDEADLK;
    wait.word = word;
    wait.expected = expected;
    wait.bits = bits;
    wait.waiter.role = &role;
    wait.waiter.since_ns = 0;
    wait.waiter.active = NULL;
    if (!switches_at_once(memory))
        return wait_actively(key_of(word, shared), &wait.waiter, memory, deadline);
    sbt_switch_about_to_wait();
    return sbt_lot_park(key_of(word, shared), &wait.waiter, deadline);
}

struct wake {
    uint32_t left, bits;
};

static enum sbt_lot_verdict decide_wake(struct sbt_lot_queue *q, struct sbt_waiter *w, void *argument) {
    struct wake *wake = argument;
    (void)q;
    if (wake->left == 0)
        return SBT_LOT_STOP;
    if ((wait_of(w)->bits & wake->bits) == 0)
        return SBT_LOT_SKIP;
    wake->left--;
    return SBT_LOT_GRANT;
}

uint32_t direct_futex_wake(uint32_t *word, bool shared, uint32_t n, uint32_t bits) {
    struct wake wake = {n, bits};
    if (sbt_lot_is_empty(key_of(word, shared)))
        return 0;
    return sbt_lot_sort(key_of(word, shared), NULL, decide_wake, &wake, NULL, NULL);
}

struct requeue {
    struct sbt_futex_moved most, done;
    const uint32_t *from, *expected;
    bool in_place, looked, differs;
};

/* The word is compared once, before the first waiter is woken or moved: in one step with that, as in the kernel. */
static bool differs(struct requeue *r) {
    if (!r->looked) {
        r->looked = true;
        r->differs = r->expected != NULL && __atomic_load_n(r->from, __ATOMIC_ACQUIRE) != *r->expected;
    }
    return r->differs;
}

static enum sbt_lot_verdict decide_requeue(struct sbt_lot_queue *q, struct sbt_waiter *w, void *argument) {
    struct requeue *r = argument;
    (void)q, (void)w;
    if (differs(r))
        return SBT_LOT_STOP;
    if (r->done.woken < r->most.woken) {
        r->done.woken++;
        return SBT_LOT_GRANT;
    }
    if (r->done.moved == r->most.moved)
        return SBT_LOT_STOP;
    r->done.moved++;
    return r->in_place ? SBT_LOT_SKIP : SBT_LOT_MOVE;
}

int direct_futex_requeue(uint32_t *from, uint32_t *to, bool shared, struct sbt_futex_moved *most,
                         const uint32_t *expected) {
    struct requeue r = {.most = *most, .from = from, .expected = expected, .in_place = from == to};
    if (!sbt_lot_is_empty(key_of(from, shared)))
        sbt_lot_sort(key_of(from, shared), r.in_place ? NULL : key_of(to, shared), decide_requeue, &r, NULL, NULL);
    *most = r.done;
    return differs(&r) ? EAGAIN : 0;
}
