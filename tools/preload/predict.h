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
    const struct sim_survey *survey;
    double *alone_ns; /* by combination; NULL: not asked for */
};

/* A value of --cores, with its network. */
struct predict_chip {
    uint32_t n_cores, width, height;
};

/* A value of --machine. */
struct predict_machine {
    const char *name;
    bool on_host;
    struct sim_host_costs costs; /* of the host */
};

/* A combination of --machine, --cores, --sync and --sched, and its simulation when that has been run. */
struct predict_run {
    const struct predict_machine *machine;
    struct predict_chip chip;
    enum sim_sync sync;
    enum csa_policy sched;
    struct sim *sim;
};

/* The host's is Linux's. */
static inline const char *predict_sched_name(const struct predict_run *run) {
    return run->sync < SIM_GLIBC ? sim_sched_name(run->sched) : "linux";
}

struct predict {
    const char *machine, *cores, *mesh, *sync, *sched, *timeline;
    uint32_t without;         /* enum sim_host_effect, or-ed */
    uint32_t memory_percent;  /* of the work */
    uint32_t recorded_cores;  /* thousandths: see recorded.h; of the applications together */
    uint32_t n_servers;       /* of --sync delegate; 0: not given, so one, and none on a single core */
    uint32_t given;           /* a bit for each option of the command line */
    struct sim_config config; /* without what a run has of its own */
    struct predict_file *files;
    size_t n_files, n_applications;
    size_t *application; /* the file of each application */
    struct predict_machine *machines;
    struct predict_run *runs;
    size_t n_machines, n_runs, n_chips; /* chips: of each machine */
    bool has_paper, has_host;           /* among the machines */
    bool json, calls, unfairness, progress;
};

/* A run's name in messages: "software, rr"; with the machine and the cores if there are several. Valid until the next
 * call. */
const char *predict_run_name(const struct predict *p, const struct predict_run *run);

/* predict_run.c: run all simulations, one after another. Does not return if one fails. */
void predict_simulate(struct predict *p);

/* predict_memory.c: the memory that this process may use */
uint64_t predict_memory_bytes(void);

/* predict_report.c */
void predict_print(const struct predict *p, FILE *out);
void predict_print_json(const struct predict *p, FILE *out);

#endif
