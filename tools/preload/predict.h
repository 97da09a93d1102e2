/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai predict` simulates, and the results: between reading the command line and the report. */
#ifndef CMD_PREDICT_H
#define CMD_PREDICT_H

#include "command.h"
#include "sim.h"

enum { PREDICT_FAILED = 3 }; /* exit status: the simulation failed */

struct predict_file {
    const char *path;
    const struct sbt_trace *trace;
    double *alone_ns; /* by combination; NULL: not asked for */
};

/* A combination of --sync and --sched, and its simulation when that has been run. */
struct predict_run {
    enum sim_sync sync;
    enum csa_policy sched;
    struct sim *sim;
};

struct predict {
    const char *cores, *mesh, *sync, *sched, *timeline;
    uint32_t given; /* a bit for each option of the command line */
    struct sim_config config;
    struct predict_file *files;
    size_t n_files, n_applications;
    size_t *application; /* the file of each application */
    struct predict_run runs[SIM_N_SYNCS * CSA_N_POLICIES];
    size_t n_runs;
    bool json, calls, unfairness, progress;
};

/* predict_run.c: run all simulations, one after another. Does not return if one fails. */
void predict_simulate(struct predict *p);

/* predict_memory.c: the memory that this process may use */
uint64_t predict_memory_bytes(void);

/* predict_report.c */
void predict_print(const struct predict *p, FILE *out);
void predict_print_json(const struct predict *p, FILE *out);

#endif
