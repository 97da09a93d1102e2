/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The paper's experiments on the simulator: which applications on which chip, and what came out. */
#ifndef PAPER_EVALUATE_H
#define PAPER_EVALUATE_H

#include "sim.h"
#include "workload.h"

enum { MAX_SET = 8, WORKER = 7 }; /* Fig. 12 shows T0 and T7 */

/* What is the same in a whole evaluation: all but the folder are what --sensitivity varies. */
struct setting {
    const char *folder; /* of the traces, a temporary one */
    bool limit_varies;  /* the other reading of Eq. 2, csa.h */
    bool uncapped;      /* no cap on CSA in a time frame */
    uint32_t switch_ns[SIM_N_PAPER_SYNCS];
    uint32_t patience_ns;
    uint32_t spread_permille;
    uint64_t seed;
    bool divided; /* parallel phases of 64 threads are half as long as those of 32, in place of as long */
};

/* A set of applications, each a model with its own seed. */
struct set {
    const char *name;
    uint32_t n;
    const char *applications[MAX_SET];
};

struct outcome {
    struct sim_summary summary;
    uint32_t n;
    struct sim_application applications[MAX_SET];
    struct sim_thread_result master[MAX_SET], worker[MAX_SET];
};

/* The fitted phases, one for each of workload_models. */
struct phases {
    uint64_t ns[8];
};

/* Runs a set of applications with n_threads each on a chip of as many cores. False: it was stuck, and has said so on
 * stderr. Ends the program if anything else fails. */
bool evaluate_try(const struct setting *setting, const struct set *set, const struct phases *phases, uint32_t n_threads,
                  enum sim_sync sync, enum csa_policy policy, struct outcome *outcome);

/* The same for what must not be stuck. */
void evaluate_run(const struct setting *setting, const struct set *set, const struct phases *phases, uint32_t n_threads,
                  enum sim_sync sync, enum csa_policy policy, struct outcome *outcome);

/* One application alone, software over Subutai; both outcomes if wanted. */
double evaluate_speedup(const struct setting *setting, uint32_t model, const struct phases *phases, uint32_t n_threads,
                        struct outcome outcomes[SIM_N_PAPER_SYNCS]);

/* The phase with which so many cores have the speed-up `target`; what it comes to in *reached. */
uint64_t evaluate_fit(const struct setting *setting, uint32_t model, uint32_t n_threads, double target,
                      double *reached);

_Noreturn void evaluate_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* JSON, one object: "name": value pairs and arrays of rows; none for NAN. */
void evaluate_value(double value, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
