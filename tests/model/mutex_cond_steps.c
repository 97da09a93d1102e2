/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits and signals: engine/direct/cond.c, and what it needs of mutex.c. */
#include "mutex_model.h"

int cond_step(struct state *s, int t, int way) {
    struct thread *me = &s->t[t];
    struct thread *other;
    uint8_t old;
    bool expected;
    switch ((enum step)me->step) {
    /* direct_cond_wait */
    case COND_WAIT:
        if (!lock_bucket(s, t, COND))
            return 0;
        me->step = COND_APPEND;
        return 1;
    case COND_APPEND:
        s->cond_word = 1;
        queue_append(s, COND, t);
        begin_wait(me, COND, COND_STATE, scenario->script[t][me->op] != 'w');
        me->again = 1;
        unlock_bucket(s, COND);
        me->after_unlock = WAIT_PARK;
        me->step = UNLOCK;
        return 1;
    /* wait_until_over, abandon: the waiter's word, without the lock */
    case COND_STATE:
        if (me->timed_out && scenario->script[t][me->op] == 'c')
            me->cancelled = 1;
        me->after_lock = me->after_finish = COND_DONE;
        me->looks = 1;
        if (me->state == GRANTED) {
            me->signalled = 1;
            me->timed = me->timed_out = 0;
            me->step = LOCK;
        } else if (me->state == RETRY && !me->timed_out) { /* which has been moved */
            me->signalled = 1;
            me->timed = 0;
            me->after_wait = NOTICED;
            me->step = NOTICED;
        } else {
            me->target = me->role; /* lock_of reads the key */
            me->step = COND_BUCKET;
        }
        return 1;
    case COND_BUCKET:
        if (!lock_bucket(s, t, me->target))
            return 0;
        me->step = COND_LEAVE;
        return 1;
    case COND_LEAVE:
        if (me->role != me->target) { /* moved meanwhile: the other bucket */
            unlock_bucket(s, me->target);
            me->target = me->role;
            me->step = COND_BUCKET;
            return 1;
        }
        old = me->target;
        me->target = 0;
        me->signalled = me->state == GRANTED || me->role == MUTEX;
        me->timed = 0;
        if (me->role == MUTEX) { /* there is no deadline any more */
            me->timed_out = mutant == MOVED_TIMES_OUT;
            me->after_wait = NOTICED;
            me->step = VALIDATE_LOAD;
            if (me->cancelled) { /* abandon waits on */
                unlock_bucket(s, old);
                me->step = me->state == PARKED ? WAIT_SLEEP : WAIT_PARK;
            }
            return 1;
        }
        me->timed_out = 0;
        if (!me->signalled) {
            queue_remove(s, COND, t);
            if (s->n[COND] == 0)
                s->cond_word = 0;
        }
        unlock_bucket(s, old);
        me->step = LOCK;
        return 1;
    /* the mutex is held again: a consumed signal is passed on; the script decides whether to wait again */
    case COND_DONE: {
        uint8_t gave_up = me->cancelled || (scenario->script[t][me->op] == 'T' && !me->signalled);
        uint8_t pass_on = me->cancelled && me->signalled && mutant != CANCEL_KEEPS_SIGNAL;
        me->op--;
        end_op(me);
        while (gave_up && scenario->script[t][me->op] != 'u')
            me->op++;
        if (pass_on) {
            me->op--;                 /* the end of the signal brings it to the unlock */
            me->step = SIGNAL_BUCKET; /* signal_some, by address */
            me->left = 1;
            me->after_wake = NEXT_OP;
        }
        return 1;
    }

    /* direct_cond_signal, _broadcast: load */
    case SIGNAL:
        if (s->cond_word == 0)
            end_op(me);
        else
            me->step = SIGNAL_BUCKET;
        return 1;
    /* sbt_lot_sort: one bucket, or both in the order of their addresses (here: the mutex's first) */
    case SIGNAL_BUCKET:
        if (!lock_bucket(s, t, me->pair ? MUTEX : COND))
            return 0;
        me->step = me->pair && !scenario->one_bucket ? SIGNAL_BUCKET_2 : SIGNAL_LOOK;
        return 1;
    case SIGNAL_BUCKET_2:
        if (!lock_bucket(s, t, COND))
            return 0;
        me->step = SIGNAL_LOOK;
        return 1;
    /*
     * decide: is the first asleep, and does it sleep on? If this run has granted none yet, it may be woken. A broadcast
     * that reaches others needs both buckets in any case.
     */
    case SIGNAL_LOOK: {
        me->target = (uint8_t)(me->left > 0 ? first_waiting(s, COND) : NO_THREAD);
        bool sleeps = me->target != NO_THREAD && s->t[me->target].state == PARKED;
        bool may_be_woken = sleeps && !me->woken, moves = sleeps && way == 0;
        bool too_early = me->left == NO_THREAD && s->n[COND] > 1;
        if (me->target == NO_THREAD) {
            me->target = 0;
            me->step = SIGNAL_MOVED;
        } else if ((moves || too_early) && !me->pair) {
            me->target = 0;
            unlock_bucket(s, COND);
            me->pair = 1;
            me->step = SIGNAL_BUCKET;
        } else {
            me->moves = moves;
            me->step = SIGNAL_DECIDE;
        }
        return may_be_woken ? 2 : 1;
    }
    /* move it; or grant it its wake-up: if it has fallen asleep since, it is woken */
    case SIGNAL_DECIDE:
        other = &s->t[me->target];
        queue_remove(s, COND, me->target);
        if (me->moves) {
            other->role = MUTEX;
            queue_append(s, MUTEX, me->target);
            me->moved = 1;
        } else {
            if (other->state == PARKED && mutant != GRANTED_SLEEPS_ON)
                me->wakes |= (uint8_t)(1 << me->target);
            if (other->state == PARKED && mutant == WOKEN_ENDS_RUN)
                me->left = 1;
            other->state = GRANTED;
            me->woken = 1;
        }
        me->moves = 0;
        if (s->n[COND] == 0)
            s->cond_word = 0;
        if (me->left != NO_THREAD)
            me->left--;
        me->target = 0;
        me->step = SIGNAL_LOOK;
        return 1;
    /* direct_mutex_after_move: load; then the compare-and-swap */
    case SIGNAL_MOVED:
        if (!me->moved) {
            unlock_bucket(s, COND);
            if (me->pair && !scenario->one_bucket)
                unlock_bucket(s, MUTEX);
            me->step = SIGNAL_WAKE;
        } else {
            me->seen = s->word;
            me->step = MOVED_CAS;
        }
        return 1;
    case MOVED_CAS:
        if (s->word != me->seen) {
            me->seen = s->word;
            return 1;
        }
        expected = any_designated(s) && (me->seen & WOKEN) != 0;
        if (!expected && (me->seen & HANDED) != 0)
            me->seen &= (uint8_t) ~(LOCKED | HANDED);
        s->word = (uint8_t)((me->seen & ~(mutant == ACTIVE_OUTLIVES_MOVE ? WOKEN : WOKEN | ACTIVE)) | QUEUED |
                            (expected || (me->seen & LOCKED) == 0 ? WOKEN : 0));
        if (expected || (me->seen & LOCKED) != 0 || mutant == MOVE_FORGETS_FREE) {
            if (!scenario->one_bucket)
                unlock_bucket(s, COND);
            unlock_bucket(s, MUTEX);
            me->step = SIGNAL_WAKE;
        } else {
            me->step = WAKE_MARK;
        }
        return 1;
    /* the futex calls, one by one; last that for the waiter notified to retry */
    case SIGNAL_WAKE:
        for (int i = 0; i < n_threads; i++)
            if ((me->wakes & 1 << i) != 0) {
                me->wakes &= (uint8_t) ~(1 << i);
                s->t[i].asleep = 0;
                return 1;
            }
        if (me->notified != 0) {
            other = &s->t[me->notified - 1];
            me->step = other->asleep ? SIGNAL_WAKE : me->handed ? BACK_BUCKET : ANOTHER_BUCKET;
            other->asleep = 0;
            me->notified = me->handed = 0;
            me->pair = 0;
            return 1;
        }
        me->pair = me->moved = me->left = me->handed = me->woken = 0;
        return_to(me, me->after_wake);
        return 1;
    default:
        return 0;
    }
}
