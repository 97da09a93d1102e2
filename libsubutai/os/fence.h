/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Light and heavy fences, for two threads that must not miss each other: each writes, fences, and reads what the other
 * writes. The thread that comes often uses the light fence, which is only the compiler's. The thread that comes rarely
 * uses the heavy fence: the kernel puts a full fence into every running thread of the process (membarrier(2), "private
 * expedited"). The idea is liburcu's.
 */
#ifndef SBT_OS_FENCE_H
#define SBT_OS_FENCE_H

#include <stdbool.h>

#include "os/arch.h"

/* Does the kernel support this? Set once, by sbt_fence_start; otherwise both are full fences. */
extern bool sbt_fence_asymmetric SBT_HIDDEN;

/* Once, while the process has one thread: later it would take milliseconds. */
void sbt_fence_start(void);

/* The program is about to filter system calls, and might be killed for this one: from now on heavy fences fail. */
void sbt_fence_forbid(void);
/* Has it? Then system calls that the C library does not make are better not made. Relaxed. */
bool sbt_fence_is_forbidden(void);

static inline void sbt_fence_light(void) {
    if (SBT_LIKELY(sbt_fence_asymmetric))
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Make a heavy fence. False: the kernel refuses what it allowed at the start (a seccomp filter). Then the caller may
 * have been missed, and must look again soon. Does not block.
 */
bool sbt_fence_heavy(void);

#endif
