/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run of a program, measured, and interleaved series of such runs. `compare` and `bench` are two readers of the
 * same series.
 */
#ifndef CMD_TRIAL_H
#define CMD_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trial {
    int64_t wall_ns;  /* CLOCK_MONOTONIC from before the fork until the child was reaped */
    int64_t cpu_ns;   /* user and system time, with the descendants it waited for */
    int64_t peak_kib; /* largest resident set of the child or such a descendant */
    int status;       /* as from wait4 */
    bool timed_out;
    int out, err; /* in-memory files with what was written to stdout and stderr, owned by the receiver */
};

/* What to run, and in which environment. */
struct trial_program {
    const char *who;  /* subcommand, for refusals */
    const char *path; /* argv[0] stays as the user wrote it */
    char *const *argv;
    int64_t timeout_ns; /* 0: none */
};

/*
 * Run once and wait. The child is a process group of its own; a timeout ends the group (SIGTERM, SIGKILL 2 s later),
 * and a signal that ends the command ends the group first. Its stdin is the command's if that is a regular file (from
 * the same position in every run), else empty: nothing that one run could take away from the next.
 */
struct trial trial_run(const struct trial_program *program, char *const *envp);
void trial_release(struct trial *trial);

/* "exit 0", "SIGSEGV", "timeout" */
const char *trial_outcome(const struct trial *trial, char buffer[static 32]);
/* All of an in-memory file as text, allocated. */
char *trial_text(int fd);

struct series {
    struct trial_program program;
    size_t n_contenders;
    const char *const *labels;
    char *const *const *envps;
    int n_runs, n_warmups;
    size_t n_beside;     /* processes that compute meanwhile */
    bool progress_lines; /* one line per run even if stderr is no terminal */
    const char *prefix;  /* of progress lines: "16 threads, " */
};

/* Called after every run; `run` counts from 0 and is negative for warm-ups. May take trial->out or err by setting -1.
 */
typedef void series_visit(void *context, size_t contender, int run, struct trial *trial);

/* Warm-ups of each contender, then runs A B A B ...: a change of the machine's pace meets all contenders alike. */
void series_run(const struct series *series, series_visit *visit, void *context);

#endif
