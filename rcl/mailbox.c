/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rcl/mailbox.h"

#include "rcl/tuning.h"
#include "rcl/wait.h"

void rcl_nudge(uint32_t *asleep) {
    if (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) != 0 && __atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST) != 0)
        rcl_wake(asleep, 1);
}

/* Fields that are already right are not written: the line may be the server's just now. */
void rcl_post(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context, uint32_t *asleep) {
    /* Relaxed: this thread wrote them, and the store of `function` shows them. */
    if (__atomic_load_n(&m->lock, __ATOMIC_RELAXED) != lock)
        __atomic_store_n(&m->lock, lock, __ATOMIC_RELEASE); /* see is_mine */
    if (__atomic_load_n(&m->context, __ATOMIC_RELAXED) != context)
        __atomic_store_n(&m->context, context, __ATOMIC_RELAXED);
    /* Sequentially consistent, as the load: with rcl_doze's exchange and last pass. */
    __atomic_store_n(&m->function, function, __ATOMIC_SEQ_CST);
    rcl_nudge(asleep);
}

void rcl_await(struct rcl_mailbox *m) {
    /* Acquire pairs with the store of NULL: the section's effects are seen. */
    for (uint32_t n = 0; __atomic_load_n(&m->function, __ATOMIC_ACQUIRE) != NULL; n += n < RCL_CLIENT_SPINS)
        rcl_look_again(n, RCL_CLIENT_SPINS);
}

bool rcl_lock_try(struct rcl_lock *lock) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&lock->held, &free, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void rcl_lock_free(struct rcl_lock *lock) {
    /* Sequentially consistent: with rcl_doze's last pass, if a nudge follows. */
    __atomic_store_n(&lock->held, 0, __ATOMIC_SEQ_CST);
}

/* In place of the function of a section that waits. */
static void rcl_under_way(void *context) {
    (void)context;
}

static bool is_request(rcl_section *function) {
    return function != NULL && function != rcl_under_way;
}

void rcl_keep(struct rcl_mailbox *m) {
    /* Before the lock is freed, by a release: a thread that gets the lock sees it. */
    __atomic_store_n(&m->function, rcl_under_way, __ATOMIC_RELAXED);
}

bool rcl_is_posted(const struct rcl_mailbox *m) {
    return is_request(__atomic_load_n(&m->function, __ATOMIC_RELAXED));
}

/*
 * Is there a request for this lock, which the calling thread has? If so it stays: no other thread serves it. Three
 * loads are needed. The request that the first one sees may have been for another lock, and may have ended since; the
 * client may have written its next lock, this one, and not yet the function. Acquire at `lock` pairs with the release
 * in rcl_post: a thread that sees the new lock does not see the old function behind it.
 */
static bool is_mine(const struct rcl_mailbox *m, const struct rcl_lock *lock) {
    return is_request(__atomic_load_n(&m->function, __ATOMIC_ACQUIRE)) &&
           __atomic_load_n(&m->lock, __ATOMIC_ACQUIRE) == lock &&
           is_request(__atomic_load_n(&m->function, __ATOMIC_ACQUIRE));
}

bool rcl_serve(struct rcl_mailbox *m, rcl_run *run) {
    if (!is_request(__atomic_load_n(&m->function, __ATOMIC_SEQ_CST))) /* acquire, and rcl_doze's last pass */
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
    __atomic_store_n(&m->function, NULL, __ATOMIC_RELEASE);
    rcl_lock_free(lock);
    return true;
}

void rcl_doze(uint32_t *asleep, bool (*pass)(void *server), void *server) {
    __atomic_exchange_n(asleep, 1, __ATOMIC_SEQ_CST);
    if (pass(server)) {
        __atomic_store_n(asleep, 0, __ATOMIC_RELAXED); /* a client that wakes wakes no thread */
        return;
    }
    while (__atomic_load_n(asleep, __ATOMIC_ACQUIRE) != 0)
        rcl_sleep(asleep, 1, NULL);
}
