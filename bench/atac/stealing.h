/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The synthetic benchmark of section 6.2: tasks that compute, distributed over the cores as in Fig. 6-7, and the time
 * from the first put until all threads have got no more.
 */
#ifndef BENCH_ATAC_STEALING_H
#define BENCH_ATAC_STEALING_H

#include "run.h"
#include "subutai/atac.h"

enum distribution { TOTAL_SKEW, HALF, EVEN, QUARTER, RANDOM, N_DISTRIBUTIONS };
const char *distribution_name(enum distribution distribution);
const char *pile_name(int kind);

struct stealing {
    uint32_t n_tasks;
    uint32_t task_cycles; /* the thesis's: 120000 */
    uint32_t n_looks;     /* a task calls process_pending_request so many times while it computes */
    uint32_t children;    /* each task puts so many more, once */
    uint64_t cycles;      /* out: end to end */
    uint64_t n_sent;      /* out: messages */
    uint32_t n_wrong;     /* out: tasks that were not run once */
};

/* The tasks of each thread; their sum is n_tasks. Random: 12 uniform draws less 6, times a third of the mean. */
void distribute(enum distribution distribution, uint32_t n_threads, uint32_t n_tasks, uint32_t *counts);

/* Exits with a message if the run fails. */
void stealing_run(const struct atac_config *config, int kind, enum distribution distribution, struct stealing *run);

#endif
