/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each thread does: written down by torture.c, read by the watchdog in driver.c. Not for tortures. */
#ifndef STRESS_SLOTS_H
#define STRESS_SLOTS_H

#include "torture.h"

/* One thread's record: written by that thread, read by the watchdog. A line each, so that it costs the owner nothing.
 */
struct slot {
    _Alignas(64) atomic_int tid; /* 0: free */
    _Atomic uint64_t progress;   /* operations completed */
    _Atomic(const char *) last;  /* where it was last */
};

extern struct slot torture_slots[MAX_THREADS];
extern _Atomic uint64_t torture_ended; /* operations of threads that are gone, and one more for each of them */
extern bool torture_fatal;             /* stop at the first failed check */

const char *torture_now_name(void);
uint64_t torture_now_seed(void);

#endif
