/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai profile`: runs a program under the recorder, waits for it, and has `subutai report` say where its time went.
 * However the program ends, there is a report of what its trace has by then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "env.h"
#include "find.h"
#include "launch.h"
#include "report_print.h"
#include "trace.h"
#include "verdict.h"
#include "words.h"

enum { PROFILE_OUT, PROFILE_STACKS, PROFILE_FULL, PROFILE_TRY, PROFILE_DELEGATE, PROFILE_PID, PROFILE_LIBRARY };
static const struct own_option profile_options[] = {
    [PROFILE_OUT] = {'o', "out", "DIR",
                     "the directory of traces and report; old ones in it are replaced (default subutai-profile)"},
    [PROFILE_STACKS] = {0, "stacks", NULL, "take call stacks of waits of more than 20 us, and of what ended them"},
    [PROFILE_FULL] = {0, "full", NULL, "record each call, as subutai record does, for subutai predict"},
    [PROFILE_TRY] = {0, "try", NULL,
                     "then run CMD by subutai compare, and say what advice to wait by switching has brought"},
    [PROFILE_DELEGATE] = {0, "delegate-from", "SHARES", "as that of subutai report (default 15,60)"},
    [PROFILE_PID] = {0, "pid", "PID", "refused: says how to look into a program that runs already"},
    [PROFILE_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the recording library of this command"},
    {0, NULL, NULL, NULL},
};

struct profile {
    const char *out, *library, *delegate_from;
    bool stacks, full, try;
    char **command_line;
    char **files; /* the traces: the first process's, and then by their numbers */
    size_t n_files;
};

/* ---- the directory ---- */

static bool is_trace_name(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".sbt") == 0;
}

/* The 1234 of NAME.1234.sbt; 0: it is NAME.sbt, the first process's. */
static unsigned long process_of(const char *file) {
    const char *name = strrchr(file, '/'), *end = file + strlen(file) - strlen(".sbt"), *at = end;
    while (at > file && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at < end && at[-1] == '.' && at - 1 > name + 1 ? strtoul(at, NULL, 10) : 0;
}

static int by_process(const void *a, const void *b) {
    const char *first = *(char *const *)a, *second = *(char *const *)b;
    unsigned long x = process_of(first), y = process_of(second);
    return x != y ? (x < y ? -1 : 1) : strcmp(first, second);
}

/* Fills in the traces that are in the directory. */
static void list_traces(struct profile *p) {
    DIR *dir = opendir(p->out);
    if (dir == NULL)
        cmd_refuse("profile: directory '%s': %s (legal: a directory that can be written to)", p->out, strerror(errno));
    p->n_files = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (is_trace_name(entry->d_name)) {
            p->files = cmd_reallocate(p->files, p->n_files + 1, sizeof *p->files);
            p->files[p->n_files++] = cmd_format("%s/%s", p->out, entry->d_name);
        }
    closedir(dir);
    if (p->n_files > 0)
        qsort(p->files, p->n_files, sizeof *p->files, by_process);
}

/* The lock lasts as long as this process. Where the file system has none there is none. */
static void lock_directory(const struct profile *p) {
    int fd = open(p->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        cmd_refuse("profile: directory '%s': another subutai profile is at work there (legal: another directory, -o "
                   "DIR)",
                   p->out);
}

/* The directory is there, and has no old traces. The result is the place of the program's trace. */
static char *prepare(struct profile *p, const char *program) {
    if (mkdir(p->out, 0777) != 0 && errno != EEXIST)
        cmd_refuse("profile: directory '%s': %s (legal: one that can be made, or written to)", p->out, strerror(errno));
    lock_directory(p);
    list_traces(p);
    for (size_t i = 0; i < p->n_files; i++)
        find_trace_check("profile", p->files[i]); /* what is refused, as what is no trace, costs none */
    for (size_t i = 0; i < p->n_files; i++)
        free(find_trace_place("profile", p->files[i]));
    const char *base = strrchr(program, '/');
    char *wanted = cmd_format("%s/%s.sbt", p->out, base != NULL ? base + 1 : program);
    char *place = find_trace_place("profile", wanted);
    free(wanted);
    return place;
}

/* ---- the program ---- */

/* This process has ended just now, and others, which it has started, perhaps before. */
static void complete_traces(struct profile *p, const struct launched *ended) {
    list_traces(p);
    for (size_t i = 0; i < p->n_files; i++)
        sbt_trace_complete(p->files[i], (uint32_t)ended->pid, ended->cpu_ns);
}

/* The program's wait status. */
static int run(struct profile *p, const char *path, char **env) {
    struct launched program;
    int status = launch_and_wait("profile", path, p->command_line, env, true, &program);
    struct sigaction ignores = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &ignores, NULL); /* the report is made in any case */
    sigaction(SIGQUIT, &ignores, NULL);
    complete_traces(p, &program);
    return status;
}

/* ---- the report ---- */

/* The command line as a shell, and report --command, read it. */
static char *quoted(char **command_line) {
    size_t n = 0, at = 0;
    for (char **word = command_line; *word != NULL; word++)
        n += strlen(*word) + 1;
    char *words = cmd_allocate(n, 1), *text = cmd_allocate(4 * n + 16, 1);
    for (char **word = command_line; *word != NULL; at += strlen(*word) + 1, word++)
        memcpy(words + at, *word, strlen(*word) + 1);
    text[words_quote(text, 4 * n + 8, words, n)] = '\0';
    free(words);
    return text;
}

/* `subutai report --text` of the traces, into `fd`. False: it could not be made, and has said why. */
static bool make_report(const struct profile *p, int fd) {
    char **line = cmd_allocate(p->n_files + 9, sizeof *line);
    size_t n = 0;
    int status = -1;
    line[n++] = "subutai";
    line[n++] = "report";
    line[n++] = "--text";
    if (p->try) {
        line[n++] = "--try";
        line[n++] = "--command";
        line[n++] = quoted(p->command_line);
    }
    if (p->delegate_from != NULL) {
        line[n++] = "--delegate-from";
        line[n++] = (char *)(uintptr_t)p->delegate_from;
    }
    for (size_t i = 0; i < p->n_files; i++)
        line[n++] = p->files[i];
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        dup2(fd, STDOUT_FILENO);
        execv("/proc/self/exe", line);
        _exit(CMD_REFUSED);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    free(line);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool put(const char *text, size_t n, int fd) {
    for (ssize_t done; n > 0; text += done, n -= (size_t)done)
        if ((done = write(fd, text, n)) < 0)
            return false;
    return true;
}

/* To stderr, since stdout is the program's, and to a file; the disk may be full. False: it is not in the file. */
static bool show(int from, const char *report) {
    char buffer[1 << 16];
    int fd = open(report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), failed = fd < 0 ? errno : 0;
    lseek(from, 0, SEEK_SET);
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;) {
        put(buffer, (size_t)n, STDERR_FILENO);
        if (failed == 0 && !put(buffer, (size_t)n, fd))
            failed = errno;
    }
    if (fd >= 0)
        close(fd);
    if (failed != 0)
        cmd_warn("profile: '%s': %s (legal: a file that can be written)", report, strerror(failed));
    return failed == 0;
}

/* How the program ended, where that bears on the report. One line. False: there is nothing to report. */
static bool tell_end(const struct profile *p, const char *program, int status) {
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    name = name != NULL ? name : "?";
    if (WIFSIGNALED(status) && p->n_files == 0)
        cmd_warn("profile: '%s' was ended by SIG%s before it had written anything to %s: let it run for longer",
                 program, name, p->out);
    else if (WIFSIGNALED(status))
        cmd_warn("profile: '%s' was ended by SIG%s; the report is of what it did until then", program, name);
    else if (p->n_files == 0)
        cmd_warn("profile: '%s' has left no trace: it was not served, or could not write to %s", program, p->out);
    return p->n_files > 0;
}

static void report_on(struct profile *p, const char *program, int status) {
    list_traces(p);
    if (!tell_end(p, program, status))
        return;
    char *report = cmd_format("%s/report.txt", p->out);
    int fd = memfd_create("report", MFD_CLOEXEC);
    if (fd < 0)
        cmd_refuse("profile: memfd_create: %s", strerror(errno));
    if (make_report(p, fd) && show(fd, report))
        cmd_warn("profile: the report is %s; the traces of %zu process%s are beside it", report, p->n_files,
                 p->n_files == 1 ? "" : "es");
    close(fd);
    free(report);
}

static void read_options(struct args *args, struct profile *p) {
    for (int option; (option = args_next(args)) != ARGS_END;)
        switch (option) {
        case PROFILE_OUT:
            p->out = args->value;
            break;
        case PROFILE_LIBRARY:
            p->library = args->value;
            break;
        case PROFILE_STACKS:
            p->stacks = true;
            break;
        case PROFILE_FULL:
            p->full = true;
            break;
        case PROFILE_TRY:
            p->try = true;
            break;
        case PROFILE_DELEGATE:
            p->delegate_from = args->value;
            break;
        default:
            cmd_refuse("profile: --pid: a program that runs already cannot be recorded, because the library must be "
                       "preloaded (legal: subutai profile -- CMD; of a program under subutai run the USDT probes of "
                       "libsubutai.so show the same calls to bpftrace and perf: libpthread:mutex_entry, "
                       "libpthread:mutex_acquired, subutai:sleep and others)");
        }
    if (p->delegate_from != NULL && !report_delegate_from(p->delegate_from))
        cmd_refuse(
            "profile: --delegate-from: '%s' is not a legal value (legal: two of 0 to 100 or never, with a comma)",
            p->delegate_from);
    if (p->out[0] == '\0')
        cmd_refuse("profile: --out: '' is not a legal value (legal: a directory)");
    if (args->at == args->argc)
        cmd_refuse("profile: no program given (legal: subutai profile [-o DIR] [options] [--] CMD [ARG...])");
    for (size_t i = SBT_OPT_RECORD; i <= SBT_OPT_RECORD_STACKS; i++)
        if (args->settings->text[i] != NULL)
            cmd_refuse("profile: --%s chooses nothing here (legal: --full, --stacks)", sbt_option_table[i].name);
}

/* It would run, and there would be nothing to report. */
static bool cannot_be_seen(const struct verdict *verdict) {
    return verdict->reason == VERDICT_STATIC || verdict->reason == VERDICT_SET_ID ||
           verdict->reason == VERDICT_CAPABILITIES;
}

static void set(struct settings *settings, enum sbt_option_id option, const char *value) {
    settings_set(settings, &sbt_option_table[option], "profile: ", value);
}

static int profile_main(const struct command *self, int argc, char **argv) {
    struct settings settings = {0};
    struct args args = {.command = self, .settings = &settings, .argc = argc, .argv = argv};
    struct profile p = {.out = "subutai-profile"};
    read_options(&args, &p);
    char **command_line = p.command_line = argv + args.at;
    char *path = find_program("profile", command_line[0]);
    char *library = find_library("profile", p.library);
    struct verdict verdict = verdict_of(path, false);
    if (verdict_forbids_preload(&verdict) || cannot_be_seen(&verdict))
        cmd_refuse("profile: '%s' cannot be recorded: see subutai doctor %s", command_line[0], command_line[0]);
    if (settings.text[SBT_OPT_ENGINE] == NULL && getenv("SUBUTAI_ENGINE") == NULL)
        set(&settings, SBT_OPT_ENGINE, "glibc");
    set(&settings, SBT_OPT_RECORD, prepare(&p, command_line[0]));
    set(&settings, SBT_OPT_RECORD_CALLS, p.full ? "all" : "waits");
    set(&settings, SBT_OPT_RECORD_STACKS, p.stacks ? "1" : "0");
    struct sbt_options options;
    char **env = env_build("profile", environ, &settings, NULL, library, strrchr(library, '/') + 1, &options);
    verdict_warn(&verdict, "profile", command_line[0], options.value[SBT_OPT_VERBOSE].u);
    int status = run(&p, path, env);
    report_on(&p, command_line[0], status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const struct command command_profile = {
    .name = "profile",
    .synopsis = "[-o DIR] [--stacks] [--full] [--try] [options] [--] CMD [ARG...]",
    .summary = "run a program and report where its threads wait, for which others, and what would help",
    .details = "Calls that did not wait are counted, waits and what ended them are recorded one by one. The engine is\n"
               "glibc unless --engine names another. When the program has ended, in whatever way, the report goes to\n"
               "stderr and to DIR/report.txt. The exit status is the program's own, 128 and the signal's number if a\n"
               "signal ended it; 2 with one line on stderr if the program could not be started. Processes that the\n"
               "program starts have traces of their own in DIR.\n",
    .options = profile_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = profile_main,
};
