/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the runtime waits. The model checker has a file of its own in place of this one. */
#ifndef RCL_WAIT_H
#define RCL_WAIT_H

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rcl/tuning.h"

static inline void rcl_relax(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Until then, by CLOCK_MONOTONIC, no thread yields. Relaxed: an old value is a yield more or less. */
extern uint64_t rcl_sleeps_until_ns;

static inline uint64_t rcl_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * True: the caller is to sleep, since others compute. A thread that yields on a busy machine waits for a round of all
 * its threads, and counts as awake meanwhile. One that sleeps is woken at once, and goes before threads that compute.
 */
static inline bool rcl_yield(void) {
    uint64_t before = rcl_now_ns();
    if (before < __atomic_load_n(&rcl_sleeps_until_ns, __ATOMIC_RELAXED))
        return true;
    sched_yield();
    uint64_t after = rcl_now_ns();
    if (after - before <= RCL_YIELD_NS)
        return false;
    __atomic_store_n(&rcl_sleeps_until_ns, after + RCL_BUSY_NS, __ATOMIC_RELAXED);
    return true;
}

/*
 * Between two looks; `n`: how many there have been. The processor goes to another thread after some. True: the caller
 * is to sleep rather than to look on.
 */
static inline bool rcl_look_again(uint32_t n, uint32_t before_yield) {
    if (n >= before_yield)
        return rcl_yield();
    rcl_relax();
    return false;
}

/* The same of a thread that waits for a section or a lock. False: it has looked for long enough, and is to sleep. */
static inline bool rcl_look_on(uint32_t *n) {
    if (*n >= RCL_WAIT_LOOKS)
        return false;
    if (rcl_look_again((*n)++, RCL_WAIT_SPINS))
        *n = RCL_WAIT_LOOKS;
    return true;
}

/* Sleeps while *word is `expected`, until rcl_wake, a signal, or the time is up (NULL: never). The caller looks again.
 */
static inline void rcl_sleep(uint32_t *word, uint32_t expected, const struct timespec *most) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, most, NULL, 0);
    errno = saved;
}

/* It cannot fail: the word is there. */
static inline void rcl_wake(uint32_t *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

#endif
