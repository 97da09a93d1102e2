/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `subutai check` share: the runs, and what is found in them. */
#ifndef CMD_CHECK_RUN_H
#define CMD_CHECK_RUN_H

#include "command.h"
#include "schedule_diff.h"
#include "trial.h"

/* The logs of a run: one for each process that has synchronized, while their files are there. */
struct check_logs {
    struct check_process {
        char *path;
        unsigned long id, number; /* in the file's name; 0: none */
        uint64_t schedule, n_ops;
        bool is_matched; /* while two runs are compared */
    } * list;
    size_t n;
};

/* One run, and what is left of it. */
struct check_run {
    struct trial trial; /* its files are open while its order's runs last if it is the first of them */
    uint64_t output;    /* a hash of stdout, stderr and how it ended */
    char *said;         /* the first line of the library's own, allocated; NULL: it said nothing */
    struct check_logs logs;
    size_t n_processes; /* that have synchronized */
    /* Of all processes. `schedule` is that of the only one, or a sum of all. */
    uint64_t schedule, n_ops, n_outside, n_stalls, n_futexes;
    bool has_other_schedule, has_other_output; /* than the first run of its order */
    bool is_deadlock;                          /* it was ended because no thread of it could go on */
    /* The threads that could not go on at the end. */
    struct check_stuck {
        uint32_t process, thread;
        enum schedule_op op;    /* that would take what it waits for */
        uint32_t object, other; /* as in struct schedule_event */
        char *place, *text;     /* allocated; the call site, NULL: not known; all in words */
    } * stuck;
    size_t n_stuck;
};

/* Why two runs of an order are not the same. */
enum check_verdict { CHECK_SAME, CHECK_OTHER_OUTPUT, CHECK_OTHER_SCHEDULE, CHECK_N_VERDICTS };

/* What two runs have printed, or how they have ended, where that differs first. */
struct check_output_difference {
    const char *stream; /* "stdout", "stderr", "status"; NULL: there is no difference */
    size_t line;        /* from 1 on; 0: none, of the status */
    char *text[2];      /* the line, or a part of it, of the first run and of the other one; allocated */
};

/* The runs of one order of the threads: one seed. */
struct check_order {
    uint64_t seed;
    struct check_run *runs;
    enum check_verdict verdict;
    char *difference[2]; /* OTHER_SCHEDULE: the first difference, of the first run and of `other`; or NULL */
    uint64_t n_common;   /* OTHER_SCHEDULE: operations before it */
    size_t other;        /* the first run that differs */
    size_t other_output; /* the first run of which only the output differs, and how */
    struct check_output_difference output;
    size_t n_failed, n_done;
    size_t n_runs[CHECK_N_VERDICTS]; /* by how they differ from the first */
};

struct check {
    struct trial_program program;
    char **argv;
    const char *library, *library_name;
    const char *given_library; /* --library; NULL: not given */
    struct settings settings;  /* without seed and schedule */
    uint64_t seed;             /* of the only order, without --seeds */
    size_t n_runs, n_orders, n_jobs;
    bool json;
    bool is_serial;     /* --serial */
    bool keeps_said;    /* the library's own lines are kept from the output: neither --log nor --verbose is given */
    bool ends_itself;   /* --deadlock abort */
    const char *folder; /* of the logs, while the runs last */
    struct check_order *orders;
};

bool check_failed(const struct check_run *run);
/* By a signal, or because it took too long: where its log is cut says nothing. */
bool check_was_ended(const struct check_run *run);

/* check_logs.c. The log of that run, and the file for what the library says; allocated. */
char *check_log(const struct check *c, size_t order, size_t run);
char *check_said(const struct check *c, size_t order, size_t run);
/* What the logs of that run say; refuses logs that are not whole because there was no room. */
void check_logs_read(const struct check *c, size_t order, size_t run);
/* Has that run another schedule than the first? The first such difference of an order is described. */
bool check_logs_differ(const struct check *c, size_t order, size_t run);
void check_logs_remove(const struct check *c, size_t order, size_t run);

/* check_deadlock.c. Is the process group deadlocked, by what the library has written to that file? */
bool check_is_deadlocked(const char *said, pid_t group);
/* A thread that cannot go on; all but the first n are forgotten, since their process has gone on. */
void check_deadlock_add(struct check_run *run, const struct schedule_log *log, const struct schedule_event *e);
void check_deadlock_forget(struct check_run *run, size_t n);

/* check_output.c. One of the two: how they differ. Their files are there. */
void check_output_compare(struct check_output_difference *d, const struct trial *first, const struct trial *other);

/* check_run.c: makes all runs; `done` is called after each, with its number, while its log and its files are there. */
typedef void check_done(struct check *c, size_t order, size_t run);
void check_run_all(struct check *c, check_done *done);

/* check_report.c. The result is the command's exit status. */
int check_report(const struct check *c);

#endif
