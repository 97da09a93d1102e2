/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What software costs: the constants of the software-only model. costs.c has their values and sources. */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include <stdint.h>

/* Nanoseconds of a core's time; see Fig. 3 of the paper. */
struct sim_costs {
    /* Software only. */
    uint32_t attempt_ns; /* t1: the call into the library and its atomic attempt; t3: the same after a wake-up */
    /* t2 - t1: into the kernel, the queue's lock, the second attempt, falling asleep; again for delta */
    uint32_t futex_ns;
    uint32_t kernel_ns;  /* into the kernel for anything else, or back from sleep: waker, sleeper, t3 */
    uint32_t wake_ns;    /* what the waker spends on each thread that it wakes */
    uint32_t line_flits; /* a cache line on the mesh; its request and its distance are added */
    /* Both machines. */
    uint32_t switch_ns;   /* a core changes to another thread than it had last */
    uint32_t patience_ns; /* how long a waiting thread keeps a core that other threads want */
};

struct sim_costs sim_costs_default(void);

#endif
