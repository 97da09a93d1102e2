/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rcl/mailbox.h"

#include "rcl/wait.h"

/* The load and the exchange are sequentially consistent: with rcl_doze. */
void rcl_nudge(uint32_t *asleep) {
    if (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) != 0 && __atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST) != 0)
        rcl_wake(asleep, 1);
}

/* Fields that are already right are not written: the line may be the server's just now. */
void rcl_post(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context, uint32_t *asleep) {
    /* Relaxed: the slot's thread wrote them, this one or an ended one. The store of `state` shows them to the server.
     */
    if (__atomic_load_n(&m->lock, __ATOMIC_RELAXED) != lock)
        __atomic_store_n(&m->lock, lock, __ATOMIC_RELEASE); /* see is_mine */
    if (__atomic_load_n(&m->function, __ATOMIC_RELAXED) != function)
        __atomic_store_n(&m->function, function, __ATOMIC_RELAXED);
    if (__atomic_load_n(&m->context, __ATOMIC_RELAXED) != context)
        __atomic_store_n(&m->context, context, __ATOMIC_RELAXED);
    /* Sequentially consistent, as rcl_nudge's load: with rcl_doze's exchange and last pass. */
    __atomic_store_n(&m->state, RCL_POSTED, __ATOMIC_SEQ_CST);
    rcl_nudge(asleep);
}

/* Relaxed: rcl_await looks again. If this fails the request has ended, or is under way, just now. */
static void sleep_until_end(struct rcl_mailbox *m, uint32_t state) {
    uint32_t sleeps = state | RCL_CLIENT_SLEEPS;
    if (state == sleeps ||
        __atomic_compare_exchange_n(&m->state, &state, sleeps, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        rcl_sleep(&m->state, sleeps, NULL);
}

void rcl_await(struct rcl_mailbox *m) {
    uint32_t state, n = 0;
    /* Acquire pairs with rcl_serve's exchange: the section's effects are seen. */
    while ((state = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE)) != RCL_FREE)
        if (!rcl_look_on(&n))
            sleep_until_end(m, state);
}

static bool take(struct rcl_lock *lock, uint32_t as, uint32_t *seen) {
    *seen = RCL_UNHELD;
    /*
     * Acquire pairs with rcl_lock_free: the sections before are seen. Sequentially consistent, as that, and above all
     * if it fails: in rcl_doze's last pass, a held lock means that the thread that frees it sees `asleep`.
     */
    return __atomic_compare_exchange_n(&lock->held, seen, as, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool rcl_lock_try(struct rcl_lock *lock) {
    uint32_t seen;
    return take(lock, RCL_HELD, &seen);
}

/*
 * "Mutex, Take 2" of U. Drepper, Futexes Are Tricky, 2011. A thread that has slept takes the lock as RCL_WANTED,
 * because the thread that woke it has cleared that, and others may still sleep.
 */
void rcl_lock_wait(struct rcl_lock *lock) {
    uint32_t seen, n = 0, as = RCL_HELD;
    while (!take(lock, as, &seen)) {
        if (rcl_look_on(&n))
            continue;
        as = RCL_WANTED;
        /* Relaxed: the kernel compares `held` again, and the loop looks again. */
        if (seen == RCL_WANTED ||
            __atomic_compare_exchange_n(&lock->held, &seen, RCL_WANTED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            rcl_sleep(&lock->held, RCL_WANTED, NULL);
        n = 0; /* other threads take the lock too: it is free now and then, and not for long */
    }
}

void rcl_lock_free(struct rcl_lock *lock) {
    /* Sequentially consistent: with rcl_doze's last pass, if a nudge follows. */
    if (__atomic_exchange_n(&lock->held, RCL_UNHELD, __ATOMIC_SEQ_CST) == RCL_WANTED)
        rcl_wake(&lock->held, 1);
}

static bool is_request(uint32_t state) {
    return (state & (RCL_POSTED | RCL_UNDER_WAY)) == RCL_POSTED;
}

void rcl_keep(struct rcl_mailbox *m) {
    /* Before the lock is freed, by a release: a thread that gets the lock sees it. */
    __atomic_fetch_or(&m->state, RCL_UNDER_WAY, __ATOMIC_RELAXED);
}

bool rcl_is_posted(const struct rcl_mailbox *m) {
    return is_request(__atomic_load_n(&m->state, __ATOMIC_RELAXED)); /* for looks that are repeated */
}

/*
 * Is there a request for this lock, which the calling thread has? If so it stays: no other thread serves it. Three
 * loads are needed. The request that the first one sees may have been for another lock, and may have ended since; the
 * client may have written its next lock, this one, and not yet the state. Acquire at `lock` pairs with the release
 * in rcl_post: a thread that sees the new lock does not see the old state behind it. Acquire at the last `state` pairs
 * with the store there: function and context are the request's.
 */
static bool is_mine(const struct rcl_mailbox *m, const struct rcl_lock *lock) {
    return is_request(__atomic_load_n(&m->state, __ATOMIC_ACQUIRE)) &&
           __atomic_load_n(&m->lock, __ATOMIC_ACQUIRE) == lock &&
           is_request(__atomic_load_n(&m->state, __ATOMIC_ACQUIRE));
}

bool rcl_serve(struct rcl_mailbox *m, rcl_run *run) {
    if (!is_request(__atomic_load_n(&m->state, __ATOMIC_SEQ_CST))) /* acquire, and rcl_doze's last pass */
        return false;
    struct rcl_lock *lock = __atomic_load_n(&m->lock, __ATOMIC_RELAXED);
    if (!rcl_lock_try(lock))
        return false;
    if (!is_mine(m, lock)) {
        rcl_lock_free(lock);
        return false;
    }
    run(m, lock, __atomic_load_n(&m->function, __ATOMIC_RELAXED), __atomic_load_n(&m->context, __ATOMIC_RELAXED));
    /* The request ends before the lock is free: else another thread would serve it once more. */
    uint32_t before = __atomic_exchange_n(&m->state, RCL_FREE, __ATOMIC_RELEASE);
    rcl_lock_free(lock);
    if ((before & RCL_CLIENT_SLEEPS) != 0)
        rcl_wake(&m->state, 1);
    return true;
}

void rcl_doze(uint32_t *asleep, bool (*pass)(void *server), void *server) {
    __atomic_exchange_n(asleep, 1, __ATOMIC_SEQ_CST); /* with rcl_post and rcl_nudge */
    if (pass(server)) {
        /* A section in that pass may have blocked, and another thread have gone to sleep meanwhile. */
        rcl_nudge(asleep);
        return;
    }
    while (__atomic_load_n(asleep, __ATOMIC_ACQUIRE) != 0) /* pairs with rcl_nudge's exchange */
        rcl_sleep(asleep, 1, NULL);
}
