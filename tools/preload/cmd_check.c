/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai check`: runs a program under the engine det again and again, with one order of the threads or with many, and
 * says whether runs of an order are the same, and which orders make the program fail.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check_run.h"
#include "find.h"
#include "hints_check.h"
#include "verdict.h"

enum { CHECK_RUNS, CHECK_SEEDS, CHECK_JOBS, CHECK_TIMEOUT, CHECK_JSON, CHECK_LIBRARY };
static const struct own_option check_options[] = {
    [CHECK_RUNS] = {0, "runs", "N", "runs of each order (default 10; with --seeds 1)"},
    [CHECK_SEEDS] = {0, "seeds", "M", "orders: that of creation, and those that the seeds 1 to M draw (default 0)"},
    [CHECK_JOBS] = {'j', "jobs", "J", "runs at a time (default: as many as CPUs may be used)"},
    [CHECK_TIMEOUT] = {0, "timeout", "S", "seconds until a run is ended, and counts as failed (default 60)"},
    [CHECK_JSON] = {0, "json", NULL, "print one JSON object"},
    [CHECK_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

bool check_failed(const struct check_run *run) {
    return run->trial.timed_out || !WIFEXITED(run->trial.status) || WEXITSTATUS(run->trial.status) != 0;
}

bool check_was_ended(const struct check_run *run) {
    return run->trial.timed_out || WIFSIGNALED(run->trial.status);
}

/* ---- after each run ---- */

/* What a run had printed when its time was over depends on the machine. */
static bool is_other_output(const struct check_run *a, const struct check_run *b) {
    return a->output != b->output && !(a->trial.timed_out && b->trial.timed_out);
}

/* Are the schedules not those of the first run? */
static bool is_other_schedule(const struct check *c, size_t order, size_t number) {
    const struct check_run *first = &c->orders[order].runs[0], *run = &c->orders[order].runs[number];
    return (first->schedule != run->schedule || first->n_ops != run->n_ops || first->n_processes != run->n_processes) &&
           check_logs_differ(c, order, number);
}

static void take_run(struct check *c, size_t order, size_t number) {
    struct check_order *o = &c->orders[order];
    struct check_run *run = &o->runs[number];
    check_logs_read(c, order, number);
    o->n_done++;
    o->n_failed += check_failed(run);
    run->has_other_schedule = number > 0 && is_other_schedule(c, order, number);
    run->has_other_output = number > 0 && is_other_output(&o->runs[0], run);
    enum check_verdict verdict = run->has_other_schedule ? CHECK_OTHER_SCHEDULE
                                 : run->has_other_output ? CHECK_OTHER_OUTPUT
                                                         : CHECK_SAME;
    o->n_runs[verdict]++;
    if (verdict == CHECK_OTHER_OUTPUT && o->output.stream == NULL) {
        o->other_output = number;
        check_output_compare(&o->output, &o->runs[0].trial, &run->trial);
    }
    if (verdict > o->verdict) {
        o->verdict = verdict;
        o->other = number;
    }
}

/* ---- the command ---- */

/* Those that this process may use. */
static uint64_t n_cpus(void) {
    cpu_set_t cpus; /* of 1024; the call fails on a larger machine */
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint64_t)CPU_COUNT(&cpus) : CPU_SETSIZE;
}

static void take_option(struct check *c, const struct args *args, int option, uint64_t *seeds) {
    switch (option) {
    case CHECK_RUNS:
        c->n_runs = args_uint(args, "--runs", args->value, 1, 100000);
        break;
    case CHECK_SEEDS:
        *seeds = args_uint(args, "--seeds", args->value, 1, 100000);
        break;
    case CHECK_JOBS:
        c->n_jobs = args_uint(args, "--jobs", args->value, 1, 1024);
        break;
    case CHECK_TIMEOUT:
        c->program.timeout_ns = args_seconds_ns(args, "--timeout", args->value, 1e6);
        break;
    case CHECK_JSON:
        c->json = true;
        break;
    default:
        c->given_library = args->value;
    }
}

/* The library refuses what is no value of it. */
static bool is_serial(struct settings *s) {
    const struct sbt_option *option = &sbt_option_table[SBT_OPT_SERIAL];
    const char *text = hints_chosen(s, SBT_OPT_SERIAL);
    union sbt_option_value value = {.u = 0};
    char error[256];
    if (text != NULL)
        settings_set(s, option, "check: ", text);
    return text != NULL && sbt_option_parse(option, option->name, text, &value, error, sizeof error) && value.u != 0;
}

/* What the command chooses itself. */
static void settle_options(struct check *c, uint64_t seeds) {
    struct settings *s = &c->settings;
    if (s->text[SBT_OPT_ENGINE] != NULL && strcmp(s->text[SBT_OPT_ENGINE], "det") != 0)
        cmd_refuse("check: --engine %s keeps no order (legal: det)", s->text[SBT_OPT_ENGINE]);
    if (s->text[SBT_OPT_SCHEDULE] != NULL)
        cmd_refuse("check: --schedule chooses nothing here (legal: subutai run --engine det --schedule FILE)");
    if (seeds > 0 && s->text[SBT_OPT_SEED] != NULL)
        cmd_refuse("check: --seed chooses nothing beside --seeds (legal: one of them)");
    settings_set(s, &sbt_option_table[SBT_OPT_ENGINE], "check: ", "det");
    const char *seed = hints_chosen(s, SBT_OPT_SEED);
    if (seed != NULL) {
        settings_set(s, &sbt_option_table[SBT_OPT_SEED], "check: ", seed);
        c->seed = strtoull(seed, NULL, 10);
    }
    c->is_serial = is_serial(s);
    const char *deadlock = hints_chosen(s, SBT_OPT_DEADLOCK);
    c->ends_itself = deadlock != NULL && strcmp(deadlock, "abort") == 0;
    c->keeps_said = hints_chosen(s, SBT_OPT_LOG) == NULL && hints_chosen(s, SBT_OPT_VERBOSE) == NULL;
    c->n_orders = seeds > 0 ? (size_t)seeds + 1 : 1;
    if (c->n_runs == 0)
        c->n_runs = seeds > 0 ? 1 : 10;
    c->orders = cmd_allocate(c->n_orders, sizeof *c->orders);
    for (size_t i = 0; i < c->n_orders; i++) {
        c->orders[i].seed = seeds > 0 ? i : c->seed;
        c->orders[i].runs = cmd_allocate(c->n_runs, sizeof *c->orders[i].runs);
    }
}

static int check_main(const struct command *self, int argc, char **argv) {
    struct check c = {.n_jobs = n_cpus(), .program = {.subcommand = "check", .timeout_ns = INT64_C(60000000000)}};
    struct args args = {.command = self, .settings = &c.settings, .argc = argc, .argv = argv};
    uint64_t seeds = 0;
    for (int option; (option = args_next(&args)) != ARGS_END;)
        take_option(&c, &args, option, &seeds);
    if (args.at == args.argc)
        cmd_refuse("check: no program given (legal: subutai check [options] [--] CMD [ARG...])");
    c.argv = argv + args.at;
    c.program.argv = c.argv;
    c.program.path = find_program("check", c.argv[0]);
    c.library = find_library("check", c.given_library);
    c.library_name = strrchr(c.library, '/') + 1;
    verdict_refuse_unserved("check", c.program.path,
                            c.argv[0]); /* no order is kept: all runs would seem to be the same */
    settle_options(&c, seeds);
    hints_check("check", &c.settings, c.program.path);
    check_run_all(&c, take_run);
    return check_report(&c);
}

const struct command command_check = {
    .name = "check",
    .synopsis = "[options] [--] CMD [ARG...]",
    .summary =
        "run a program again and again in the same order of its threads, and in others: what differs, what fails?",
    .details =
        "Exit status: 0 if all runs of an order are the same and none fails, 1 if not, 2 if nothing was run. A run\n"
        "fails if it ends by a signal, with a status that is not 0, or not in time.\n",
    .options = check_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = check_main,
};
