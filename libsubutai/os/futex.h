/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's futex and sched_yield as raw calls: errno untouched, no cancellation point. Private futexes only. */
#ifndef SBT_OS_FUTEX_H
#define SBT_OS_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/clock.h"

/*
 * Block while *word == expected. 0: woken, perhaps spuriously, or the word differed. ETIMEDOUT. EINTR: a signal handler
 * ran. A deadline before 1970 counts as passed, because the kernel would refuse it.
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
 * The same in its own frame and file, so that the compiler takes it for a call that may unwind. A signal handler may
 * end the thread during the wait (pthread_exit). Then the C library unwinds through the callers' clean-ups, which cover
 * only calls.
 */
int sbt_futex_wait_frame(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);

/* A futex call that waits, as the program made it; in its own frame for the same reason. The kernel's result. */
long sbt_futex_call_frame(uint32_t *word, int op, uint32_t val, uintptr_t timeout, uint32_t bits);

/* Wake up to n waiters. The result is how many; or a negated error: the word is only an address, and may be gone. */
static inline long sbt_futex_wake(uint32_t *word, int n) {
    return sbt_syscall3(SYS_futex, word, FUTEX_WAKE_PRIVATE, n);
}

/* Sleep for about that long; a signal may end it earlier. */
static inline void sbt_pause_ns(long ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    sbt_syscall3(SYS_nanosleep, &t, NULL, 0);
}

/*
 * The same by a futex call, as which each wait may sleep: a filter of system calls that a thread has set for itself
 * lets it pass. False: a signal has ended it earlier.
 */
static inline bool sbt_futex_pause_ns(long ns) {
    const uint32_t word = 0;
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    return sbt_syscall6(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&t, 0, 0) != -EINTR;
}

static inline void sbt_yield(void) {
    sbt_syscall0(SYS_sched_yield);
}

#endif
