/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wake-ups that are spaced in time (--wake-gap): a waker of many sleepers wakes them one at a time, with a gap in
 * between, instead of all by one system call. The gap is given, or found out (wait/gap_tuner.h).
 *
 * A word is woken by its address, and nothing else of its object is touched: with the release the object may be gone.
 * Sleepers of the release are woken before others, as long as the kernel keeps them in the order of their coming. Under
 * real-time policies it does not. So the last call wakes all that are left, and no sleeper of the release is missed.
 */
#ifndef SBT_WAIT_WAKE_GAP_H
#define SBT_WAIT_WAKE_GAP_H

#include <stdbool.h>
#include <stdint.h>

#define SBT_WAKE_GAP_AUTO UINT64_MAX

/* Are wake-ups spaced, or measured? Set once, at the start. */
extern bool sbt_wake_gap_on;

/* Once, with the gap from the options in ns; SBT_WAKE_GAP_AUTO. */
void sbt_wake_gap_start(uint64_t gap_ns);

/* In a forked child: no release is measured. */
void sbt_wake_gap_fork_child(void);

/*
 * Wake up to n sleepers of that word that have one of these bits; as one futex call does, but spaced. Returns how many;
 * or a negated error. Handlers of the caller are deferred until all are woken: SPREAD_MOST_NS at most, then the others
 * are woken at once.
 */
long sbt_wake_gap_wake(uint32_t *word, int n, uint32_t bits);

/* The gap to keep between the wake-ups of n sleepers with words of their own; to be passed by sbt_wake_gap_pause. */
uint32_t sbt_wake_gap_between(uint32_t n);
void sbt_wake_gap_pause(uint32_t gap_ns);

/* The caller has slept on that word, and is awake. */
void sbt_wake_gap_woken(const uint32_t *word);

#endif
