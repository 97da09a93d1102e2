/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the subcommands share: their descriptors, the refusal, and the reading of a command line.
 *
 * A subcommand is a file cmd_NAME.c that defines a struct command. --help is generated from the descriptor and the
 * library's option table, so each accepted option is shown, and each shown option is accepted.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/options.h"

/* The command's own exit statuses. `run` passes the program's on. */
enum cmd_exit { CMD_OK = 0, CMD_DIFFERENT = 1, CMD_REFUSED = 2 };

/* An option of a subcommand, not of the library. Tables of these end with a NULL name. */
struct own_option {
    char letter; /* the short form; 0: none */
    const char *name;
    const char *metavar; /* NULL: the option takes no value */
    const char *help;
};

struct command {
    const char *name;
    const char *synopsis; /* the usage line after the name */
    const char *summary;  /* a line for the list of commands */
    const char *details;  /* paragraphs below the usage line, or "" */
    const struct own_option *options;
    bool takes_library_options;
    bool runs_program; /* options end at the first operand: the rest is the program's command line */
    int (*main)(const struct command *self, int argc, char **argv);
};

extern const struct command command_run, command_record, command_profile, command_report, command_trace,
    command_predict, command_sweep, command_replay, command_compare, command_bench, command_calibrate, command_doctor,
    command_engines, command_schedule, command_check, command_hints;

/*
 * Library options as the user wrote them, by enum sbt_option_id; NULL: not given. They were checked when they were
 * read.
 */
struct settings {
    const char *text[SBT_N_OPTIONS];
};

/*
 * Print a line "subutai: ..." on stderr and exit with status 2. For whatever keeps the command from starting its work.
 */
_Noreturn void cmd_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a line "subutai: ..." on stderr. */
void cmd_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From here on: if another process shortens a mapped file, the command ends with a line and exit status 3. */
void cmd_survive_cut_files(void);
/* Allocation that refuses instead of returning NULL. What is added to `old` is not zeroed. */
void *cmd_allocate(size_t n, size_t size);
void *cmd_reallocate(void *old, size_t n, size_t size);
char *cmd_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many of the first n bytes, of which there are as many at least, are whole characters of UTF-8. */
size_t cmd_whole_characters(const char *text, size_t n);
/* The ending of a regular noun behind that number. */
static inline const char *cmd_s(uint64_t n) {
    return n == 1 ? "" : "s";
}

/* help.c */
void help_program(void);
void help_command(const struct command *command);
/* Print `left` in the left column, and `text` folded at blanks in the right column. */
void help_entry(const char *left, const char *text);
/* The option's help with its legal values, on one line, allocated. */
char *help_of_option(const struct sbt_option *option);
extern const struct command *const all_commands[]; /* main.c, NULL-terminated */

/* args.c: a cursor over a subcommand's command line. */
struct args {
    const struct command *command;
    struct settings *settings; /* where library options are stored; NULL: the command takes none */
    int argc, at;
    char **argv;
    const char *value; /* the value of the option, or the operand, just read */
    bool operands_only;
};
enum { ARGS_END = -1, ARGS_OPERAND = -2 };

/*
 * The next option of the command's own table (its index), ARGS_OPERAND, or ARGS_END. Library options are checked and
 * stored on the way; --help prints and exits. With runs_program, ARGS_END means that argv + at is the program's command
 * line. Unknown options are refused, and so are missing and superfluous values.
 */
int args_next(struct args *args);
/* `text` as a whole number within the limits; otherwise refused. The refusal calls it `what`: "--runs". */
uint64_t args_uint(const struct args *args, const char *what, const char *text, uint64_t min, uint64_t max);
/* Seconds with optional decimals, above 0 and at most `max`, as nanoseconds. */
int64_t args_seconds_ns(const struct args *args, const char *what, const char *text, double max);
/* "2,16,64". The result is the count, at most `n_max`. */
size_t args_uint_list(const struct args *args, const char *what, const char *text, uint64_t min, uint64_t max,
                      uint64_t *list, size_t n_max);
/* Check `text` as a value of `option` and store it. A refusal begins with `context`: "compare: --engines: ". */
void settings_set(struct settings *settings, const struct sbt_option *option, const char *context, const char *text);

#endif
