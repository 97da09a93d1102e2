/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai engines`: what can be chosen with --engine, and the options that only one of them reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json.h"

enum { ENGINES_JSON };
static const struct own_option engines_options[] = {
    [ENGINES_JSON] = {0, "json", NULL, "one JSON object per engine and line"},
    {0, NULL, NULL, NULL},
};

static bool is_option_of(const struct sbt_option *option, const char *engine) {
    return option->engine != NULL && strcmp(option->engine, engine) == 0;
}

static void put_json(const char *engine, const char *description, bool is_default) {
    struct json j = {.out = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "engine", engine);
    json_text(&j, "description", description);
    json_bool(&j, "default", is_default);
    json_open(&j, "options", '[');
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        if (!is_option_of(option, engine))
            continue;
        char *help = help_of_option(option);
        json_open(&j, NULL, '{');
        json_text(&j, "option", option->name);
        json_text(&j, "variable", option->env);
        json_text(&j, "default", option->default_text);
        json_text(&j, "description", help);
        json_close(&j, '}');
        free(help);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* Options as `compare --engines` takes them after the engine's name. */
static void put_lines(const char *engine, const char *description, bool is_default) {
    printf("%-10s %s%s\n", engine, description, is_default ? " (default)" : "");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        if (!is_option_of(option, engine))
            continue;
        char *help = help_of_option(option);
        char *left = cmd_format("%s=%s", option->name, option->default_text != NULL ? option->default_text : "");
        help_entry(left, help);
        free(help);
        free(left);
    }
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
