/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between torture.c (what tortures use) and driver.c (command line, watchdog); tortures do not include it. */
#ifndef STRESS_HARNESS_H
#define STRESS_HARNESS_H

#include "torture.h"

/* One thread's record: written by that thread, read by the watchdog. A line each, so that it costs the owner nothing.
 */
struct slot {
    _Alignas(64) atomic_int tid; /* 0: free */
    _Atomic uint64_t progress;   /* operations completed */
    _Atomic uint64_t checks;
    _Atomic(const char *) last; /* where it was last */
};

extern struct slot torture_slots[MAX_THREADS];
extern struct slot torture_ended; /* sums of threads that are gone */
extern bool torture_fatal;        /* stop at the first failed check */

const char *torture_now_name(void);
uint64_t torture_now_seed(void);

#endif
