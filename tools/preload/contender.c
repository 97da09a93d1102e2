/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsing --engines; see contender.h. */
#include "contender.h"

#include <stdio.h>
#include <string.h>

static void start_engine(const struct args *args, struct contender *c, char *name) {
    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    if (strcmp(name, "native") == 0) {
        c->native = true;
        return;
    }
    for (size_t i = 0; engine->legal[i] != NULL; i++)
        if (strcmp(engine->legal[i], name) == 0) {
            c->settings.text[SBT_OPT_ENGINE] = engine->legal[i];
            return;
        }
    char legal[256];
    size_t n = 0;
    for (size_t i = 0; engine->legal[i] != NULL && n < sizeof legal; i++)
        n += (size_t)snprintf(legal + n, sizeof legal - n, "%s, ", engine->legal[i]);
    cmd_refuse("%s: --engines: unknown engine '%s' (legal: %snative)", args->command->name, name, legal);
}

static void add_setting(const struct args *args, struct contender *c, char *setting) {
    char *value = strchr(setting, '=');
    if (value == NULL)
        cmd_refuse("%s: --engines: '%s' is not a setting (legal: OPTION=VALUE)", args->command->name, setting);
    *value++ = '\0';
    const struct sbt_option *option = sbt_option_find(setting);
    if (c->native)
        cmd_refuse("%s: --engines: native takes no settings", args->command->name);
    if (option == NULL || option == &sbt_option_table[SBT_OPT_ENGINE]) {
        char legal[512];
        size_t n = 0;
        for (size_t i = 0; i < SBT_N_OPTIONS && n < sizeof legal; i++)
            if (i != SBT_OPT_ENGINE)
                n += (size_t)snprintf(legal + n, sizeof legal - n, "%s%s", n > 0 ? ", " : "", sbt_option_table[i].name);
        cmd_refuse("%s: --engines: unknown setting '%s' (legal: %s)", args->command->name, setting, legal);
    }
    char context[64];
    snprintf(context, sizeof context, "%s: --engines: ", args->command->name);
    settings_set(&c->settings, option, context, value);
}

size_t contenders_parse(const struct args *args, const char *text, struct contender list[static MAX_CONTENDERS]) {
    size_t n = 0;
    /* Lives as long as the command: values point into it. */
    char *rest = cmd_format("%s", text), *element;
    while ((element = strsep(&rest, ",")) != NULL) {
        char *equals = strchr(element, '='), *colon = strchr(element, ':');
        if (equals != NULL && (colon == NULL || equals < colon)) {
            if (n == 0)
                cmd_refuse("%s: --engines: the setting '%s' has no engine before it (legal: NAME:OPTION=VALUE)",
                           args->command->name, element);
            char *label = cmd_format("%s%c%s", list[n - 1].label, strchr(list[n - 1].label, ':') ? ',' : ':', element);
            list[n - 1].label = label;
            add_setting(args, &list[n - 1], element);
            continue;
        }
        if (n == MAX_CONTENDERS)
            cmd_refuse("%s: --engines: more than %d engines", args->command->name, MAX_CONTENDERS);
        list[n] = (struct contender){.label = cmd_format("%s", element)};
        if (colon != NULL)
            *colon = '\0';
        start_engine(args, &list[n], element);
        if (colon != NULL)
            add_setting(args, &list[n], colon + 1);
        n++;
    }
    return n;
}

void contenders_refuse_engine(const struct args *args) {
    if (args->settings->text[SBT_OPT_ENGINE] != NULL)
        cmd_refuse("%s: --engine chooses nothing here (legal: --engines LIST)", args->command->name);
}
