/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mutex_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct scenario *scenario;
enum mutant mutant;
int n_threads;
const char *wrong;

bool forked(void) {
    return scenario->word != 0;
}

uint8_t *owner_of(struct state *s, int key) {
    return &s->bucket[key == COND && !scenario->one_bucket];
}

bool lock_bucket(struct state *s, int t, int key) {
    if (*owner_of(s, key) != NO_THREAD)
        return false;
    *owner_of(s, key) = (uint8_t)t;
    return true;
}

void queue_append(struct state *s, int key, int t) {
    s->queue[key][s->n[key]++] = (uint8_t)t;
}

void queue_remove(struct state *s, int key, int t) {
    int at = 0;
    while (at < s->n[key] && s->queue[key][at] != t)
        at++;
    if (at == s->n[key]) {
        wrong = "a waiter leaves a queue that it is not in";
        return;
    }
    s->n[key]--;
    memmove(&s->queue[key][at], &s->queue[key][at + 1], (size_t)(s->n[key] - at));
    s->queue[key][s->n[key]] = 0;
}

int first_waiting(const struct state *s, int key) {
    for (int i = 0; i < s->n[key]; i++)
        if (!s->t[s->queue[key][i]].inflight)
            return s->queue[key][i];
    return NO_THREAD;
}

bool any_inflight(const struct state *s) {
    for (int i = 0; i < s->n[MUTEX]; i++)
        if (s->t[s->queue[MUTEX][i]].inflight)
            return true;
    return false;
}

bool any_designated(const struct state *s) {
    for (int i = 0; i < s->n[MUTEX]; i++)
        if (s->t[s->queue[MUTEX][i]].designated)
            return true;
    return false;
}

/* The mutex's bucket is let go: the table of the word must hold, but for what a forked child inherits. */
void unlock_bucket(struct state *s, int key) {
    *owner_of(s, key) = NO_THREAD;
    if (forked() || *owner_of(s, MUTEX) != NO_THREAD)
        return;
    if (((s->word & WOKEN) != 0) != any_designated(s))
        wrong = "WOKEN does not say whether there is a designated waker";
    if ((s->word & HANDED) != 0 && ((s->word & LOCKED) == 0 || s->holder != NO_THREAD || !any_inflight(s)))
        wrong = "HANDED to no thread, or held";
    if (((s->word & QUEUED) != 0) != (s->n[MUTEX] != 0))
        wrong = "QUEUED does not say whether a waiter is queued";
}

void hold(struct state *s, int t) {
    if (s->holder != NO_THREAD)
        wrong = "two threads hold the mutex";
    s->holder = (uint8_t)t;
}

bool take(struct state *s, int t) {
    if ((s->word & LOCKED) != 0)
        return false;
    s->word = (uint8_t)((s->word | LOCKED) & ~ACTIVE);
    hold(s, t);
    return true;
}

/* The same for one that has been notified: it may be kept for it. */
bool take_notified(struct state *s, int t) {
    if ((s->word & (LOCKED | HANDED)) == LOCKED)
        return false;
    s->word = (uint8_t)((s->word | LOCKED) & ~(ACTIVE | HANDED));
    hold(s, t);
    return true;
}

void designate_none(struct state *s) {
    for (int i = 0; i < s->n[MUTEX]; i++)
        s->t[s->queue[MUTEX][i]].designated = 0;
}

void designate(struct state *s, int t) {
    if ((s->word & WOKEN) != 0)
        designate_none(s);
    s->t[t].inflight = s->t[t].designated = 1;
}

/* leave_queue's list part; its fetch_and on the word comes with it: only bits change that need the bucket lock. */
void leave_queue(struct state *s, int t) {
    uint8_t ends = mutant == LEAVING_ENDS_ANOTHERS ? s->t[t].inflight : s->t[t].designated, clear = ends ? WOKEN : 0;
    queue_remove(s, MUTEX, t);
    if (s->n[MUTEX] == 0)
        clear |= QUEUED | WOKEN;
    s->word &= (uint8_t)~clear;
    s->t[t].inflight = s->t[t].designated = 0;
}

/* Forget what the thread no longer looks at, so that equal states are equal bytes. */
void end_op(struct thread *me) {
    struct thread fresh = {.step = NEXT_OP, .op = (uint8_t)(me->op + 1)};
    *me = fresh;
}

void begin_wait(struct thread *me, int role, int after_wait, bool timed) {
    me->state = WAITING;
    me->role = (uint8_t)role;
    me->inflight = me->designated = 0;
    me->timed = timed;
    me->timed_out = me->again = me->has_it = 0;
    me->after_wait = (uint8_t)after_wait;
}

/* The next operation of the script. A local step: merged with nothing, costs little. */
void next_op(struct state *s, int t) {
    struct thread *me = &s->t[t];
    const char *op = scenario->script[t] + me->op;
    me->looks = 1;
    switch (*op) {
    case 'l':
        me->step = LOCK, me->after_lock = NEXT_OP;
        break;
    case 't':
        me->step = TIMEDLOCK, me->after_lock = NEXT_OP, me->timed = 1;
        break;
    case 'u':
        me->step = UNLOCK, me->after_unlock = NEXT_OP;
        break;
    case 'w':
    case 'T':
    case 'c':
        if (s->tokens > 0) {
            s->tokens--;
            end_op(me);
        } else {
            me->step = COND_WAIT;
        }
        break;
    case 'p':
        s->tokens++;
        end_op(me);
        break;
    case 's':
    case 'b':
        me->step = SIGNAL, me->left = *op == 's' ? 1 : NO_THREAD, me->after_wake = NEXT_OP;
        break;
    case '\0':
        me->step = END;
        break;
    default:
        fprintf(stderr, "bad script\n");
        exit(2);
    }
}

void return_to(struct thread *me, uint8_t step) {
    if (step == NEXT_OP)
        end_op(me);
    else
        me->step = step;
}

/* A thread that has the mutex already keeps the others out in its handler, as everywhere. */
bool may_interrupt(const struct thread *me) {
    return !me->interrupted && !me->has_it && me->step >= SLOW_TAKE && me->step <= LOOK_BUCKET &&
           me->step != VALIDATE_LOAD && me->step != VALIDATE;
}

/* The lot's interrupt(). A sleeper is woken by the signal; a waiter for a signal is not relied on. */
void interrupt(struct thread *me) {
    bool relied_on = me->step <= SLOW_BUCKET || (me->role == MUTEX && me->state != PARKED);
    me->interrupted = 1;
    me->resume = me->step;
    me->asleep = 0;
    me->step = relied_on && mutant != HELD_UP_UNSAID ? HELD_BUCKET : IN_HANDLER;
}
