/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A measured run of a program, and interleaved series of measured runs. `compare` and `bench` both read series. */
#ifndef CMD_TRIAL_H
#define CMD_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct trial {
    int64_t wall_ns;  /* CLOCK_MONOTONIC, from before the fork until the child was reaped */
    int64_t cpu_ns;   /* user and system time, of the child and the descendants for which it waited */
    int64_t peak_kib; /* largest resident set among the child and those descendants */
    int status;       /* as from wait4 */
    bool timed_out;
    int out, err; /* in-memory files with what was written to stdout and stderr; the receiver owns them */
};

/* What to run, and in which environment. */
struct trial_program {
    const char *subcommand; /* the subcommand, for refusals */
    const char *path;       /* argv[0] stays as the user wrote it */
    char *const *argv;
    int64_t timeout_ns; /* 0: none */
};

/*
 * Run once and wait. The child is its own process group. A timeout ends the group (SIGTERM, SIGKILL 2 s later), and a
 * signal that ends the command ends the group first. The child's stdin is the command's if that is a regular file, from
 * the same position in every run. Otherwise it is empty: a run must not take anything away from the next.
 */
struct trial trial_run(const struct trial_program *program, char *const *envp);
/*
 * The parts of trial_run, for several runs at a time. Start a run: its process id, and trial->out and err. Refuses a
 * program that cannot be executed. The caller reaps the process, and ends its group.
 */
pid_t trial_begin(const struct trial_program *program, char *const *envp, struct trial *trial);
/* Wait for a child's end or a signal that ends the command: that signal, SIGCHLD, or -1 after so many nanoseconds. */
int trial_wait_signal(int64_t ns);
/* End by that signal, as if the command had not taken it. */
_Noreturn void trial_end_by(int signal_number);
int64_t trial_now_ns(void); /* CLOCK_MONOTONIC */
/*
 * From here on, and from the first run on in any case, the signals that end the command are taken while a run lasts.
 * The command then removes its incomplete files (output.h, folder.h) and ends by the signal.
 */
void trial_take_signals(void);
void trial_release(struct trial *trial);

/* "exit 0", "SIGSEGV", "timeout" */
const char *trial_outcome(const struct trial *trial, char buffer[static 32]);
/* All of an in-memory file as text, allocated. */
char *trial_text(int fd);

struct series {
    struct trial_program program;
    size_t n_engines;
    const char *const *labels;
    char *const *const *envps;
    char *const *const *argvs; /* of each engine; NULL: the program's for all */
    int n_runs, n_warmups;
    size_t n_background; /* processes of the background load */
    bool progress_lines; /* a line for each run even if stderr is no terminal */
    const char *prefix;  /* of progress lines: "16 threads, " */
    /* Is the engine's next run left out? With the visitor's context; NULL: none is. */
    bool (*skips)(void *context, size_t engine, int run);
};

/*
 * Called after every run. `run` counts from 0 and is negative for warm-ups. May take trial->out or err, by setting it
 * to -1.
 */
typedef void series_visit(void *context, size_t engine, int run, struct trial *trial);

/* Warm-ups of each engine, then runs A B A B ...: a change of the machine's pace meets all engines alike. */
void series_run(const struct series *series, series_visit *visit, void *context);

#endif
