/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `subutai check` share: the runs, and what is found in them. */
#ifndef CMD_CHECK_RUN_H
#define CMD_CHECK_RUN_H

#include "command.h"
#include "schedule_diff.h"
#include "trial.h"

/* One run, and what is left of it. */
struct check_run {
    struct trial trial; /* its files are closed */
    uint64_t output;    /* a hash of stdout, stderr and how it ended */
    bool has_log;       /* otherwise the program has not synchronized */
    bool is_cut;
    uint64_t schedule, n_ops, n_outside, n_stalls;
};

/* Why two runs of an order are not the same. */
enum check_verdict { CHECK_SAME, CHECK_OTHER_OUTPUT, CHECK_OTHER_SCHEDULE };

/* The runs of one order of the threads: one seed. */
struct check_order {
    uint64_t seed;
    struct check_run *runs;
    enum check_verdict verdict;
    char *difference[2];       /* OTHER_SCHEDULE: the first difference, of the first run and of `other`; or NULL */
    uint64_t n_common;         /* OTHER_SCHEDULE: operations before it */
    size_t other;              /* the first run that differs */
    size_t n_failed, n_differ; /* runs that failed; that differ from the first */
    size_t n_done;
};

struct check {
    struct trial_program program;
    char **argv;
    const char *library, *library_name;
    struct settings settings; /* without seed and schedule */
    uint64_t seed;            /* of the only order, without --seeds */
    size_t n_runs, n_orders, n_jobs;
    bool json;
    char *folder; /* of the logs, while the runs last */
    struct check_order *orders;
};

bool check_failed(const struct check_run *run);

/* check_run.c: makes all runs; `done` is called after each, with its number, while its log and its files are there. */
typedef void check_done(struct check *c, size_t order, size_t run);
void check_run_all(struct check *c, check_done *done);
/* The log of that run, allocated. */
char *check_log(const struct check *c, size_t order, size_t run);

/* check_report.c. The result is the command's exit status. */
int check_report(const struct check *c);

#endif
