/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For how long a thread can be ready without running, under round robin and under CSA, when 1 to 8 of 8 threads on a
 * core are inside critical sections that never end. The paper says that CSA delays other threads at most three times as
 * long as RR does (section VII-A). Nothing is timed: the scheduler says which thread runs, and until when.
 */
#include "csa.h"

#include <stdio.h>

enum { N = 8, HORIZON_MS = 1000 };
#define MS UINT64_C(1000000)

/* The longest wait of one of N threads, in ms; the first n_critical hold a mutex of their own for ever. */
static uint64_t longest_ms(enum csa_policy policy, bool capped, int n_critical) {
    struct csa_config config = csa_config_default();
    struct csa_thread thread[N] = {{0}};
    struct csa_sched sched;
    uint64_t last[N] = {0}, longest = 0;
    config.policy = policy;
    if (!capped)
        config.frame_ns = 0;
    csa_init(&sched, &config);
    for (int i = 0; i < N; i++) {
        thread[i].enabled = true;
        csa_add(&sched, &thread[i], 0);
    }
    csa_pick(&sched, 0);
    for (int i = 0; i < n_critical; i++)
        csa_hold(&sched, &thread[i], 0);
    for (uint64_t now = 0; now < HORIZON_MS * MS;) {
        size_t i = (size_t)(sched.running - thread);
        longest = now - last[i] > longest ? now - last[i] : longest;
        now = csa_until(&sched, now);
        last[i] = now;
        csa_yield(&sched, now);
        csa_pick(&sched, now);
    }
    return longest / MS;
}

int main(void) {
    printf("Longest wait of a ready thread, ms: %d threads on a core, slots of 1 ms; some hold a mutex for ever.\n"
           "Capped: at most half of each 100 slots by CSA's priority.\n\n",
           N);
    printf("%8s %6s %6s %8s %8s\n", "critical", "RR", "CSA", "over RR", "capped");
    for (int n = 1; n <= N; n++) {
        uint64_t rr = longest_ms(CSA_RR, false, n), csa = longest_ms(CSA_CSA, false, n);
        printf("%8d %6lu %6lu %8.1f %8lu\n", n, (unsigned long)rr, (unsigned long)csa, (double)csa / (double)rr,
               (unsigned long)longest_ms(CSA_CSA, true, n));
    }
    return 0;
}
