/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wall clock for every event: the processor's own counter where that is the kernel's clock too, and hence the same on
 * all cores; several times cheaper than asking the kernel's page. Nanoseconds from an arbitrary beginning.
 */
#ifndef SBT_OBSERVE_CLOCK_H
#define SBT_OBSERVE_CLOCK_H

#include <stdint.h>

#include "core/clock.h"

extern struct rec_clock {
    uint64_t scale; /* nanoseconds of a tick, in 2^-32; 0: the counter is not used */
    uint64_t base_ticks;
} rec_clock;

/* Takes a millisecond: the counter is held against CLOCK_MONOTONIC. Before any thread but the caller's asks. */
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

static inline uint64_t rec_now_ns(void) {
    if (rec_clock.scale == 0)
        return sbt_now_ns();
    return (uint64_t)((unsigned __int128)(rec_ticks() - rec_clock.base_ticks) * rec_clock.scale >> 32);
}

#endif
