/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fences for two that must not miss each other (each writes, fences, and reads what the other writes), where one of
 * them comes by often and the other rarely. The light one is a mere compiler's: the heavy one has the kernel put a full
 * fence into every running thread of the process (membarrier(2), "private expedited").
 */
#ifndef SBT_CORE_FENCE_H
#define SBT_CORE_FENCE_H

#include <stdbool.h>

#include "core/arch.h"

/* Can the kernel do it? Set once, by sbt_fence_start; else both are full fences. */
extern bool sbt_fence_asymmetric;

/* Once, while the process has one thread: later it would take milliseconds. */
void sbt_fence_start(void);

/* The program is about to filter system calls, and may be killed for this one: heavy fences fail from now on. */
void sbt_fence_forbid(void);

static inline void sbt_fence_light(void) {
    if (SBT_LIKELY(sbt_fence_asymmetric))
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * False: the kernel refuses what it allowed at the start (a seccomp filter). The caller may have been missed, and has
 * to look again soon. Does not block.
 */
bool sbt_fence_heavy(void);

#endif
