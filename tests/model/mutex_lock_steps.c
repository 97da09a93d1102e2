/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a mutex is taken and waited for: engine/direct/mutex.c, and cond.c where it ends there. */
#include "mutex_model.h"

int lock_step(struct state *s, int t, int way) {
    struct thread *me = &s->t[t];
    struct thread *other;
    uint8_t old, want, stale;
    bool told, may_be_overdue;
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
    case SLOW_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = SLOW_LOAD;
        return 1;
    case SLOW_LOAD:
        me->seen = s->word;
        me->step = SLOW_QUEUE;
        return 1;
    /* lock_slow: take, or the compare-and-swap that sets QUEUED (none if it would change nothing) */
    case SLOW_QUEUE:
        if ((me->seen & LOCKED) == 0) {
            if (take(s, t)) {
                unlock_bucket(s, MUTEX);
                return_to(me, me->after_lock);
            } else {
                me->seen = s->word;
            }
            return 1;
        }
        told = (me->seen & (WOKEN | HANDED)) != 0 && any_counted(s), may_be_overdue = told && scenario->overdue;
        stale = 0;
        if ((me->seen & (WOKEN | HANDED)) != 0 && (!told || way == 1) && mutant != STALE_WOKEN_KEPT) /* 1: overdue */
            stale = (me->seen & HANDED) != 0 ? WOKEN | HANDED | LOCKED : WOKEN;
        want = (uint8_t)((me->seen & ~stale) | ((stale & LOCKED) == 0 ? QUEUED : 0));
        if (mutant != ENQUEUE_KEEPS_ACTIVE)
            want &= (uint8_t)~ACTIVE;
        if (want != me->seen && s->word != me->seen) {
            me->seen = s->word;
            return may_be_overdue ? 2 : 1;
        }
        if (want != me->seen)
            s->word = want;
        if (stale != 0)
            count_on_none(s);
        if ((want & LOCKED) == 0) {
            me->seen = want;
            return may_be_overdue ? 2 : 1;
        }
        queue_append(s, MUTEX, t);
        begin_wait(me, MUTEX, FINISH_STATE, me->timed);
        me->after_finish = me->after_lock;
        unlock_bucket(s, MUTEX);
        return may_be_overdue ? 2 : 1;

    /* sbt_waiter_wait: told already, or WAITING -> PARKED */
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

    /* direct_mutex_finish */
    case FINISH_STATE:
        me->tries = 1;
        me->step = FINISH_TAKE;
        return 1;
    case FINISH_TAKE:
        if (me->timed_out ? take(s, t) : take_told(s, t)) {
            me->step = FINISH_BUCKET;
            return 1;
        }
        if (me->timed_out) {
            me->step = GIVE_UP_BUCKET;
            return 1;
        }
        if (me->tries > 0)
            me->tries--;
        else
            me->step = AGAIN_BUCKET;
        return 1;
    case FINISH_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = LEAVE_QUEUE;
        return 1;
    case LEAVE_QUEUE:
        leave_queue(s, t);
        unlock_bucket(s, MUTEX);
        return_to(me, me->after_finish);
        return 1;

    /* wait_again */
    case AGAIN_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = AGAIN_TAKE;
        return 1;
    case AGAIN_TAKE:
        if (take_told(s, t)) {
            me->step = LEAVE_QUEUE;
            return 1;
        }
        me->seen = s->word;
        me->was_inflight = me->counted; /* what it is to clear */
        me->state = WAITING;
        me->inflight = 0;
        if (mutant == FLIGHT_ENDS_EARLY)
            me->counted = 0;
        me->step = AGAIN_CAS;
        return 1;
    case AGAIN_CAS:
        if (s->word == me->seen) {
            s->word = (uint8_t)((me->seen & ~(me->was_inflight ? WOKEN : 0)) | QUEUED);
            me->counted = me->was_inflight = 0;
            unlock_bucket(s, MUTEX);
            me->step = WAIT_PARK;
        } else {
            me->seen = s->word;
            me->step = (s->word & LOCKED) == 0 ? AGAIN_TAKE_2 : AGAIN_CAS;
        }
        return 1;
    case AGAIN_TAKE_2:
        me->step = take(s, t) ? LEAVE_QUEUE : AGAIN_CAS;
        me->seen = s->word;
        return 1;

    /* give_up */
    case GIVE_UP_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = GIVE_UP;
        return 1;
    case GIVE_UP:
        me->was_inflight = me->inflight;
        if (me->was_inflight && take_told(s, t)) {
            me->step = LEAVE_QUEUE;
            return 1;
        }
        me->step = GIVE_UP_LEAVE;
        return 1;
    case GIVE_UP_LEAVE:
        leave_queue(s, t);
        while (scenario->script[t][me->op] != 'u') /* the script goes on behind the unlock */
            me->op++;
        me->step = GIVE_UP_LOOK;
        return 1;
    case GIVE_UP_LOOK:
        if (me->was_inflight && (s->word & (LOCKED | QUEUED)) == QUEUED) {
            me->after_wake = NEXT_OP;
            me->step = WAKE_MARK;
        } else {
            unlock_bucket(s, MUTEX);
            end_op(me);
        }
        return 1;

    /* wake_one, wake_another: fetch_or or fetch_and WOKEN; then the waiter's word and the end of the bucket's */
    case WAKE_MARK:
        me->target = (uint8_t)first_waiting(s, MUTEX);
        if (me->target == NOBODY) {
            if (me->another && s->n[MUTEX] != 0) {
                count_on_none(s);
                s->word &= (uint8_t)~WOKEN;
            }
            me->target = me->another = 0;
            unlock_bucket(s, MUTEX);
            if (me->pair && !scenario->one_bucket)
                unlock_bucket(s, COND);
            me->step = SIGNAL_WAKE;
            return 1;
        }
        count_on(s, me->target);
        s->word |= WOKEN;
        me->step = WAKE_TELL;
        return 1;
    case WAKE_TELL:
        other = &s->t[me->target];
        other->state = RETRY;
        me->told = (uint8_t)(me->target + 1);
        me->target = me->another = 0;
        unlock_bucket(s, MUTEX);
        if (me->pair && !scenario->one_bucket)
            unlock_bucket(s, COND);
        me->step = SIGNAL_WAKE;
        return 1;
    /* wake_or_next: the one that was told did not sleep */
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
        if ((s->word & HANDED) != 0 && any_inflight(s)) {
            s->word &= (uint8_t) ~(LOCKED | HANDED);
            me->another = 1;
            me->step = WAKE_MARK;
        } else {
            unlock_bucket(s, MUTEX);
            me->step = SIGNAL_WAKE;
        }
        return 1;
    default:
        return 0;
    }
}
