/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads: creation, end, join, cancellation.
 *
 * A thread ends, for the round, after the destructors of its thread-specific data: they may synchronize. So the end is
 * a destructor too. It puts its value back until the C library's last round of destructors. It also sees the end of
 * threads that this library has not created. A round calls destructors in the order of the keys, so the key is the last
 * one for which the C library allocates no memory in each thread.
 */
#include <errno.h>
#include <limits.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/det.h"
#include "os/futex.h"
#include "os/real.h"
#include "switch/sanitizer.h"

#define KEYS_BEFORE 31 /* the C library has room for 32 in the thread itself */
#ifdef SBT_TSAN        /* in the last round it ends what instrumented code uses */
#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define LAST_ROUND PTHREAD_DESTRUCTOR_ITERATIONS
#endif

static pthread_key_t key;
static bool has_key;

/*
 * A cancellation that acts in here would go back to where the C library calls the destructors, without this one: the
 * thread would not end for the round. Its type was the program's until now, also in a thread that has returned.
 */
static void ends(void *value) {
    uintptr_t round = (uintptr_t)value;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    if (round < LAST_ROUND && pthread_setspecific(key, (void *)(round + 1)) == 0)
        return;
    if (det_self.generation == sbt_fork_generation() + 1 && !det_self.is_ended)
        det_end_thread();
}

void det_thread_start(void) {
    pthread_key_t before[KEYS_BEFORE];
    int n = 0;
    has_key = pthread_key_create(&key, ends) == 0;
    while (has_key && n < KEYS_BEFORE && key < KEYS_BEFORE) {
        before[n++] = key;
        has_key = pthread_key_create(&key, ends) == 0;
    }
    while (n > 0)
        pthread_key_delete(before[--n]);
    if (!has_key)
        sbt_log(1, "the engine det has no key for thread-specific data: threads do not end in order", NULL);
}

/*
 * Whatever the value is: a forked child may give a thread the stack of one that was ending in the parent, with its
 * value, and that the C library takes for none.
 */
void det_thread_enter(void) {
    if (has_key)
        pthread_setspecific(key, (void *)1);
}

/*
 * The creator has the turn in the C library's pthread_create too, but can be expelled while it sleeps there. It may
 * wait for another thread:
 *  1. A thread that has ended frees stacks in the C library, under its lock of the stacks.
 *  2. The creator has the turn, and waits for that lock.
 *  3. The allocator in which the first frees has a lock of ours: the operation waits for the turn.
 * Guests have no kernel thread that is known, but make this call on their own.
 * The allocator's locks in pthread_create itself are operations inside of the creation: they take the turn if it has
 * been lost, and do not pass it.
 */
static void let_go(void) {
    uint32_t *tid = &det_round->thread[det_self.number].tid;
    det_self.tid_before = *tid;
    __atomic_store_n(tid, sbt_thread_tid(), __ATOMIC_RELAXED);
    det_self.n_inner = 1;
    det_self.creates = true;
    __atomic_store_n(&det_self.in_op, DET_CREATES, __ATOMIC_RELEASE);
}

/* Handlers may run meanwhile. */
static void take_back(void) {
    det_get();
    det_self.creates = false;
    det_self.n_inner = 0;
}

void *det_create_begin(uintptr_t routine) {
    struct det_round *r = det_round;
    det_take(DET_CREATE);
    sbt_lock_take(&r->lock);
    uint32_t number = turn_create(&r->turn);
    if (number != TURN_NO_THREAD) {
        r->thread[number].has_handle = false;
        __atomic_store_n(&r->thread[number].in_op, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&r->thread[number].tid, 0, __ATOMIC_RELAXED);
        det_set_alias(&r->thread[number], 0);
        r->thread[number].generation = r->generation;
        det_hints_create(number, routine);
        __atomic_store_n(&r->thread[number].is_new, 1, __ATOMIC_RELAXED); /* the thread begins after this */
        turn_expel(&r->turn, number);                                     /* until the C library has made the thread */
        __atomic_fetch_add(&r->n_creating, 1, __ATOMIC_RELAXED);
    }
    sbt_lock_drop(&r->lock);
    det_other(number);
    if (number == TURN_NO_THREAD) {
        det_pass();
        return NULL;
    }
    let_go();
    return &r->thread[number];
}

static uint32_t number_of(const void *record) {
    return (uint32_t)((const struct det_thread *)record - det_round->thread);
}

/* The number of the thread with that handle; if it has ended, it has not been joined. */
static uint32_t find(pthread_t thread) {
    struct det_round *r = det_round;
    for (uint32_t i = 0; i < r->turn.n_threads; i++)
        if (turn_state_of(&r->turn, i) != TURN_FREE && r->thread[i].has_handle &&
            pthread_equal(r->thread[i].handle, thread))
            return i;
    return TURN_NO_THREAD;
}

static void forget(uint32_t number) {
    struct det_round *r = det_round;
    r->thread[number].has_handle = false;
    sbt_lock_take(&r->lock);
    turn_release(&r->turn, number);
    sbt_lock_drop(&r->lock);
}

/* A handle is used again: the thread that had it was joined by a function that is not ours, and has ended. */
static void come_into_round(uint32_t number, pthread_t thread, bool is_detached) {
    struct det_round *r = det_round;
    uint32_t before = find(thread);
    if (before != TURN_NO_THREAD)
        forget(before);
    r->thread[number].handle = thread;
    r->thread[number].has_handle = true;
    r->thread[number].is_detached = is_detached;
    r->thread[number].is_cancelled = false;
    sbt_lock_take(&r->lock);
    turn_return(&r->turn, number);
    sbt_lock_drop(&r->lock);
}

void det_create_end(void *record, pthread_t thread, bool is_created, bool is_detached) {
    struct det_round *r = det_round;
    uint32_t number = number_of(record);
    take_back();
    if (r->thread[number].generation != r->generation) { /* in a child that a handler has forked: no such thread */
        det_pass();
        return;
    }
    __atomic_store_n(&r->thread[det_self.number].tid, det_self.tid_before, __ATOMIC_RELAXED);
    if (is_created)
        come_into_round(number, thread, is_detached);
    else
        forget(number);
    __atomic_store_n(&r->thread[number].is_new, 0, __ATOMIC_RELEASE); /* pairs with is_outside (round.c) */
    __atomic_fetch_sub(&r->n_creating, 1, __ATOMIC_RELEASE);          /* pairs with det_number_at_creation */
    det_pass();
}

/*
 * A signal handler may have run before: its operations have taken the number already. In a child that it has forked,
 * the round knows no record.
 */
void det_created(void *record) {
    uint32_t number = number_of(record);
    if (det_round->thread[number].generation == sbt_fork_generation() + 1 &&
        det_self.generation != sbt_fork_generation() + 1)
        det_adopt(number);
    det_take(DET_BEGIN);
    det_pass();
}

/* The creator needs no other thread until it has told the handle: only a creation that is under way is waited for. */
uint32_t det_number_at_creation(void) {
    struct det_round *r = det_round;
    while (__atomic_load_n(&r->n_creating, __ATOMIC_ACQUIRE) != 0)
        sbt_yield();
    uint32_t number = find(pthread_self());
    return number != TURN_NO_THREAD && __atomic_load_n(&r->thread[number].in_op, __ATOMIC_RELAXED) == NULL
               ? number
               : TURN_NO_THREAD;
}

/*
 * Until the thread has ended in the order. 0: the C library's join is to be made, and returns soon. Outside: the round
 * does not know the thread.
 */
int det_join(pthread_t thread, const struct sbt_deadline *deadline, bool *is_outside) {
    struct det_round *r = det_round;
    const struct det_wait wait = {.deadline = deadline, .op = DET_JOIN, .can_cancel = true};
    int result = 0;
    det_take_cancelable(DET_JOIN);
    uint32_t number = find(thread);
    if (number != TURN_NO_THREAD && r->thread[number].is_detached)
        number = TURN_NO_THREAD;
    det_other(number);
    *is_outside = number == TURN_NO_THREAD;
    enum turn_reason reason = TURN_WOKEN;
    if (number == det_self.number) {
        result = EDEADLK;
    } else if (number != TURN_NO_THREAD && turn_state_of(&r->turn, number) == TURN_BLOCKED &&
               r->turn.thread[number].key == (uintptr_t)&r->thread[det_self.number]) {
        result = EDEADLK; /* it waits for the caller's end */
    } else if (number != TURN_NO_THREAD) {
        while (turn_state_of(&r->turn, number) != TURN_ENDED && result == 0) {
            result = sbt_deadline_check(deadline);
            if (result == 0)
                reason = det_block(&r->thread[number], &wait);
            if (reason == TURN_TIMED_OUT)
                result = ETIMEDOUT;
            if (reason == TURN_CANCELLED)
                result = EINTR;
        }
    }
    if (result == 0 && number != TURN_NO_THREAD)
        forget(number); /* in this operation: the next thread that is created may get the number */
    det_pass();
    if (result == EINTR) {
        pthread_testcancel();
        det_cancel_has_acted();
        return det_join(thread, deadline, is_outside);
    }
    return result;
}

/* The number of a detached thread is free again when the thread has ended. */
int det_detach(pthread_t thread) {
    det_take(DET_DETACH);
    int result = sbt_real.pthread_detach(thread);
    uint32_t number = result == 0 ? find(thread) : TURN_NO_THREAD;
    det_other(number);
    if (number != TURN_NO_THREAD && turn_state_of(&det_round->turn, number) == TURN_ENDED)
        forget(number);
    else if (number != TURN_NO_THREAD)
        det_round->thread[number].is_detached = true;
    det_pass();
    return result;
}

/* The C library's call is part of the operation, but not of the caller's own cancellation, which may not return. */
int det_cancel(pthread_t thread) {
    struct det_round *r = det_round;
    if (pthread_equal(thread, pthread_self()))
        return sbt_real.pthread_cancel(thread);
    sbt_handlers_find_cancellation();
    det_take(DET_CANCEL);
    sbt_handlers_defer_cancellation();
    int result = sbt_real.pthread_cancel(thread);
    uint32_t number = result == 0 ? find(thread) : TURN_NO_THREAD;
    det_other(number);
    if (number != TURN_NO_THREAD && turn_state_of(&r->turn, number) != TURN_ENDED) {
        r->n_cancelled += !r->thread[number].is_cancelled;
        r->thread[number].is_cancelled = r->is_watched = true;
        sbt_lock_take(&r->lock);
        for (uint32_t i = 0; i < r->turn.n_threads; i++)
            if (det_root(i) == number && r->turn.thread[i].can_cancel) /* it, or a guest of its handler */
                turn_wake_thread(&r->turn, i, TURN_CANCELLED);
        sbt_lock_drop(&r->lock);
    }
    det_pass();
    return result;
}
