/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --help, generated from the subcommands' descriptors and the library's option table.
 */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 26, HELP_WIDTH = 100 };

void help_entry(const char *left, const char *text) {
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

char *help_of_option(const struct sbt_option *option) {
    char legal[256] = "";
    size_t n = 0;
    switch (option->kind) {
    case SBT_OPTION_UINT:
        snprintf(legal, sizeof legal, " (%ju to %ju%s%s)", (uintmax_t)option->min, (uintmax_t)option->max,
                 option->legal != NULL ? ", " : "", option->legal != NULL ? option->legal[0] : "");
        break;
    case SBT_OPTION_ENUM:
        for (size_t i = 0; option->legal[i] != NULL && n < sizeof legal; i++)
            n += (size_t)snprintf(legal + n, sizeof legal - n, "%s%s%s", i == 0 ? " (" : ", ", option->legal[i],
                                  option->legal[i + 1] == NULL ? ")" : "");
        break;
    case SBT_OPTION_MESH:
        snprintf(legal, sizeof legal, " (W and H %ju to %ju)", (uintmax_t)option->min, (uintmax_t)option->max);
        break;
    case SBT_OPTION_MAP:
        snprintf(legal, sizeof legal, " (linear, random, random:SEED, file:PATH)");
        break;
    case SBT_OPTION_BOOL:
    case SBT_OPTION_LOCKS:
    case SBT_OPTION_STRING:
        break;
    }
    return cmd_format("%s%s", option->help, legal);
}

static void print_library_option(const struct sbt_option *option) {
    bool bare = option->bare_text != NULL;
    char *left = cmd_format("--%s%s%s%s", option->name, bare ? "[=" : " ", option->metavar, bare ? "]" : "");
    char *help = help_of_option(option);
    char *text = cmd_format("%s%s%s%s%s [%s]", help, option->default_text != NULL ? "; default " : "",
                            option->default_text != NULL ? option->default_text : "", bare ? ", without a value " : "",
                            bare ? option->bare_text : "", option->env);
    help_entry(left, text);
    free(left);
    free(help);
    free(text);
    if (option->kind == SBT_OPTION_BOOL) {
        left = cmd_format("--no-%s", option->name);
        text = cmd_format("the same as --%s%c0", option->name, bare ? '=' : ' ');
        help_entry(left, text);
        free(left);
        free(text);
    }
}

static void print_library_options(void) {
    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    printf("\nOptions of the library (each can also be set by the variable in brackets):\n");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        if (sbt_option_table[i].engine == NULL)
            print_library_option(&sbt_option_table[i]);
    for (size_t e = 0; engine->legal[e] != NULL; e++)
        for (size_t i = 0, n = 0; i < SBT_N_OPTIONS; i++) {
            if (sbt_option_table[i].engine == NULL || strcmp(sbt_option_table[i].engine, engine->legal[e]) != 0)
                continue;
            if (n++ == 0)
                printf("\nOptions of the engine %s (the other engines ignore them):\n", engine->legal[e]);
            print_library_option(&sbt_option_table[i]);
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
        help_entry(left, o->help);
    }
    help_entry("--help", "print this and exit");
    if (command->takes_library_options)
        print_library_options();
}

void help_program(void) {
    printf("Usage: subutai COMMAND [options] ...\n\n"
           "Runs unmodified threaded programs with their mutexes, condition variables, barriers, rwlocks,\n"
           "semaphores and spinlocks served by an engine of your choice.\n\nCommands:\n");
    for (const struct command *const *c = all_commands; *c != NULL; c++)
        help_entry((*c)->name, (*c)->summary);
    printf("\nEngines:\n");
    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    for (size_t i = 0; engine->legal[i] != NULL; i++)
        help_entry(engine->legal[i], engine->legal_help[i]);
    printf("\n'subutai COMMAND --help' shows a command's options; subutai(1) is the manual.\n");
}
