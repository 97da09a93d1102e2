/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --help, generated from the subcommands' descriptors and the library's option table.
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26, HELP_WIDTH = 100 };

/* `left` in the left column, `text` folded at blanks in the right one. */
static void print_entry(const char *left, const char *text) {
    int column = printf("  %s", left);
    if (column >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    while (*text != '\0') {
        size_t n = strlen(text), room = HELP_WIDTH - HELP_COLUMN;
        if (n > room) {
            for (n = room; n > 0 && text[n] != ' '; n--)
                ;
            n = n == 0 ? room : n;
        }
        printf("%*s%.*s\n", HELP_COLUMN - column, "", (int)n, text);
        column = 0;
        text += n;
        text += *text == ' ';
    }
}

static void print_library_option(const struct sbt_option *option) {
    char left[64], text[512];
    size_t n = 0;
    snprintf(left, sizeof left, "--%s %s", option->name, option->metavar);
    n = (size_t)snprintf(text, sizeof text, "%s", option->help);
    if (option->kind == SBT_OPTION_UINT)
        n += (size_t)snprintf(text + n, sizeof text - n, " (%ju to %ju)", (uintmax_t)option->min,
                              (uintmax_t)option->max);
    for (size_t i = 0; option->kind == SBT_OPTION_ENUM && option->legal[i] != NULL && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s", i == 0 ? " (" : ", ", option->legal[i],
                              option->legal[i + 1] == NULL ? ")" : "");
    if (option->default_text != NULL && n < sizeof text)
        n += (size_t)snprintf(text + n, sizeof text - n, "; default %s", option->default_text);
    if (n < sizeof text)
        snprintf(text + n, sizeof text - n, " [%s]", option->env);
    print_entry(left, text);
    if (option->kind == SBT_OPTION_BOOL) {
        snprintf(left, sizeof left, "--no-%s", option->name);
        snprintf(text, sizeof text, "the same as --%s 0", option->name);
        print_entry(left, text);
    }
}

void help_command(const struct command *command) {
    printf("Usage: subutai %s %s\n\n%s\n", command->name, command->synopsis, command->summary);
    if (command->details[0] != '\0')
        printf("\n%s", command->details);
    printf("\nOptions:\n");
    for (const struct own_option *o = command->options; o->name != NULL; o++) {
        char left[64] = "";
        size_t n = 0;
        if (o->letter != 0)
            n = (size_t)snprintf(left, sizeof left, "-%c, ", o->letter);
        snprintf(left + n, sizeof left - n, "--%s%s%s", o->name, o->metavar != NULL ? " " : "",
                 o->metavar != NULL ? o->metavar : "");
        print_entry(left, o->help);
    }
    print_entry("--help", "print this and exit");
    if (!command->takes_library_options)
        return;
    printf("\nOptions of the library (each can also be set by the variable in brackets):\n");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        print_library_option(&sbt_option_table[i]);
}

void help_program(void) {
    printf("Usage: subutai COMMAND [options] ...\n\n"
           "Runs unmodified threaded programs with their mutexes, condition variables, barriers, rwlocks,\n"
           "semaphores and spinlocks served by an engine of your choice.\n\nCommands:\n");
    for (const struct command *const *c = all_commands; *c != NULL; c++)
        print_entry((*c)->name, (*c)->summary);
    printf("\nEngines:\n");
    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    for (size_t i = 0; engine->legal[i] != NULL; i++)
        print_entry(engine->legal[i], engine->legal_help[i]);
    printf("\n'subutai COMMAND --help' shows a command's options; subutai(1) is the manual.\n");
}
