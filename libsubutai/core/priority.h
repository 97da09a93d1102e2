/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real-time priorities. POSIX has waiters with SCHED_FIFO and SCHED_RR served before others, the highest priority
 * first, and in the order of their coming among equals (pthread_mutex_unlock, pthread_cond_signal,
 * pthread_rwlock_unlock).
 *
 * A program without real-time threads pays a load and a branch for each wait that queues. The library knows that a
 * program has some when the program starts under a real-time policy, or calls a function that gives one to a thread. It
 * does not notice a policy that another process sets (chrt -p); sbt_priority_read, which asks the kernel, does.
 */
#ifndef SBT_CORE_PRIORITY_H
#define SBT_CORE_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "os/arch.h"

/*
 * Set once and never cleared. Atomic, relaxed: a thread that is given a policy makes a system call after this is set.
 */
extern bool sbt_priority_known SBT_HIDDEN;

/* At the start: note the policy of the calling thread, which other threads inherit. */
void sbt_priority_start(void);

/* The program gives that policy to a thread. */
void sbt_priority_note(int policy);

/* The caller's real-time priority, 1 to 99; 0: none. One system call. Does not block. */
uint8_t sbt_priority_read(void);

/* The caller's priority, for a wait that begins. */
static inline uint8_t sbt_priority_of_caller(void) {
    return SBT_LIKELY(!__atomic_load_n(&sbt_priority_known, __ATOMIC_RELAXED)) ? 0 : sbt_priority_read();
}

#endif
