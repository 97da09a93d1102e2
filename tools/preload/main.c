/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `subutai` command: picks the subcommand. Command and library know each other only by the environment (SUBUTAI_*
 * and LD_PRELOAD) and by the option table that is compiled into both.
 */
#include "command.h"
#include "output.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct command *const all_commands[] = {&command_run,
                                              &command_record,
                                              &command_profile,
                                              &command_report,
                                              &command_trace,
                                              &command_schedule,
                                              &command_check,
                                              &command_hints,
                                              &command_predict,
                                              &command_sweep,
                                              &command_replay,
                                              &command_compare,
                                              &command_bench,
                                              &command_calibrate,
                                              &command_doctor,
                                              &command_engines,
                                              NULL};

static void say(const char *format, va_list list) {
    /* One write for a line, because several processes may share the terminal. */
    char line[2048];
    int n = snprintf(line, sizeof line, "subutai: ");
    vsnprintf(line + n, sizeof line - (size_t)n - 1, format, list);
    for (char *c = line; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    fprintf(stderr, "%s\n", line);
}

void cmd_refuse(const char *format, ...) {
    va_list list;
    fflush(stdout);
    va_start(list, format);
    say(format, list);
    va_end(list);
    exit(CMD_REFUSED);
}

void cmd_warn(const char *format, ...) {
    va_list list;
    fflush(stdout);
    va_start(list, format);
    say(format, list);
    va_end(list);
}

static void cut(int signo) {
    static const char text[] = "subutai: a file has become shorter while it was read\n";
    ssize_t n;
    (void)signo;
    output_abandon();
    n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n; /* a failure could be reported nowhere else */
    _exit(3);
}

void cmd_survive_cut_files(void) {
    struct sigaction action = {.sa_handler = cut};
    sigaction(SIGBUS, &action, NULL);
}

void *cmd_allocate(size_t n, size_t size) {
    void *memory = calloc(n > 0 ? n : 1, size);
    if (memory == NULL)
        cmd_refuse("out of memory");
    return memory;
}

void *cmd_reallocate(void *old, size_t n, size_t size) {
    void *memory = reallocarray(old, n > 0 ? n : 1, size);
    if (memory == NULL)
        cmd_refuse("out of memory");
    return memory;
}

char *cmd_format(const char *format, ...) {
    va_list list;
    char *text;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        cmd_refuse("out of memory");
    return text;
}

size_t cmd_whole_characters(const char *text, size_t n) {
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static const struct command *find_command(const char *name) {
    for (const struct command *const *c = all_commands; *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    char legal[256];
    size_t n = 0;
    for (const struct command *const *c = all_commands; *c != NULL && n < sizeof legal; c++)
        n += (size_t)snprintf(legal + n, sizeof legal - n, "%s, ", (*c)->name);
    cmd_refuse("unknown %s '%s' (legal: %shelp, --help, --version)", name[0] == '-' ? "option" : "command", name,
               legal);
}

static int run_main(int argc, char **argv) {
    if (argc < 2)
        cmd_refuse(
            "no command given (legal: run, record, profile, report, trace, schedule, check, hints, predict, sweep, "
            "replay, compare, bench, "
            "calibrate, doctor, "
            "engines; try --help)");
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        printf("subutai %s\n", SUBUTAI_VERSION);
        return CMD_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        if (argc > 2)
            help_command(find_command(argv[2]));
        else
            help_program();
        return CMD_OK;
    }
    const struct command *command = find_command(name);
    return command->main(command, argc - 2, argv + 2);
}

int main(int argc, char **argv) {
    int status = run_main(argc, argv);
    /* A table that did not reach its reader (a full disk, a closed pipe) must not look like a success. */
    if (fflush(stdout) != 0 || ferror(stdout))
        cmd_refuse("cannot write to standard output");
    return status;
}
