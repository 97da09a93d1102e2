/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mutex and the condition of the engine `direct` as a model: its state, and what the steps of mutex_lock_steps.c,
 * mutex_unlock_steps.c and mutex_cond_steps.c share. What it is for: mutex_walk.c.
 */
#ifndef MUTEX_MODEL_H
#define MUTEX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { LOCKED = 1, QUEUED = 2, WOKEN = 4, ACTIVE = 8, SPUN = 16, HANDED = 32 }; /* the mutex word */
enum { WAITING, PARKED, RETRY, GRANTED };                                       /* the waiter's word */
enum { MUTEX, COND };                                                           /* keys, and roles */
enum { MAX_THREADS = 4, NO_THREAD = 255 };
enum mutant {
    NONE,
    DESIGNATED_NO_MORE,
    ACTIVE_OUTLIVES_MOVE,
    STALE_WOKEN_KEPT,
    MOVE_FORGETS_FREE,
    CANCEL_KEEPS_SIGNAL,
    ENQUEUE_KEEPS_ACTIVE,
    LEAVING_ENDS_ANOTHERS,
    TIME_UP_UNASKED,
    MOVED_TIMES_OUT,
    HELD_UP_UNSAID,
    HELD_UP_KEEPS_ACTIVE,
    BACK_RELIES_ON_IT,
    WOKEN_ENDS_RUN,
    GRANTED_SLEEPS_ON
};

/* clang-format off */
#define STEPS(X) \
    X(NEXT_OP) X(LOCK) X(TIMEDLOCK) X(SLOW_TAKE) X(SLOW_ACTIVE) X(SLOW_BUCKET) X(VALIDATE_LOAD) X(VALIDATE) \
    X(WAIT_PARK) X(WAIT_SLEEP) X(WAIT_ASLEEP) X(NOTICED) X(RETRY_TAKE) X(LOOK_BUCKET) X(LEAVE_QUEUE) \
    X(WAKE_MARK) X(WAKE_NOTIFY) X(ANOTHER_BUCKET) X(BACK_BUCKET) X(BACK) X(HELD_BUCKET) X(HELD) X(IN_HANDLER) X(UNLOCK) X(UNLOCK_SPUN) X(UNLOCK_KIND) X(UNLOCK_SUB) X(AFTER_BUCKET) X(AFTER_LOOK) \
    X(SLEEPER_BUCKET) X(SLEEPER) X(ACTIVE_CAS) X(COND_WAIT) X(COND_APPEND) X(COND_STATE) \
    X(COND_BUCKET) X(COND_LEAVE) X(COND_DONE) X(SIGNAL) X(SIGNAL_BUCKET) X(SIGNAL_BUCKET_2) X(SIGNAL_LOOK) \
    X(SIGNAL_DECIDE) X(SIGNAL_MOVED) X(MOVED_CAS) X(SIGNAL_WAKE) X(END)
/* clang-format on */
#define AS_ENUM(name) name,
#define AS_TEXT(name) #name,
enum step { STEPS(AS_ENUM) };

/* All bytes, no padding: compared and fingerprinted as memory. */
struct thread {
    uint8_t step, op;                             /* next step; place in the script */
    uint8_t after_lock, after_unlock, after_wait; /* where subroutines return to */
    uint8_t after_finish, after_wake;
    uint8_t seen, looks, tries, timed, timed_out, again, has_it;
    uint8_t state, role, inflight, designated, asleep; /* its waiter */
    uint8_t signalled, cancelled, moves;
    uint8_t notified, another,
        handed; /* the waiter that it has notified, plus one; in place of a waiter that did not sleep; kept for it */
    uint8_t left, pair, moved, woken, target, wakes; /* a run of signals; a wake-up */
    uint8_t interrupted, resume;                     /* by a handler; the step that it has interrupted */
};

struct state {
    uint8_t word, holder, cond_word, tokens;
    uint8_t bucket[2];                   /* its owner */
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
    uint8_t overdue; /* a thread that queues may find that one was notified too long ago */
    uint8_t held_up; /* a handler may interrupt its waits, once, and lasts until the others are done; 0: of no thread */
};

/* Of the walk under way. */
extern const struct scenario *scenario;
extern enum mutant mutant;
extern int n_threads;
extern const char *wrong; /* why it stopped; NULL: not yet */

bool forked(void);
uint8_t *owner_of(struct state *s, int key);
bool lock_bucket(struct state *s, int t, int key);
void queue_append(struct state *s, int key, int t);
void queue_remove(struct state *s, int key, int t);
int first_waiting(const struct state *s, int key);
bool any_inflight(const struct state *s);
bool any_designated(const struct state *s);
void unlock_bucket(struct state *s, int key);
void hold(struct state *s, int t);
bool take(struct state *s, int t);
bool take_notified(struct state *s, int t);
void designate_none(struct state *s);
void designate(struct state *s, int t);
void leave_queue(struct state *s, int t);
void end_op(struct thread *me);
void begin_wait(struct thread *me, int role, int after_wait, bool timed);
void next_op(struct state *s, int t);
void return_to(struct thread *me, uint8_t step);
/* A handler: where it may interrupt a wait for the mutex, and the step that it begins with. */
bool may_interrupt(const struct thread *me);
void interrupt(struct thread *me);

/*
 * One step of thread t, taken in one of its ways: those before UNLOCK, those before COND_WAIT, the rest. Return how
 * many ways there are; 0: it is blocked.
 */
int lock_step(struct state *s, int t, int way);
int unlock_step(struct state *s, int t, int way);
int cond_step(struct state *s, int t, int way);

#endif
