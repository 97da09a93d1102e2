/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What software costs: the constants of the software-only model, all in costs.c with where they come from.
 */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include <stdint.h>

/* Nanoseconds of a core's time; Fig. 3 of the paper. */
struct sim_costs {
    /* Software only. */
    uint32_t attempt_ns; /* t1: the call into the library and its atomic attempt; the attempt after a wake-up, too */
    uint32_t futex_ns;   /* t2 - t1: into the kernel, its queue's lock, the second attempt, to sleep; delta a, again */
    uint32_t kernel_ns;  /* into the kernel for anything else, or back from sleeping there: waker, sleeper, t3 */
    uint32_t wake_ns;    /* the waker's part for each thread that it wakes */
    uint32_t line_flits; /* a cache line on the mesh, to which its request and its distance are added */
    /* Both machines. */
    uint32_t switch_ns;   /* a core that goes on with another thread than the one it had */
    uint32_t patience_ns; /* a thread that waits for an answer keeps a core that others want for so long */
};

struct sim_costs sim_costs_default(void);

#endif
