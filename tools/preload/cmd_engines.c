/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai engines`: what can be chosen with --engine. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "json.h"

enum { ENGINES_JSON };
static const struct own_option engines_options[] = {
    [ENGINES_JSON] = {0, "json", NULL, "one JSON object per engine and line"},
    {0, NULL, NULL, NULL},
};

static int engines_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    bool as_json = false;
    for (int option; (option = args_next(&args)) != ARGS_END; as_json = true)
        if (option == ARGS_OPERAND)
            cmd_refuse("engines: unexpected argument '%s' (legal: --json, --help)", args.value);

    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    struct json j = {.out = stdout};
    for (size_t i = 0; engine->legal[i] != NULL; i++) {
        bool is_default = strcmp(engine->legal[i], engine->default_text) == 0;
        if (as_json) {
            json_open(&j, NULL, '{');
            json_text(&j, "engine", engine->legal[i]);
            json_text(&j, "description", engine->legal_help[i]);
            json_bool(&j, "default", is_default);
            json_close(&j, '}');
            json_end(&j);
        } else {
            printf("%-10s %s%s\n", engine->legal[i], engine->legal_help[i], is_default ? " (default)" : "");
        }
    }
    return CMD_OK;
}

const struct command command_engines = {
    .name = "engines",
    .synopsis = "[--json]",
    .summary = "list the engines",
    .details = "",
    .options = engines_options,
    .main = engines_main,
};
