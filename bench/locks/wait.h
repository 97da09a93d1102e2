/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the locks of this folder wait, and their clock. The model checker has a file of its own in place of this one. */
#ifndef LOCKS_WAIT_H
#define LOCKS_WAIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Waiting threads call sched_yield between two looks. Set before the first thread waits. */
extern bool lock_yields;

/* Between two looks of a thread that waits. */
static inline void lock_relax(void) {
    if (lock_yields)
        sched_yield();
    else
#if defined __x86_64__
        __builtin_ia32_pause();
#elif defined __aarch64__
        __asm__ volatile("isb" ::: "memory");
#else
        __asm__ volatile("" ::: "memory");
#endif
}

static inline uint64_t lock_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* More than that has passed. `since` may lie ahead: another thread has read the clock later. */
static inline bool lock_has_passed(uint64_t since, uint64_t ns) {
    return (int64_t)(lock_now_ns() - since) > (int64_t)ns;
}

/* If more than that has passed, the processor goes to another thread, whatever lock_yields says. */
static inline void lock_give_way_after(uint64_t since, uint64_t ns) {
    if (lock_has_passed(since, ns))
        sched_yield();
}

#endif
