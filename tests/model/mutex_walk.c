/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every interleaving of a few threads over one mutex and one condition of the engine `direct`.
 *
 * Each `case` below is one atomic step of engine/direct/mutex.c or cond.c, named after the function it is in. Steps
 * that no other thread can tell apart are one: a load with the compare-and-swap that follows it in take(); list
 * operations under a bucket lock with the atomic before them; the release of a bucket with the last thing done under
 * it. Time is a choice: a deadline passes, a cancellation strikes, a hand-over is due, a waiter looks again, whenever
 * that could be. Memory is sequentially consistent: orders are argued in the sources, not walked here. A futex sleeper
 * stays asleep until the futex call that wakes it, which is a step of its own.
 *
 * Checked: two threads never hold the mutex; the word's table in direct.h; nobody sleeps for ever, that is, every walk
 * ends with all threads at the end of their scripts. Each mutant is a mistake put back in; a walk that does not find it
 * is a walk that finds nothing, so it fails the test.
 */
#include "interleave.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKED = 1, QUEUED = 2, WOKEN = 4, ACTIVE = 8, SPUN = 16 }; /* the mutex word */
enum { WAITING, PARKED, RETRY, GRANTED };                          /* the waiter's word */
enum { MUTEX, COND };                                              /* keys, and roles */
enum { MAX_THREADS = 4, NOBODY = 255 };
enum mutant {
    NONE,
    FLIGHT_ENDS_EARLY,
    TIMEOUT_WAKES_NOBODY,
    ACTIVE_OUTLIVES_MOVE,
    STALE_WOKEN_KEPT,
    MOVE_FORGETS_FREE,
    CANCEL_KEEPS_SIGNAL,
    ENQUEUE_KEEPS_ACTIVE
};

/* clang-format off */
#define STEPS(X) \
    X(NEXT_OP) X(LOCK) X(TIMEDLOCK) X(SLOW_TAKE) X(SLOW_ACTIVE) X(SLOW_BUCKET) X(SLOW_LOAD) X(SLOW_QUEUE) \
    X(WAIT_PARK) X(WAIT_SLEEP) X(WAIT_ASLEEP) X(FINISH_STATE) X(FINISH_TAKE) X(FINISH_BUCKET) X(LEAVE_QUEUE) \
    X(AGAIN_BUCKET) X(AGAIN_TAKE) X(AGAIN_CAS) X(AGAIN_TAKE_2) X(GIVE_UP_BUCKET) X(GIVE_UP) X(GIVE_UP_LOOK) \
    X(WAKE_MARK) X(WAKE_TELL) X(UNLOCK) X(UNLOCK_SPUN) X(UNLOCK_KIND) X(UNLOCK_SUB) X(AFTER_BUCKET) X(AFTER_LOOK) \
    X(SLEEPER_BUCKET) X(SLEEPER) X(SLEEPER_GRANT) X(ACTIVE_CAS) X(COND_WAIT) X(COND_APPEND) X(COND_STATE) \
    X(COND_BUCKET) X(COND_LEAVE) X(COND_DONE) X(SIGNAL) X(SIGNAL_BUCKET) X(SIGNAL_BUCKET_2) X(SIGNAL_LOOK) \
    X(SIGNAL_TELL) X(SIGNAL_MOVED) X(MOVED_CAS) X(SIGNAL_WAKE) X(END)
/* clang-format on */
#define AS_ENUM(name) name,
#define AS_TEXT(name) #name,
enum step { STEPS(AS_ENUM) };
static const char *const step_name[] = {STEPS(AS_TEXT)};

/* All bytes, no padding: compared and fingerprinted as memory. */
struct thread {
    uint8_t step, op;                             /* next step; place in the script */
    uint8_t after_lock, after_unlock, after_wait; /* where subroutines return to */
    uint8_t after_finish, after_wake;
    uint8_t seen, looks, tries, timed, timed_out;
    uint8_t state, role, inflight, asleep; /* its waiter */
    uint8_t was_inflight, signalled, cancelled;
    uint8_t left, pair, moved, target, wakes; /* a run of signals; a wake-up */
};

struct state {
    uint8_t word, holder, cond_word, tokens;
    uint8_t bucket[2];                   /* who holds it */
    uint8_t queue[2][MAX_THREADS], n[2]; /* by key, first come first; which bucket a key is in: scenario */
    struct thread t[MAX_THREADS];
};

/*
 * Scripts: l lock, t timed lock (when it fails the script goes on behind the next u), u unlock, w wait until there is a
 * token and take it, T the same with a deadline, c the same and may be cancelled (then both go on at the next u), p put
 * a token, s signal, b broadcast.
 */
struct scenario {
    const char *name;
    const char *script[MAX_THREADS];
    uint8_t word;       /* at the beginning: what a forked child may find; LOCKED: by the first thread */
    uint8_t one_bucket; /* mutex and condition share it */
    uint8_t cond_word;
};

static const struct scenario *scenario;
static enum mutant mutant;
static int n_threads;
static const char *wrong; /* why the walk stopped */

static bool forked(void) {
    return scenario->word != 0;
}

static uint8_t *owner_of(struct state *s, int key) {
    return &s->bucket[key == COND && !scenario->one_bucket];
}

static bool lock_bucket(struct state *s, int t, int key) {
    if (*owner_of(s, key) != NOBODY)
        return false;
    *owner_of(s, key) = (uint8_t)t;
    return true;
}

static void queue_append(struct state *s, int key, int t) {
    s->queue[key][s->n[key]++] = (uint8_t)t;
}

static void queue_remove(struct state *s, int key, int t) {
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

static int first_waiting(const struct state *s, int key) {
    for (int i = 0; i < s->n[key]; i++)
        if (!s->t[s->queue[key][i]].inflight)
            return s->queue[key][i];
    return NOBODY;
}

static bool any_inflight(const struct state *s) {
    for (int i = 0; i < s->n[MUTEX]; i++)
        if (s->t[s->queue[MUTEX][i]].inflight)
            return true;
    return false;
}

/* The mutex's bucket is let go: the table of the word must hold, but for what a forked child inherits. */
static void unlock_bucket(struct state *s, int key) {
    *owner_of(s, key) = NOBODY;
    if (forked() || *owner_of(s, MUTEX) != NOBODY)
        return;
    if ((s->word & WOKEN) != 0 && !any_inflight(s))
        wrong = "WOKEN, and nobody is inflight";
    if (((s->word & QUEUED) != 0) != (s->n[MUTEX] != 0))
        wrong = "QUEUED does not say whether somebody is queued";
}

static void hold(struct state *s, int t) {
    if (s->holder != NOBODY)
        wrong = "two threads hold the mutex";
    s->holder = (uint8_t)t;
}

static bool take(struct state *s, int t) {
    if ((s->word & LOCKED) != 0)
        return false;
    s->word = (uint8_t)((s->word | LOCKED) & ~ACTIVE);
    hold(s, t);
    return true;
}

/* leave_queue's list part; its fetch_and on the word comes with it: only bits change that need the bucket lock. */
static void leave_queue(struct state *s, int t) {
    uint8_t clear = s->t[t].inflight ? WOKEN : 0;
    queue_remove(s, MUTEX, t);
    if (s->n[MUTEX] == 0)
        clear |= QUEUED | WOKEN;
    s->word &= (uint8_t)~clear;
    s->t[t].inflight = 0;
}

/* Forget what the thread no longer looks at, so that equal states are equal bytes. */
static void end_op(struct thread *me) {
    struct thread fresh = {.step = NEXT_OP, .op = (uint8_t)(me->op + 1)};
    *me = fresh;
}

static void begin_wait(struct thread *me, int role, int after_wait, bool timed) {
    me->state = WAITING;
    me->role = (uint8_t)role;
    me->inflight = 0;
    me->timed = timed;
    me->timed_out = 0;
    me->after_wait = (uint8_t)after_wait;
    me->step = WAIT_PARK;
}

/* The next operation of the script. A local step: merged with nothing, costs little. */
static void next_op(struct state *s, int t) {
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
        me->step = SIGNAL, me->left = *op == 's' ? 1 : NOBODY, me->after_wake = NEXT_OP;
        break;
    case '\0':
        me->step = END;
        break;
    default:
        fprintf(stderr, "bad script\n");
        exit(2);
    }
}

static void return_to(struct thread *me, uint8_t step) {
    if (step == NEXT_OP)
        end_op(me);
    else
        me->step = step;
}

/*
 * One step of thread t, taken in one of its ways. Returns how many ways there are; 0: it is blocked.
 */
static int step(void *state, int t, int way) {
    struct state *s = state;
    struct thread *me = &s->t[t];
    struct thread *other;
    uint8_t old, want;
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
        want = me->seen | QUEUED;
        if (mutant != ENQUEUE_KEEPS_ACTIVE)
            want &= (uint8_t)~ACTIVE;
        if ((me->seen & WOKEN) != 0 && !any_inflight(s) && mutant != STALE_WOKEN_KEPT)
            want &= (uint8_t)~WOKEN;
        if (want != me->seen && s->word != me->seen) {
            me->seen = s->word;
            return 1;
        }
        if (want != me->seen)
            s->word = want;
        queue_append(s, MUTEX, t);
        begin_wait(me, MUTEX, FINISH_STATE, me->timed);
        me->after_finish = me->after_lock;
        unlock_bucket(s, MUTEX);
        return 1;

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
        if (me->state == GRANTED)
            return_to(me, me->after_finish);
        else
            me->step = FINISH_TAKE;
        return 1;
    case FINISH_TAKE:
        if (take(s, t)) {
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
        if (take(s, t)) {
            me->step = LEAVE_QUEUE;
            return 1;
        }
        me->seen = s->word;
        me->state = WAITING;
        if (mutant == FLIGHT_ENDS_EARLY)
            me->inflight = 0;
        me->step = AGAIN_CAS;
        return 1;
    case AGAIN_CAS:
        if (s->word == me->seen) {
            s->word = (uint8_t)((me->seen & ~WOKEN) | QUEUED);
            me->inflight = 0;
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
        if (me->state == GRANTED) {
            unlock_bucket(s, MUTEX);
            return_to(me, me->after_finish);
            return 1;
        }
        me->was_inflight = me->inflight;
        leave_queue(s, t);
        while (scenario->script[t][me->op] != 'u') /* the script goes on behind the unlock */
            me->op++;
        me->step = GIVE_UP_LOOK;
        return 1;
    case GIVE_UP_LOOK:
        if (me->was_inflight && (s->word & (LOCKED | QUEUED)) == QUEUED && mutant != TIMEOUT_WAKES_NOBODY) {
            me->after_wake = NEXT_OP;
            me->step = WAKE_MARK;
        } else {
            unlock_bucket(s, MUTEX);
            end_op(me);
        }
        return 1;

    /* wake_one: fetch_or WOKEN; then sbt_waiter_tell and the end of the bucket's; then the futex call */
    case WAKE_MARK:
        me->target = (uint8_t)first_waiting(s, MUTEX);
        if (me->target == NOBODY) {
            me->target = 0;
            unlock_bucket(s, MUTEX);
            if (me->pair && !scenario->one_bucket)
                unlock_bucket(s, COND);
            me->step = SIGNAL_WAKE;
            return 1;
        }
        s->t[me->target].inflight = 1;
        s->word |= WOKEN;
        me->step = WAKE_TELL;
        return 1;
    case WAKE_TELL:
        other = &s->t[me->target];
        if (other->state == PARKED)
            me->wakes |= (uint8_t)(1 << me->target);
        other->state = RETRY;
        me->target = 0;
        unlock_bucket(s, MUTEX);
        if (me->pair && !scenario->one_bucket)
            unlock_bucket(s, COND);
        me->step = SIGNAL_WAKE;
        return 1;

    /* direct_mutex_unlock: load */
    case UNLOCK:
        if (s->holder != t)
            wrong = "an unlock by somebody else";
        me->seen = s->word;
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
    /* direct_mutex_unlock, unlock_slow, unlock_to_active: fetch_sub */
    case UNLOCK_SUB:
        old = s->word;
        s->word &= (uint8_t)~LOCKED;
        s->holder = NOBODY;
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
        if (any_inflight(s) || first_waiting(s, MUTEX) == NOBODY) {
            unlock_bucket(s, MUTEX);
            return_to(me, me->after_unlock);
        } else {
            me->after_wake = me->after_unlock;
            me->step = WAKE_MARK;
        }
        return 1;
    /* unlock_to_sleeper: nobody to wake; hand over; or free it and wake the first */
    case SLEEPER_BUCKET:
        if (!lock_bucket(s, t, MUTEX))
            return 0;
        me->step = SLEEPER;
        return 1;
    case SLEEPER:
        me->target = (uint8_t)first_waiting(s, MUTEX);
        if (me->target == NOBODY) {
            me->target = 0;
            s->word &= s->n[MUTEX] != 0 ? QUEUED | WOKEN | SPUN : SPUN;
            s->holder = NOBODY;
            unlock_bucket(s, MUTEX);
            return_to(me, me->after_unlock);
            return 1;
        }
        me->after_wake = me->after_unlock;
        if (way == 0) {
            s->t[me->target].inflight = 1;
            s->word = (uint8_t)((s->word & ~LOCKED) | WOKEN);
            s->holder = NOBODY;
            me->step = WAKE_TELL;
        } else {
            leave_queue(s, me->target);
            me->step = SLEEPER_GRANT;
        }
        return 2;
    case SLEEPER_GRANT:
        other = &s->t[me->target];
        if (other->state == PARKED)
            me->wakes |= (uint8_t)(1 << me->target);
        other->state = GRANTED;
        s->holder = me->target;
        me->target = 0;
        unlock_bucket(s, MUTEX);
        me->step = SIGNAL_WAKE;
        return 1;
    /* unlock_to_active: compare-and-swap */
    case ACTIVE_CAS:
        if (s->word == me->seen) {
            s->word = (uint8_t)(me->seen & ~(LOCKED | ACTIVE));
            s->holder = NOBODY;
            return_to(me, me->after_unlock);
        } else {
            me->seen = s->word;
            me->step = (s->word & ACTIVE) != 0 ? ACTIVE_CAS : UNLOCK_SUB;
        }
        return 1;

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
        unlock_bucket(s, COND);
        me->after_unlock = WAIT_PARK;
        me->step = UNLOCK;
        return 1;
    /* cond.c finish: state, without the lock */
    case COND_STATE:
        if (me->timed_out && scenario->script[t][me->op] == 'c')
            me->cancelled = 1;
        me->after_lock = me->after_finish = COND_DONE;
        me->looks = 1;
        if (me->state == GRANTED) {
            me->signalled = 1;
            me->timed = 0;
            me->step = me->role == COND ? LOCK : COND_DONE;
        } else {
            me->target = me->role; /* sbt_lot_lock_waiter reads the key */
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
        if (!me->signalled) {
            queue_remove(s, COND, t);
            if (s->n[COND] == 0)
                s->cond_word = 0;
        }
        unlock_bucket(s, old);
        me->timed = 0;
        if (me->role == COND) {
            me->step = LOCK;
        } else if (me->state == GRANTED) {
            me->step = COND_DONE;
        } else {
            me->timed_out = 0;
            me->after_wait = FINISH_STATE;
            me->step = me->state == WAITING ? WAIT_PARK : me->state == PARKED ? WAIT_SLEEP : WAIT_PARK;
        }
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
            me->op--;                 /* whose end brings it to the unlock */
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
    /* signal_some: one bucket, or both in the order of their addresses (here: the mutex's first) */
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
    /* signal_run: is the first asleep? */
    case SIGNAL_LOOK:
        me->target = (uint8_t)(me->left > 0 ? first_waiting(s, COND) : NOBODY);
        if (me->target == NOBODY) {
            me->target = 0;
            me->step = SIGNAL_MOVED;
        } else if (s->t[me->target].state == PARKED && !me->pair) {
            me->target = 0;
            unlock_bucket(s, COND);
            me->pair = 1;
            me->step = SIGNAL_BUCKET; /* wakes_do of those told so far: a delay at most, so left out here */
        } else {
            me->step = SIGNAL_TELL;
        }
        return 1;
    /* signal_run: remove, tell_awake; else move it, or wake it */
    case SIGNAL_TELL:
        other = &s->t[me->target];
        queue_remove(s, COND, me->target);
        if (other->state == WAITING) {
            other->state = GRANTED;
        } else if (me->pair) {
            other->role = MUTEX;
            queue_append(s, MUTEX, me->target);
            me->moved = 1;
        } else {
            other->state = GRANTED;
            me->wakes |= (uint8_t)(1 << me->target);
        }
        if (s->n[COND] == 0)
            s->cond_word = 0;
        if (me->left != NOBODY)
            me->left--;
        me->target = 0;
        me->step = SIGNAL_LOOK;
        return 1;
    /* direct_mutex_wake_moved: load; then the compare-and-swap */
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
        s->word = (uint8_t)((me->seen & ~(mutant == ACTIVE_OUTLIVES_MOVE ? WOKEN : WOKEN | ACTIVE)) | QUEUED |
                            (any_inflight(s) || (me->seen & LOCKED) == 0 ? WOKEN : 0));
        if (any_inflight(s) || (me->seen & LOCKED) != 0 || mutant == MOVE_FORGETS_FREE) {
            if (!scenario->one_bucket)
                unlock_bucket(s, COND);
            unlock_bucket(s, MUTEX);
            me->step = SIGNAL_WAKE;
        } else {
            me->step = WAKE_MARK;
        }
        return 1;
    /* the futex calls, one by one */
    case SIGNAL_WAKE:
        for (int i = 0; i < n_threads; i++)
            if ((me->wakes & 1 << i) != 0) {
                me->wakes &= (uint8_t) ~(1 << i);
                s->t[i].asleep = 0;
                break;
            }
        if (me->wakes == 0) {
            me->pair = me->moved = me->left = 0;
            return_to(me, me->after_wake);
        }
        return 1;
    case END:
        return 0;
    }
    return 0;
}

static void at_end(const void *state) {
    const struct state *s = state;
    for (int i = 0; i < n_threads; i++)
        if (s->t[i].step != END) {
            wrong = "somebody waits for ever";
            return;
        }
    if (s->holder != NOBODY || (s->word & LOCKED) != 0)
        wrong = "the mutex is still held";
    if (!forked() && s->word != 0)
        wrong = "bits are left behind";
}

static void print(const void *state, int t, int way) {
    const struct state *s = state;
    printf("#   thread %d %s%s (word %x)\n", t, step_name[s->t[t].step], way != 0 ? ", other way" : "", s->word);
}

/* True if nothing is wrong. */
static bool walk(const struct scenario *which, enum mutant with, bool show, uint64_t *n_states) {
    scenario = which;
    mutant = with;
    wrong = NULL;
    for (n_threads = 0; n_threads < MAX_THREADS && which->script[n_threads] != NULL;)
        n_threads++;
    struct state first = {.word = which->word,
                          .holder = (which->word & LOCKED) != 0 ? 0 : NOBODY,
                          .cond_word = which->cond_word,
                          .bucket = {NOBODY, NOBODY}};
    struct interleave what = {sizeof first, n_threads, step, at_end, &wrong, print};
    return interleave_walk(&what, &first, show, n_states);
}

static const struct scenario scenarios[] = {
    {"three threads lock", {"lu", "lu", "lu"}, 0, 0, 0},
    {"two lock twice, one once", {"lulu", "lulu", "lu"}, 0, 0, 0},
    {"a deadline", {"lu", "tu", "lu"}, 0, 0, 0},
    {"two deadlines", {"lu", "tu", "tu"}, 0, 0, 0},
    {"one signal, under the mutex", {"lwu", "lpsu", "lu"}, 0, 0, 0},
    {"one signal, after it", {"lwu", "lpus", "lu"}, 0, 1, 0},
    {"broadcast to two", {"lwu", "lwu", "lppbu"}, 0, 0, 0},
    {"broadcast to two, one bucket, after the mutex", {"lwu", "lwu", "lppub"}, 0, 1, 0},
    {"a signal for a waiter with a deadline and another", {"lTsu", "lwu", "lppsu"}, 0, 0, 0},
    {"a signal for a cancelled waiter and another", {"lcsu", "lwu", "lppsu"}, 0, 0, 0},
    {"the same, one bucket, after the mutex", {"lcsu", "lwu", "lppus"}, 0, 1, 0},
    {"a child: stale QUEUED, WOKEN", {"lu", "lu", "lu"}, QUEUED | WOKEN, 0, 0},
    {"a child: stale QUEUED", {"lu", "lu", "lu"}, QUEUED, 0, 0},
    {"a child: everything stale", {"lu", "lu", "lu"}, QUEUED | WOKEN | ACTIVE | SPUN, 0, 0},
    {"a child: it holds the mutex", {"ulu", "lu", "lu"}, LOCKED | QUEUED | WOKEN, 0, 0},
    {"a child: stale ACTIVE, a condition", {"lwu", "lpsu", NULL}, ACTIVE, 0, 1},
    {"a child: stale ACTIVE, held, a condition", {"ulwu", "lpsu", "lu"}, LOCKED | ACTIVE | QUEUED, 0, 1},
    {"a child: stale QUEUED, WOKEN, a condition", {"lwu", "lpsu", "lu"}, QUEUED | WOKEN, 1, 1},
};

/* Minutes and gigabytes; walked when asked for. */
static const struct scenario long_scenarios[] = {
    {"four threads lock", {"lu", "lu", "lu", "lu"}, 0, 0, 0},
    {"four threads, deadlines", {"lu", "tu", "tu", "lu"}, 0, 0, 0},
    {"broadcast to two, a bystander", {"lwu", "lwu", "lppub", "lu"}, 0, 1, 0},
};

/* What must be found, and by which scenario. */
static const struct {
    enum mutant mutant;
    const char *what;
    int scenario;
} mistakes[] = {
    {FLIGHT_ENDS_EARLY, "wait_again is no longer inflight before WOKEN is cleared", 1},
    {TIMEOUT_WAKES_NOBODY, "give_up wakes nobody in its place", 2},
    {ENQUEUE_KEEPS_ACTIVE, "a thread that queues leaves ACTIVE behind", 1},
    {ACTIVE_OUTLIVES_MOVE, "wake_moved keeps a forked child's stale ACTIVE", 15},
    {STALE_WOKEN_KEPT, "a thread that queues believes a forked child's stale WOKEN", 11},
    {MOVE_FORGETS_FREE, "wake_moved wakes nobody though the mutex is free", 5},
    {CANCEL_KEEPS_SIGNAL, "a cancelled waiter keeps the signal", 9},
};

int main(int argc, char **argv) {
    const size_t n_short = sizeof scenarios / sizeof scenarios[0], n_mistakes = sizeof mistakes / sizeof mistakes[0];
    const size_t n_long = sizeof long_scenarios / sizeof long_scenarios[0];
    bool all = argc == 2 && strcmp(argv[1], "--long") == 0;
    size_t n = 0, failed = 0;
    uint64_t n_states;
    if (argc > 1 && !all) {
        fprintf(stderr, "usage: %s [--long]\n", argv[0]);
        return 2;
    }
    printf("1..%zu\n", n_short + (all ? n_long : 0) + n_mistakes);
    for (size_t i = 0; i < n_short + (all ? n_long : 0); i++) {
        const struct scenario *which = i < n_short ? &scenarios[i] : &long_scenarios[i - n_short];
        bool right = walk(which, NONE, true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states\n", right ? "" : "not ", ++n, which->name, n_states);
        fflush(stdout);
        failed += !right;
    }
    for (size_t i = 0; i < n_mistakes; i++) {
        bool found = !walk(&scenarios[mistakes[i].scenario], mistakes[i].mutant, false, &n_states);
        printf("%sok %zu - mistake found within %" PRIu64 " states: %s\n", found ? "" : "not ", ++n, n_states,
               mistakes[i].what);
        fflush(stdout);
        failed += !found;
    }
    return failed != 0;
}
