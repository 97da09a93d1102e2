/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sleeping: the one place where a thread of ours blocks in the kernel, or, if it has a context (switch/), is switched
 * away from instead.
 */
#ifndef SBT_WAIT_PARK_H
#define SBT_WAIT_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "wait/adapt.h"
#include "wait/lot.h"

/*
 * Block while *word == expected: 0 (look again), ETIMEDOUT or EINTR, as sbt_futex_wait. While blocked the thread does
 * not count as runnable.
 */
int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/*
 * The same as a cancellation point. Acts on a cancellation that is pending or arrives while blocked; then it does not
 * return, and the caller's clean-up runs: it must be a `cleanup` variable or pthread_cleanup_push of a calling
 * function, never of this one.
 */
int sbt_park_cancelable(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/*
 * The same on a word that nobody else waits on. `wake_word`, from sbt_waiter_word, is what the waker passes to
 * sbt_waiter_wake; without one, NULL, it passes `word`: then the thread sleeps in the kernel, context or not.
 */
int sbt_park_own(uint32_t *word, uint32_t expected, const uint32_t *wake_word, const struct sbt_deadline *deadline,
                 bool cancelable);

/* Wake up to n that are parked on that word, after it has changed; how many. The word may be gone by now. */
long sbt_wake(uint32_t *word, int n);

/*
 * Let somebody else run: a ready context on this carrier, or whom the kernel chooses. `goes_on` as in sbt_switch_yield.
 */
void sbt_give_way(bool goes_on);

/* The same for a context, if one is ready; if none is, it goes on: the kernel would run another process. */
void sbt_give_way_to_contexts(void);

/*
 * Wait until the waiter has been told something: actively while `active` has steps left, then parked. Returns 0 or
 * ETIMEDOUT; after ETIMEDOUT the waiter may still have been told meanwhile: look under its bucket's lock.
 * The state read last is acquired (pairs with sbt_waiter_tell).
 */
int sbt_waiter_wait(struct sbt_waiter *w, const struct sbt_deadline *deadline, struct sbt_active *active,
                    bool cancelable);

#endif
