/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "switch/own_lock.h"

#include "core/thread.h"
#include "switch/tuning.h"

static bool forbidden; /* atomic; relaxed: owners read it under their locks, which are visited after it was written */

void sbt_own_lock_forbid(void) {
    __atomic_store_n(&forbidden, true, __ATOMIC_RELAXED);
}

/* It is read when the lock begins or ceases to be owned. */
static uint32_t now_us(void) {
    return (uint32_t)(sbt_now_ns() / 1000);
}

static bool is_rested(const struct sbt_own_lock *l) {
    const uint32_t rest_us = OWN_REST_US;
    return now_us() - l->shared_us >= rest_us;
}

/*
 * Under the lock. The owner has entered so often without a visit that it owns the lock. Not without membarrier: then a
 * light fence costs as much as the lock.
 */
static void own(struct sbt_own_lock *l) {
    if (l->left != 0) {
        l->left--;
    } else if (!is_rested(l)) {
        l->left = OWN_AFTER; /* before the clock is read again */
    } else if (sbt_fence_asymmetric && !__atomic_load_n(&forbidden, __ATOMIC_RELAXED)) {
        l->owned_us = now_us();
        __atomic_store_n(&l->owned, 1, __ATOMIC_RELAXED);
    }
}

/* A visitor that comes when the lock has been dropped finds `inside`. */
SBT_NOINLINE void sbt_own_lock_enter_shared(struct sbt_own_lock *l) {
    __atomic_store_n(&l->inside, 0, __ATOMIC_RELEASE);
    sbt_lock_take(&l->lock);
    own(l);
    __atomic_store_n(&l->inside, 1, __ATOMIC_RELAXED);
    sbt_lock_drop(&l->lock);
}

/* Under the lock. */
static void share(struct sbt_own_lock *l) {
    l->shared_us = now_us();
    bool soon = l->shared_us - l->owned_us < OWN_SOON_IN_ALL_US;
    uint16_t more = l->most < OWN_AFTER_MOST ? (uint16_t)(l->most * 2) : l->most;
    __atomic_store_n(&l->owned, 0, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(!sbt_fence_heavy())) {
        sbt_own_lock_forbid();
        while (!sbt_futex_pause_ns(SBT_UNFENCED_SLEEP_NS)) /* the whole of it: the exclusion depends on it */
            ;
    }
    l->most = soon && l->most != 0 ? more : OWN_AFTER;
    l->left = l->most;
}

/*
 * The owner may have been preempted in its section, and need the very core that this thread has: so the visitor sleeps
 * if that lasts. No thread would wake it, which spares the owner a look. It may be a thread of the program with a
 * filter of system calls: so it makes no call but futex.
 */
SBT_NOINLINE void sbt_own_lock_visit(struct sbt_own_lock *l) {
    sbt_lock_take(&l->lock);
    if (__atomic_load_n(&l->owned, __ATOMIC_RELAXED) != 0)
        share(l);
    l->left = l->most; /* a visit while it is shared */
    for (int looks = 0; __atomic_load_n(&l->inside, __ATOMIC_ACQUIRE) != 0; looks++)
        if (looks < OWN_LOOKS)
            sbt_cpu_relax();
        else
            sbt_futex_pause_ns(OWN_GAP_NS);
}
