/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a mutex is freed: engine/direct/mutex.c. */
#include "mutex_model.h"

int unlock_step(struct state *s, int t, int way) {
    struct thread *me = &s->t[t];
    uint8_t old;
    switch ((enum step)me->step) {
    /* direct_mutex_unlock: load, or an exchange in vain; one that succeeds is this and the fetch_sub, with nothing
     * between */
    case UNLOCK:
        if (s->holder != t)
            wrong = "an unlock by another thread";
        me->seen = s->word;
        if (me->seen == (LOCKED | QUEUED | WOKEN)) {
            me->step = way == 0 ? UNLOCK_SUB : SLEEPER_BUCKET; /* does it look whether the designated waker is late? */
            return 2;
        }
        me->step = me->seen == LOCKED ? UNLOCK_SUB : (me->seen & SPUN) != 0 ? UNLOCK_SPUN : UNLOCK_KIND;
        return 1;
    /* unlock_slow: fetch_and SPUN, if there is no credit left */
    case UNLOCK_SPUN:
        if (way == 0)
            s->word &= (uint8_t)~SPUN;
        me->step = UNLOCK_KIND;
        return 2;
    case UNLOCK_KIND:
        if ((me->seen & (QUEUED | ACTIVE)) == (QUEUED | ACTIVE)) {
            me->step = way == 0 ? ACTIVE_CAS : SLEEPER_BUCKET; /* unlock_to_active: is it time for a sleeper? */
            return 2;
        }
        me->step = (me->seen & (QUEUED | WOKEN)) == QUEUED ? SLEEPER_BUCKET : UNLOCK_SUB;
        return 1;
    /* unlock_after_look, unlock_otherwise, unlock_slow, unlock_to_active: fetch_sub */
    case UNLOCK_SUB:
        old = s->word;
        s->word &= (uint8_t)~LOCKED;
        s->holder = NO_THREAD;
        if ((old & (QUEUED | WOKEN)) == QUEUED)
            me->step = AFTER_BUCKET;
        else
            return_to(me, me->after_unlock);
        return 1;
    /* wake_after_unlock */
    case AFTER_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = AFTER_LOOK;
        return 1;
    case AFTER_LOOK:
        if ((s->n[MUTEX] != 0 && (s->word & WOKEN) != 0) || first_waiting(s, MUTEX) == NO_THREAD) {
            unlock_bucket(s, MUTEX);
            return_to(me, me->after_unlock);
        } else {
            me->after_wake = me->after_unlock;
            me->step = WAKE_MARK;
        }
        return 1;
    /* is_late and free_or_hand_over: no waiter to wake; hand over; or free it and wake the first */
    case SLEEPER_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = SLEEPER;
        return 1;
    case SLEEPER:
        me->target = (uint8_t)first_waiting(s, MUTEX);
        if (me->target == NO_THREAD) {
            me->target = 0;
            s->word &= s->n[MUTEX] != 0 ? QUEUED | WOKEN | SPUN : SPUN;
            s->holder = NO_THREAD;
            unlock_bucket(s, MUTEX);
            return_to(me, me->after_unlock);
            return 1;
        }
        me->after_wake = me->after_unlock;
        designate(s, me->target);
        s->holder = NO_THREAD;
        me->handed = way != 0;
        s->word = (uint8_t)(way == 0 ? (s->word & ~LOCKED) | WOKEN : s->word | HANDED | WOKEN);
        me->step = WAKE_NOTIFY;
        return 2;
    /* unlock_to_active: compare-and-swap */
    case ACTIVE_CAS:
        if (s->word == me->seen) {
            s->word = (uint8_t)(me->seen & ~(LOCKED | ACTIVE));
            s->holder = NO_THREAD;
            return_to(me, me->after_unlock);
        } else {
            me->seen = s->word;
            me->step = (s->word & ACTIVE) != 0 ? ACTIVE_CAS : UNLOCK_SUB;
        }
        return 1;
    default:
        return 0;
    }
}
