/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai hints`: finds hints for the engine det as the authors of LBDR did by hand. It looks in a schedule log for
 * the calls after which the turn is held for longest, and tries hints there.
 */
#include <stdlib.h>
#include <string.h>

#include "find.h"
#include "hints_check.h"
#include "hints_try.h"
#include "output.h"
#include "verdict.h"

enum { HINTS_OUT, HINTS_RUNS, HINTS_SITES, HINTS_TIMEOUT, HINTS_PROGRESS, HINTS_LIBRARY };
static const struct own_option hints_options[] = {
    [HINTS_OUT] = {'o', "out", "FILE", "write the hints to FILE instead of stdout, and say on stdout what was tried"},
    [HINTS_RUNS] = {0, "runs", "N", "measured runs of each candidate (default 5)"},
    [HINTS_SITES] = {0, "sites", "N", "most call sites that are tried, before and after sets (default 6)"},
    [HINTS_TIMEOUT] = {0, "timeout", "S", "seconds until a run is ended, and counts as failed (default 60)"},
    [HINTS_PROGRESS] = {0, "progress", NULL, "a line on stderr for each run, also if that is no terminal"},
    [HINTS_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

static void take_option(struct hints_search *s, const struct args *args, int option, const char **out) {
    switch (option) {
    case HINTS_OUT:
        *out = args->value;
        break;
    case HINTS_RUNS:
        s->n_runs = (int)args_uint(args, "--runs", args->value, 1, 1000);
        break;
    case HINTS_SITES:
        s->n_most = args_uint(args, "--sites", args->value, 1, 100);
        break;
    case HINTS_TIMEOUT:
        s->program.timeout_ns = args_seconds_ns(args, "--timeout", args->value, 1e6);
        break;
    case HINTS_PROGRESS:
        s->progress_lines = true;
        break;
    default:
        s->given_library = args->value;
    }
}

/* What the command chooses itself. */
static void settle_options(struct hints_search *s) {
    static const enum sbt_option_id own[] = {SBT_OPT_HINTS, SBT_OPT_SCHEDULE, SBT_OPT_SCHEDULE_TIMES,
                                             SBT_OPT_SCHEDULE_CALLERS};
    struct settings *settings = &s->settings;
    if (settings->text[SBT_OPT_ENGINE] != NULL && strcmp(settings->text[SBT_OPT_ENGINE], "det") != 0)
        cmd_refuse("hints: --engine %s takes no hints (legal: det)", settings->text[SBT_OPT_ENGINE]);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (settings->text[own[i]] != NULL)
            cmd_refuse("hints: --%s chooses nothing here (legal: with subutai run --engine det)",
                       sbt_option_table[own[i]].name);
        unsetenv(sbt_option_table[own[i]].env);
    }
    settings_set(settings, &sbt_option_table[SBT_OPT_ENGINE], "hints: ", "det");
}

static int hints_main(const struct command *self, int argc, char **argv) {
    struct hints_search s = {
        .n_runs = 5, .n_most = 6, .program = {.subcommand = "hints", .timeout_ns = INT64_C(60000000000)}};
    struct args args = {.command = self, .settings = &s.settings, .argc = argc, .argv = argv};
    const char *path = NULL;
    for (int option; (option = args_next(&args)) != ARGS_END;)
        take_option(&s, &args, option, &path);
    if (args.at == args.argc)
        cmd_refuse("hints: no program given (legal: subutai hints [options] [--] CMD [ARG...])");
    s.program.argv = argv + args.at;
    s.program.path = find_program("hints", s.program.argv[0]);
    s.module = realpath(s.program.path, NULL);
    s.library = find_library("hints", s.given_library);
    s.library_name = strrchr(s.library, '/') + 1;
    verdict_refuse_unserved("hints", s.program.path, s.program.argv[0]);
    settle_options(&s);
    struct output *out = path != NULL ? output_open("hints: --out", path, NULL) : NULL;
    hints_search_run(&s);
    hints_write(out != NULL ? output_file(out) : stdout, &s, NULL, true);
    if (out != NULL) {
        output_close(out);
        hints_report(stdout, &s);
    }
    for (size_t i = 0; i < s.n_profiles; i++)
        hints_profile_free(&s.profiles[i]);
    free(s.profiles);
    free(s.tried);
    return CMD_OK;
}

const struct command command_hints = {
    .name = "hints",
    .synopsis = "[options] [--] CMD [ARG...]",
    .summary = "find hints that make a program faster under the engine det",
    .details = "The program is run many times, and has to be the same in each run. Exit status: 0 with a hint file, "
               "also if no\n"
               "hint helps; 2 if nothing was found out.\n",
    .options = hints_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = hints_main,
};
