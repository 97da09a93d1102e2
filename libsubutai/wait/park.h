/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sleeping until another thread wakes: in the kernel, or, if the caller has a fiber (switch/), by switching to another
 * fiber. Every wait for an object of the program sleeps here. Elsewhere sleep only waits for the library itself: for
 * an internal lock (os/lock.h), and in switch/ idle carriers, the monitor and parked home threads.
 */
#ifndef SBT_WAIT_PARK_H
#define SBT_WAIT_PARK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/cleanup.h"
#include "os/clock.h"
#include "switch/switch.h"
#include "wait/adapt.h"

/*
 * Block while *word == expected. 0: woken, or *word was another value: look again. ETIMEDOUT: the deadline has passed.
 * EINTR: a signal handler has run; the caller decides whether its wait goes on. While blocked the thread does not count
 * as runnable.
 */
int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/*
 * The same as a cancellation point. Acts on a cancellation that is pending or arrives while blocked; then it does not
 * return, and the caller's clean-up runs: it must be a `cleanup` variable or pthread_cleanup_push of a calling
 * function, never of this one.
 */
int sbt_park_cancelable(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/*
 * The same on a word that no other thread waits on. `wake_word`, from sbt_waiter_word, is what the waker passes to
 * sbt_waiter_wake; without one, NULL, it passes `word`: then the thread sleeps in the kernel, fiber or not.
 */
int sbt_park_own(uint32_t *word, uint32_t expected, const uint32_t *wake_word, const struct sbt_deadline *deadline,
                 bool cancelable);

/* The same with a wake word. */
static inline int sbt_park_fiber(const struct sbt_deadline *deadline, bool cancelable) {
    if (cancelable)
        pthread_testcancel();
    int r = sbt_fiber_park(deadline);
    if (cancelable)
        pthread_testcancel();
    return r;
}

/*
 * Wake up to n threads that are parked on that word, after it has changed: fibers in the futex table first, then, if
 * any thread sleeps in the kernel, threads there. Returns how many. The word may be gone by now.
 */
long sbt_wake(uint32_t *word, int n);

/*
 * Yield: to a runnable fiber on this carrier, or to the thread that the kernel chooses. `goes_on` as in
 * sbt_switch_yield.
 */
void sbt_wait_yield(bool goes_on);

/* Yield to the thread that the kernel chooses, if such yields pay at present (yield_gate.h), or the caller's policy is
 * real-time. */
void sbt_wait_offer(void);

/* As sbt_wait_yield, for a fiber, if one is ready; if none is, it goes on: the kernel would run another process. */
void sbt_wait_yield_to_fibers(void);

/* The word that the calling thread is woken by from here on. NULL: the word that it sleeps on. */
uint32_t *sbt_waiter_word(void);

/*
 * Wake the thread that sleeps on its own word, or has that wake word; NULL: there is none to wake. False: the thread
 * did not sleep. It is on its way to sleep, or in a signal handler that has interrupted it and may last: a waker that
 * relies on it should wake another thread too. The word may be gone by now.
 */
bool sbt_waiter_wake(uint32_t *word);

/*
 * A call of the C library's or the kernel's in which the caller sleeps: it is not runnable from the first to the second
 * of these, however it leaves the call: also by a cancellation, with the thread, or by a handler's jump (os/cleanup.h).
 * It is pinned meanwhile: on a carrier it would keep that from other fibers. `count` has one more meanwhile; NULL:
 * none.
 */
struct sbt_asleep_in_call {
    struct _pthread_cleanup_buffer buffer;
    uint32_t *count;
};
void sbt_asleep_in_call(struct sbt_asleep_in_call *asleep, uint32_t *count);
void sbt_awake_after_call(struct sbt_asleep_in_call *asleep);

#endif
