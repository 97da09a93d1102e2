/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "clustering.h"

enum { N_POINTS = 10, DIMENSIONS = 1, N_CENTRES = 5, STEPS = 7, DISTANCE = 3 * DIMENSIONS, OPERATION = 2, PAYS = 8 };

/* What the thread has of n things that are dealt out in blocks. */
static uint64_t share(uint64_t n, uint32_t thread, uint32_t n_threads) {
    return n * (thread + 1) / n_threads - n * thread / n_threads;
}

uint64_t clustering_work(uint32_t thread, uint32_t n_threads, uint32_t episode) {
    uint64_t points = share(N_POINTS, thread, n_threads), parts = thread == 0 ? n_threads : 0;
    switch (episode % STEPS) {
    case 0: /* centres of the own block, */
    case 2: /* and their numbers */
        return points * OPERATION;
    case 1: /* thread 0 goes over the threads' sums, */
    case 5: /* and over their results: does the trial pay? */
        return parts * OPERATION;
    case 3: /* what the candidate would save at each point */
        return points * (DISTANCE + 2 * OPERATION);
    case 4: /* centres that are superfluous then: each thread's losses for each */
        return share(N_CENTRES, thread, n_threads) * n_threads * OPERATION;
    default: /* one trial in eight pays: its points move */
        return episode / STEPS % PAYS == 0 ? points * (DISTANCE + OPERATION) : OPERATION;
    }
}
