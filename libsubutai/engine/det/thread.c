/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads: creation, end, join, cancellation.
 *
 * A thread ends, for the round, after the destructors of its thread-specific data: they may synchronize. So the end is
 * a destructor too. It puts its value back until the C library's last round of destructors. It also sees the end of
 * threads that this library has not created.
 */
#include <errno.h>
#include <limits.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/det.h"
#include "os/real.h"

static pthread_key_t key;
static bool has_key;

static void ends(void *value) {
    uintptr_t round = (uintptr_t)value;
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(key, (void *)(round + 1)) == 0)
        return;
    if (det_self.generation == sbt_fork_generation() + 1 &&
        (det_self.number != TURN_NO_THREAD || det_self.waiting != 0))
        det_end_thread();
}

void det_thread_start(void) {
    has_key = pthread_key_create(&key, ends) == 0;
    if (!has_key)
        sbt_log(1, "the engine det has no key for thread-specific data: threads do not end in order", NULL);
}

void det_thread_enter(void) {
    if (has_key)
        pthread_setspecific(key, (void *)1);
}

void *det_create_begin(void) {
    struct det_round *r = det_round;
    det_take(DET_CREATE);
    sbt_lock_take(&r->lock);
    uint32_t number = turn_create(&r->turn);
    if (number != TURN_NO_THREAD) {
        r->thread[number].has_handle = false;
        r->thread[number].in_op = NULL;
    }
    sbt_lock_drop(&r->lock);
    if (number != TURN_NO_THREAD)
        return &r->thread[number];
    det_pass();
    return NULL;
}

static uint32_t number_of(const void *record) {
    return (uint32_t)((const struct det_thread *)record - det_round->thread);
}

/* The number of the thread with that handle; if it has ended, it has not been joined. */
static uint32_t find(pthread_t thread) {
    struct det_round *r = det_round;
    for (uint32_t i = 0; i < r->turn.n_threads; i++)
        if (r->turn.thread[i].state != TURN_FREE && r->thread[i].has_handle &&
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
void det_create_end(void *record, pthread_t thread, bool is_created, bool is_detached) {
    struct det_round *r = det_round;
    if (is_created) {
        uint32_t before = find(thread);
        if (before != TURN_NO_THREAD)
            forget(before);
        r->thread[number_of(record)].handle = thread;
        r->thread[number_of(record)].has_handle = !is_detached;
    } else {
        forget(number_of(record));
    }
    det_pass();
}

void det_created(void *record) {
    det_adopt(number_of(record));
    det_take(DET_BEGIN);
    det_pass();
}

/*
 * Until the thread has ended in the order. 0: the C library's join is to be made, and returns soon. Outside: the round
 * does not know the thread.
 */
int det_join(pthread_t thread, const struct sbt_deadline *deadline, bool *is_outside) {
    struct det_round *r = det_round;
    const struct det_wait wait = {.deadline = deadline, .can_cancel = true};
    int result = 0;
    pthread_testcancel();
    det_take(DET_JOIN);
    uint32_t number = find(thread);
    *is_outside = number == TURN_NO_THREAD;
    enum turn_reason reason = TURN_WOKEN;
    if (number == det_self.number) {
        result = EDEADLK;
    } else if (number != TURN_NO_THREAD && r->turn.thread[number].state == TURN_BLOCKED &&
               r->turn.thread[number].key == (uintptr_t)&r->thread[det_self.number]) {
        result = EDEADLK; /* it waits for the caller's end */
    } else if (number != TURN_NO_THREAD) {
        while (r->turn.thread[number].state != TURN_ENDED && result == 0) {
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
        return det_join(thread, deadline, is_outside);
    }
    return result;
}

/* The number of a detached thread is free again when the thread has ended. */
int det_detach(pthread_t thread) {
    det_take(DET_DETACH);
    int result = sbt_real.pthread_detach(thread);
    uint32_t number = result == 0 ? find(thread) : TURN_NO_THREAD;
    if (number != TURN_NO_THREAD && det_round->turn.thread[number].state == TURN_ENDED)
        forget(number);
    else if (number != TURN_NO_THREAD)
        det_round->thread[number].has_handle = false;
    det_pass();
    return result;
}

/* The C library's call is part of the operation, but not of the caller's own cancellation, which may not return. */
int det_cancel(pthread_t thread) {
    struct det_round *r = det_round;
    if (pthread_equal(thread, pthread_self()))
        return sbt_real.pthread_cancel(thread);
    det_take(DET_CANCEL);
    int result = sbt_real.pthread_cancel(thread);
    uint32_t number = result == 0 ? find(thread) : TURN_NO_THREAD;
    if (number != TURN_NO_THREAD) {
        sbt_lock_take(&r->lock);
        if (r->turn.thread[number].can_cancel)
            turn_wake_thread(&r->turn, number, TURN_CANCELLED);
        sbt_lock_drop(&r->lock);
    }
    det_pass();
    return result;
}
