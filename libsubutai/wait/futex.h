/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's futex and sched_yield as raw calls: errno untouched, no cancellation point. Private futexes only. */
#ifndef SBT_WAIT_FUTEX_H
#define SBT_WAIT_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "core/arch.h"
#include "core/clock.h"

/*
 * Block while *word == expected. 0 (woken, perhaps for no reason, or the word differed), ETIMEDOUT, or EINTR (a signal
 * handler ran). A deadline before 1970 has passed: the kernel would refuse it.
 */
static inline int sbt_futex_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    int op = FUTEX_WAIT_BITSET_PRIVATE;
    if (deadline != NULL) {
        if (deadline->at.tv_sec < 0)
            return ETIMEDOUT;
        if (deadline->clock == CLOCK_REALTIME)
            op |= FUTEX_CLOCK_REALTIME;
    }
    long r = sbt_syscall6(SYS_futex, (long)word, op, (long)expected, (long)(deadline != NULL ? &deadline->at : NULL), 0,
                          (long)FUTEX_BITSET_MATCH_ANY);
    return r == -ETIMEDOUT ? ETIMEDOUT : r == -EINTR ? EINTR : 0;
}

/*
 * The same in a frame and a file of its own, so that the compiler takes it for a call that may unwind: a signal handler
 * that ends the thread from there (pthread_exit) unwinds through its callers' clean-ups, and only calls are covered by
 * them.
 */
int sbt_futex_wait_frame(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/* Wake up to n waiters; how many, or a negated error: the word is an address only and may be gone by now. */
static inline long sbt_futex_wake(uint32_t *word, int n) {
    return sbt_syscall3(SYS_futex, word, FUTEX_WAKE_PRIVATE, n);
}

/* Sleep for about that long; a signal may cut it short. */
static inline void sbt_pause_ns(long ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    sbt_syscall3(SYS_nanosleep, &t, NULL, 0);
}

static inline void sbt_yield(void) {
    sbt_syscall0(SYS_sched_yield);
}

#endif
