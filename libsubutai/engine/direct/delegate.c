/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/direct/delegate.h"

#include "engine/direct/direct.h"
#include "engine/direct/mutex.h"
#include "switch/switch.h"
#include "wait/parking_lot.h"

/*
 * The bucket is locked, and the caller holds the mutex, so no other thread changes SERVED. The result is whether
 * sections of other mutexes go before.
 */
static bool serve(struct sbt_mutex *mx, uint32_t *word) {
    if ((__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & DIRECT_SERVED) == 0)
        __atomic_fetch_or(&mx->state, DIRECT_SERVED, __ATOMIC_RELAXED);
    return sbt_fiber_begin_section(word, mx, direct_delegate_server(mx));
}

uint32_t direct_delegate_not_served(struct sbt_mutex *mx) {
    return __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_SERVED, __ATOMIC_RELAXED) & ~(uint32_t)DIRECT_SERVED;
}

/*
 * The bucket is locked, and the caller holds the mutex. The waiter that is granted it does not run before the bucket is
 * unlocked: until then the mutex exists.
 */
static struct sbt_waiter *hand_over(struct sbt_lot_queue *q) {
    struct sbt_mutex *mx = sbt_mutex_of((pthread_mutex_t *)(uintptr_t)q->key);
    struct sbt_waiter *w = sbt_lot_first_waiting(q);
    if (w == NULL || !sbt_lot_grant_here(q, w)) {
        bool sleeps = w != NULL && w->wake_word == NULL;
        if ((__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & DIRECT_SERVED) != 0)
            direct_delegate_not_served(mx);
        return sleeps && sbt_switch_carried() ? direct_mutex_hand_over(q, w) : direct_mutex_free_or_hand_over(q);
    }
    bool waits = SBT_UNLIKELY(sbt_switch_servers != 0) && serve(mx, q->here);
    if (sbt_lot_first(q) == NULL)
        __atomic_fetch_and(&mx->state, ~(uint32_t)(DIRECT_QUEUED | DIRECT_WOKEN), __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(direct_auto))
        direct_auto_handed(mx, waits);
    direct_delegate_count(direct_delegated(mx), !sbt_switch_runs_in_place(), waits);
    return NULL;
}

void direct_delegate_unlock(struct sbt_mutex *mx) {
    sbt_lot_unpark_one(mx, hand_over, direct_mutex_wake_another);
}

void direct_delegate_leave_server(void) {
    if (sbt_self.waiter == NULL && !sbt_lot_busy())
        sbt_switch_leave_server();
}
