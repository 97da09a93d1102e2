/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai record`: as `run`, with a recorder above the engine. Whatever could prevent the trace is checked before the
 * program starts. The command waits for the program: if that is killed, the command completes the trace, because it
 * knows when that was.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "env.h"
#include "find.h"
#include "launch.h"
#include "trace.h"
#include "verdict.h"

enum { RECORD_OUT, RECORD_LIBRARY };
static const struct own_option record_options[] = {
    [RECORD_OUT] = {'o', "out", "FILE", "the trace; an old one is replaced (default subutai.sbt)"},
    [RECORD_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the recording library of this command"},
    {0, NULL, NULL, NULL},
};

/* The trace is FILE, or FILE.PID if another process that the program has started was the first to write. */
static void complete(const char *file, const struct launched *ended) {
    size_t n = strlen(file);
    bool has_ending = n > 4 && strcmp(file + n - 4, ".sbt") == 0;
    char *own = cmd_format("%.*s.%d.sbt", (int)(has_ending ? n - 4 : n), file, (int)ended->pid);
    sbt_trace_complete(file, (uint32_t)ended->pid, ended->cpu_ns);
    sbt_trace_complete(own, (uint32_t)ended->pid, ended->cpu_ns);
    free(own);
}

/* As the program ended. It has left a core, if one was to be left. A core's handler is run whatever the limit is. */
static void end_by(int signo) {
    sigset_t one;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    signal(signo, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, signo);
    raise(signo);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int record_main(const struct command *self, int argc, char **argv) {
    struct settings settings = {0};
    struct args args = {.command = self, .settings = &settings, .argc = argc, .argv = argv};
    const char *given_library = NULL, *out = "subutai.sbt";
    for (int option; (option = args_next(&args)) != ARGS_END;)
        *(option == RECORD_OUT ? &out : &given_library) = args.value;
    if (args.at == args.argc)
        cmd_refuse("record: no program given (legal: subutai record [-o FILE] [options] [--] CMD [ARG...])");
    if (settings.text[SBT_OPT_RECORD] != NULL) /* --record-calls and --record-stacks do */
        cmd_refuse("record: --record chooses nothing here (legal: -o FILE)");
    char **command_line = argv + args.at;
    char *path = find_program("record", command_line[0]);
    char *library = find_library("record", given_library);
    struct verdict verdict = verdict_of(path, false);
    if (verdict_forbids_preload(&verdict))
        cmd_refuse("record: '%s' cannot be recorded: see subutai doctor %s", command_line[0], command_line[0]);
    if (settings.text[SBT_OPT_ENGINE] == NULL && getenv("SUBUTAI_ENGINE") == NULL)
        settings_set(&settings, &sbt_option_table[SBT_OPT_ENGINE], "record: ", "glibc");
    find_trace_check("record", out); /* what is refused costs no old trace */
    find_old_children("record", out);
    char *place = find_trace_place("record", out);
    settings_set(&settings, &sbt_option_table[SBT_OPT_RECORD], "record: ", place);
    struct sbt_options options;
    char **env = env_build("record", environ, &settings, NULL, library, strrchr(library, '/') + 1, &options);
    verdict_warn(&verdict, "record", command_line[0], options.value[SBT_OPT_VERBOSE].u);
    struct launched program;
    int status = launch_and_wait("record", path, command_line, env, false, &program);
    complete(settings.text[SBT_OPT_RECORD], &program);
    if (WIFSIGNALED(status))
        end_by(WTERMSIG(status));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const struct command command_record = {
    .name = "record",
    .synopsis = "[-o FILE] [options] [--] CMD [ARG...]",
    .summary = "run a program and record what its threads synchronize",
    .details =
        "The engine is glibc unless --engine names another. The exit status is the program's own; 2 with one line\n"
        "on stderr if it could not be started or the trace could not be written. Processes that the program\n"
        "starts have traces of their own, named after FILE and the process: app.1234.sbt beside app.sbt.\n",
    .options = record_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = record_main,
};
