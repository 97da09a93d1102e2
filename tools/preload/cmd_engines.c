/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai engines`: the engines for --engine, and the options that only one of them reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fields.h"

enum { ENGINES_JSON };
static const struct own_option engines_options[] = {
    [ENGINES_JSON] = {0, "json", NULL, "one JSON object per engine and line"},
    {0, NULL, NULL, NULL},
};

static bool is_option_of(const struct sbt_option *option, const char *engine) {
    return option->engine != NULL && strcmp(option->engine, engine) == 0;
}

/* An option that only one engine reads; `help` is to be freed. */
struct option_row {
    const char *name, *env, *value, *help;
};

#define OPTION(member) offsetof(struct option_row, member)
static const struct field option_fields[] = {
    {NULL, "option", NULL, 0, FIELD_TEXT, OPTION(name), 0},
    {NULL, "variable", NULL, 0, FIELD_TEXT, OPTION(env), 0},
    {NULL, "default", NULL, 0, FIELD_TEXT, OPTION(value), 0},
    {NULL, "description", NULL, 0, FIELD_TEXT, OPTION(help), 0},
    {0},
};

static void for_options(const char *engine, void (*visit)(void *context, const struct option_row *row), void *context) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        if (!is_option_of(option, engine))
            continue;
        char *help = help_of_option(option);
        visit(context, &(struct option_row){option->name, option->env, option->default_text, help});
        free(help);
    }
}

static void put_option(void *context, const struct option_row *row) {
    struct json *j = context;
    json_open(j, NULL, '{');
    fields_json(j, option_fields, 0, row);
    json_close(j, '}');
}

static void put_json(const char *engine, const char *description, bool is_default) {
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "engine", engine);
    json_text(&j, "description", description);
    json_bool(&j, "default", is_default);
    json_open(&j, "options", '[');
    for_options(engine, put_option, &j);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* The option in the form in which `compare --engines` takes it after the engine's name. */
static void print_option(void *unused, const struct option_row *row) {
    char *left = cmd_format("%s=%s", row->name, row->value != NULL ? row->value : "");
    (void)unused;
    help_entry(left, row->help);
    free(left);
}

static void put_lines(const char *engine, const char *description, bool is_default) {
    printf("%-10s %s%s\n", engine, description, is_default ? " (default)" : "");
    for_options(engine, print_option, NULL);
}

static int engines_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    bool as_json = false;
    for (int option; (option = args_next(&args)) != ARGS_END; as_json = true)
        if (option == ARGS_OPERAND)
            cmd_refuse("engines: unexpected argument '%s' (legal: --json, --help)", args.value);

    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    for (size_t i = 0; engine->legal[i] != NULL; i++)
        (as_json ? put_json : put_lines)(engine->legal[i], engine->legal_help[i],
                                         strcmp(engine->legal[i], engine->default_text) == 0);
    return CMD_OK;
}

const struct command command_engines = {
    .name = "engines",
    .synopsis = "[--json]",
    .summary = "list the engines",
    .details = "Below an engine are the options that it alone reads, with their defaults.\n",
    .options = engines_options,
    .main = engines_main,
};
