/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai check`: runs a program under the engine det again and again, with one order of the threads or with many, and
 * says whether runs of an order are the same, and which orders make the program fail.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_run.h"
#include "find.h"
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

/* ---- after each run ---- */

static void read_log(struct check *c, size_t order, size_t number) {
    struct check_run *run = &c->orders[order].runs[number];
    struct schedule_event e;
    char *path = check_log(c, order, number);
    if (access(path, R_OK) == 0) {
        struct schedule_log *log = schedule_take("check", path);
        while (schedule_read("check", log, &e)) {
            run->n_ops += e.kind == SCHEDULE_EVENT_OP;
            run->n_outside += e.kind == SCHEDULE_EVENT_RETURN;
            run->n_stalls += e.kind == SCHEDULE_EVENT_STALL || e.kind == SCHEDULE_EVENT_RELEASED;
            run->schedule = e.hash;
        }
        run->has_log = true;
        run->is_cut = schedule_totals_of(log) == NULL;
        schedule_close(log);
    }
    free(path);
}

/* A run that was ended, or has crashed: where it was cut is no difference. */
static bool is_cut_alone(const struct schedule_difference *d) {
    return (d->side[0].is_cut || d->side[1].is_cut) && !(d->side[0].has_event && d->side[1].has_event);
}

static void describe(struct check_order *o, struct schedule_log *const logs[2], const struct schedule_difference *d) {
    struct symbols *symbols = symbols_new();
    for (int i = 0; i < 2; i++)
        o->difference[i] = d->side[i].has_event ? schedule_text(logs[i], symbols, d->side[i].number, &d->side[i].event)
                                                : cmd_format("the schedule ends there");
    o->n_common = d->n;
    symbols_free(symbols);
}

/* Do the schedules differ? The first such difference of an order is described. */
static bool other_schedule(struct check *c, size_t order, size_t number) {
    struct check_order *o = &c->orders[order];
    struct check_run *first = &o->runs[0], *run = &o->runs[number];
    if (!first->has_log || !run->has_log)
        return first->has_log != run->has_log;
    if (first->schedule == run->schedule && first->n_ops == run->n_ops)
        return false;
    char *paths[2] = {check_log(c, order, 0), check_log(c, order, number)};
    struct schedule_log *logs[2] = {schedule_take("check", paths[0]), schedule_take("check", paths[1])};
    struct schedule_difference d;
    schedule_compare("check", logs, &d);
    bool differs = !d.is_same && !is_cut_alone(&d);
    if (differs && o->difference[0] == NULL)
        describe(o, logs, &d);
    for (int i = 0; i < 2; i++) {
        schedule_close(logs[i]);
        free(paths[i]);
    }
    return differs;
}

static void take_run(struct check *c, size_t order, size_t number) {
    struct check_order *o = &c->orders[order];
    struct check_run *run = &o->runs[number];
    read_log(c, order, number);
    o->n_done++;
    o->n_failed += check_failed(run);
    enum check_verdict verdict = CHECK_SAME;
    if (number > 0 && other_schedule(c, order, number))
        verdict = CHECK_OTHER_SCHEDULE;
    else if (number > 0 && run->output != o->runs[0].output)
        verdict = CHECK_OTHER_OUTPUT;
    o->n_differ += verdict != CHECK_SAME;
    if (verdict > o->verdict) {
        o->verdict = verdict;
        o->other = number;
    }
}

/* ---- the command ---- */

static uint64_t n_cpus(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint64_t)n : 1;
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
        c->library = args->value;
    }
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
    if (s->text[SBT_OPT_SEED] != NULL)
        c->seed = strtoull(s->text[SBT_OPT_SEED], NULL, 10);
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
    c.library = find_library("check", c.library);
    c.library_name = strrchr(c.library, '/') + 1;
    struct verdict verdict = verdict_of(c.program.path, false);
    if (verdict_forbids_preload(&verdict))
        cmd_refuse("check: '%s' cannot be served: see subutai doctor %s", c.argv[0], c.argv[0]);
    settle_options(&c, seeds);
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
