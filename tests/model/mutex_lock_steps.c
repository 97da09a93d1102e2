/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a mutex is taken and waited for: engine/direct/mutex.c, and cond.c where it ends there. */
#include "mutex_model.h"

int lock_step(struct state *s, int t, int way) {
    struct thread *me = &s->t[t];
    struct thread *other;
    uint8_t old, want, stale, clear;
    bool relied_on, may_be_overdue;
    switch ((enum step)me->step) {
    case NEXT_OP:
        next_op(s, t);
        return 1;

    /* direct_mutex_lock: fetch_or */
    case LOCK:
        old = s->word;
        s->word |= LOCKED;
        if ((old & LOCKED) == 0) {
            hold(s, t);
            return_to(me, me->after_lock);
        } else {
            me->step = SLOW_TAKE;
        }
        return 1;
    /* direct_mutex_timedlock: take */
    case TIMEDLOCK:
        if (take(s, t))
            return_to(me, me->after_lock);
        else
            me->step = SLOW_TAKE;
        return 1;

    /* lock_slow: take in the active loop; then look again or stop */
    case SLOW_TAKE:
        if (take(s, t)) {
            return_to(me, me->after_lock);
            return 1;
        }
        if ((s->word & (QUEUED | ACTIVE)) == QUEUED) {
            me->step = SLOW_ACTIVE;
            return 1;
        }
        me->step = way == 0 ? SLOW_BUCKET : SLOW_TAKE;
        if (way == 0)
            return me->looks > 0 ? 2 : 1;
        me->looks--;
        return 2;
    /* lock_slow: fetch_or ACTIVE */
    case SLOW_ACTIVE:
        s->word |= ACTIVE;
        me->step = way == 0 ? SLOW_BUCKET : SLOW_TAKE;
        if (way == 0)
            return me->looks > 0 ? 2 : 1;
        me->looks--;
        return 2;
    /* sbt_lot_park: queued first, then asked whether it must wait */
    case SLOW_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        queue_append(s, MUTEX, t);
        begin_wait(me, MUTEX, NOTICED, me->timed);
        me->after_finish = me->after_lock;
        me->step = VALIDATE_LOAD;
        return 1;
    case VALIDATE_LOAD:
        if (mutant == DESIGNATED_NO_MORE && me->again)
            me->designated = 0;
        me->seen = s->word;
        me->step = VALIDATE;
        return 1;
    /* validate: the compare-and-swap, none if it would change nothing; then what look() does with the answer */
    case VALIDATE:
        relied_on = any_designated(s), may_be_overdue = !me->again && (me->seen & (WOKEN | HANDED)) != 0 && relied_on;
        may_be_overdue = may_be_overdue && scenario->overdue;
        stale = !me->again && (!relied_on || way == 1) && mutant != STALE_WOKEN_KEPT ? me->seen & (WOKEN | HANDED) : 0;
        clear = me->again ? (me->designated ? WOKEN : 0) : mutant == ENQUEUE_KEEPS_ACTIVE ? stale : stale | ACTIVE;
        me->has_it = (me->seen & LOCKED) == 0 || ((me->seen & HANDED) != 0 && (me->inflight || (clear & HANDED) != 0));
        want = (uint8_t)(me->has_it ? (me->seen | LOCKED) & ~(clear | HANDED | ACTIVE) : (me->seen & ~clear) | QUEUED);
        if (want != me->seen && s->word != me->seen) {
            me->seen = s->word;
            return may_be_overdue ? 2 : 1;
        }
        if (want != me->seen)
            s->word = want;
        if (me->has_it)
            hold(s, t);
        if (stale != 0)
            designate_none(s);
        if (!me->has_it) {
            me->state = WAITING;
            me->inflight = me->designated = 0;
        }
        me->again = 1;
        me->seen = me->looks = 0;
        if (me->has_it || me->timed_out) {
            me->step = LEAVE_QUEUE;
        } else {
            unlock_bucket(s, MUTEX);
            me->step = WAIT_PARK;
        }
        return may_be_overdue ? 2 : 1;

    /* wait_for_notice: notified already, or WAITING -> PARKED */
    case WAIT_PARK:
        if (me->state > PARKED) {
            me->step = me->after_wait;
        } else {
            me->state = PARKED;
            me->step = WAIT_SLEEP;
        }
        return 1;
    /* the futex call: sleeps if the word is still PARKED */
    case WAIT_SLEEP:
        me->asleep = me->state == PARKED;
        me->step = me->asleep ? WAIT_ASLEEP : WAIT_PARK;
        return 1;
    case WAIT_ASLEEP:
        if (!me->asleep) {
            me->step = me->state > PARKED ? WAIT_PARK : WAIT_SLEEP;
            return 1;
        }
        if (!me->timed)
            return 0;
        me->asleep = 0;
        me->timed_out = 1;
        me->step = me->after_wait;
        return 1;

    /* wait_until_over: a notified waiter looks; a waiter after its deadline does not */
    case NOTICED:
        me->tries = 1;
        me->step = me->timed_out ? LOOK_BUCKET : RETRY_TAKE;
        return 1;
    case RETRY_TAKE:
        me->has_it = take_notified(s, t);
        if (me->has_it || me->tries-- == 0)
            me->step = LOOK_BUCKET;
        if (me->step == LOOK_BUCKET)
            me->tries = 0;
        return 1;
    case LOOK_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = me->has_it || (me->timed_out && mutant == TIME_UP_UNASKED) ? LEAVE_QUEUE : VALIDATE_LOAD;
        return 1;
    /* look: out of the queue, and successor() */
    case LEAVE_QUEUE:
        leave_queue(s, t);
        unlock_bucket(s, MUTEX);
        if (me->has_it) {
            me->has_it = me->again = 0;
            return_to(me, me->after_finish);
            return 1;
        }
        while (scenario->script[t][me->op] != 'u') /* the script goes on behind the unlock */
            me->op++;
        end_op(me);
        return 1;

    /* wake_one, wake_another: fetch_or or fetch_and WOKEN; then designate() and the end of the bucket's lock */
    case WAKE_MARK:
        me->target = (uint8_t)first_waiting(s, MUTEX);
        if (me->target == NO_THREAD) {
            if (me->another && s->n[MUTEX] != 0) {
                designate_none(s);
                s->word &= (uint8_t)~WOKEN;
            }
            me->target = me->another = 0;
            unlock_bucket(s, MUTEX);
            if (me->pair && !scenario->one_bucket)
                unlock_bucket(s, COND);
            me->step = SIGNAL_WAKE;
            return 1;
        }
        designate(s, me->target);
        s->word |= WOKEN;
        me->step = WAKE_NOTIFY;
        return 1;
    case WAKE_NOTIFY:
        other = &s->t[me->target];
        other->state = RETRY;
        me->notified = (uint8_t)(me->target + 1);
        me->target = me->another = 0;
        unlock_bucket(s, MUTEX);
        if (me->pair && !scenario->one_bucket)
            unlock_bucket(s, COND);
        me->step = SIGNAL_WAKE;
        return 1;
    /* wake: the notified waiter did not sleep */
    case ANOTHER_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->another = 1;
        me->step = WAKE_MARK;
        return 1;
    /* take_back */
    case BACK_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = BACK;
        return 1;
    case BACK:
        if (((s->word & HANDED) != 0 || mutant != BACK_RELIES_ON_IT) && any_inflight(s)) {
            s->word &= (uint8_t)((s->word & HANDED) != 0 ? ~(LOCKED | HANDED) : ~0);
            me->another = 1;
            me->step = WAKE_MARK;
        } else {
            unlock_bucket(s, MUTEX);
            me->step = SIGNAL_WAKE;
        }
        return 1;
    /* held_up */
    case HELD_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = HELD;
        return 1;
    case HELD:
        me->after_wake = IN_HANDLER;
        if (s->n[MUTEX] == 0) {
            unlock_bucket(s, MUTEX);
            me->step = IN_HANDLER;
            return 1;
        }
        if (mutant != HELD_UP_KEEPS_ACTIVE)
            s->word &= (uint8_t)~ACTIVE;
        if (me->inflight && (s->word & HANDED) != 0)
            s->word &= (uint8_t) ~(LOCKED | HANDED);
        me->another = 1;
        me->step = WAKE_MARK;
        return 1;
    case IN_HANDLER:
        for (int i = 0; i < n_threads; i++)
            if (i != t && s->t[i].step != END)
                return 0;
        me->step = me->resume;
        return 1;
    default:
        return 0;
    }
}
