/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wall clock of events: the processor's own counter, if the kernel's clock uses it too. Then it is the same on all
 * cores, and reading it costs several times less than asking the kernel. Nanoseconds from an arbitrary beginning.
 */
#ifndef SBT_OBSERVE_CLOCK_H
#define SBT_OBSERVE_CLOCK_H

#include <stdint.h>

#include "os/clock.h"

extern struct rec_clock {
    uint64_t scale; /* nanoseconds in a tick, times 2^32; 0: the counter is not used */
    uint64_t base_ticks;
} rec_clock;

/* Compare the counter with CLOCK_MONOTONIC for a millisecond. Called before any other thread asks for the time. */
void rec_clock_start(void);

static inline uint64_t rec_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/*
 * Everything before is done before anything after begins. Processors overlap what does not depend on each other, and
 * read their counter early; then what the recorder subtracts is not what it has added.
 */
static inline void rec_settle(void) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

static inline uint64_t rec_now_ns(void) {
    if (rec_clock.scale == 0)
        return sbt_now_ns();
    return (uint64_t)((unsigned __int128)(rec_ticks() - rec_clock.base_ticks) * rec_clock.scale >> 32);
}

#endif
