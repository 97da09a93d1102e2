/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai run`: sets the environment and executes the program. There is no fork: exit status, signals, process id and
 * terminal are the program's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "env.h"
#include "find.h"
#include "hints_check.h"
#include "source_lines.h"
#include "verdict.h"

enum { RUN_LIBRARY };
static const struct own_option run_options[] = {
    [RUN_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

/* As `record` with a trace: an old log is replaced. Under another engine the option does nothing. */
static void prepare_schedule(struct settings *settings) {
    const char *engine = hints_chosen(settings, SBT_OPT_ENGINE), *schedule = settings->text[SBT_OPT_SCHEDULE];
    if (schedule != NULL && engine != NULL && strcmp(engine, "det") == 0)
        settings->text[SBT_OPT_SCHEDULE] = find_schedule_place("run", schedule);
}

static int run_main(const struct command *self, int argc, char **argv) {
    struct settings settings = {0};
    struct args args = {.command = self, .settings = &settings, .argc = argc, .argv = argv};
    const char *given_library = NULL;
    while (args_next(&args) != ARGS_END)
        given_library = args.value; /* RUN_LIBRARY is the only own option */
    if (args.at == args.argc)
        cmd_refuse("run: no program given (legal: subutai run [options] [--] CMD [ARG...])");
    char **command_line = argv + args.at;

    char *path = find_program("run", command_line[0]);
    char *library = find_library("run", given_library);
    struct verdict verdict = verdict_of(path, false);
    prepare_schedule(&settings);
    source_lines_in(&settings, path);
    hints_check("run", &settings, path);
    struct sbt_options options;
    char **env = env_build("run", environ, &settings, NULL, verdict_forbids_preload(&verdict) ? NULL : library,
                           strrchr(library, '/') + 1, &options);
    verdict_warn(&verdict, "run", command_line[0], options.value[SBT_OPT_VERBOSE].u);

    execvpe(path, command_line, env); /* path has a slash: no search, only the fall-back to sh for a bare script */
    cmd_refuse("run: program '%s' cannot be executed: %s", command_line[0], strerror(errno));
}

const struct command command_run = {
    .name = "run",
    .synopsis = "[options] [--] CMD [ARG...]",
    .summary = "run a program with its synchronization served by an engine",
    .details = "The exit status is the program's own; 2 with one line on stderr if it could not be started.\n",
    .options = run_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = run_main,
};
