/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses --engines, and --engine with settings; see engine_spec.h. */
#include "engine_spec.h"

#include <stdio.h>
#include <string.h>

/* Short names of an engine with settings. */
static const struct {
    const char *name;
    struct {
        enum sbt_option_id option;
        const char *value;
    } setting[4];
} short_names[] = {
    {"delegate-combine", {{SBT_OPT_ENGINE, "direct"}, {SBT_OPT_WAIT, "switch"}, {SBT_OPT_DELEGATE, "all"}}},
    {"delegate-server",
     {{SBT_OPT_ENGINE, "direct"}, {SBT_OPT_WAIT, "switch"}, {SBT_OPT_DELEGATE, "all"}, {SBT_OPT_SERVERS, "1"}}},
};
enum { N_SHORT_NAMES = sizeof short_names / sizeof *short_names };

static bool is_short_name(struct engine_spec *c, const char *name) {
    for (size_t i = 0; i < N_SHORT_NAMES; i++) {
        if (strcmp(short_names[i].name, name) != 0)
            continue;
        for (size_t k = 0; k < 4 && short_names[i].setting[k].value != NULL; k++)
            c->settings.text[short_names[i].setting[k].option] = short_names[i].setting[k].value;
        return true;
    }
    return false;
}

static void start_engine(const struct args *args, struct engine_spec *c, char *name) {
    const struct sbt_option *engine = &sbt_option_table[SBT_OPT_ENGINE];
    if (strcmp(name, "native") == 0) {
        c->native = true;
        return;
    }
    if (is_short_name(c, name))
        return;
    for (size_t i = 0; engine->legal[i] != NULL; i++)
        if (strcmp(engine->legal[i], name) == 0) {
            c->settings.text[SBT_OPT_ENGINE] = engine->legal[i];
            return;
        }
    char legal[256];
    size_t n = 0;
    for (size_t i = 0; engine->legal[i] != NULL && n < sizeof legal; i++)
        n += (size_t)snprintf(legal + n, sizeof legal - n, "%s, ", engine->legal[i]);
    n += (size_t)snprintf(legal + n, sizeof legal - n, "native");
    for (size_t i = 0; i < N_SHORT_NAMES && n < sizeof legal; i++)
        n += (size_t)snprintf(legal + n, sizeof legal - n, ", %s", short_names[i].name);
    cmd_refuse("%s: --engines: unknown engine '%s' (legal: %s)", args->command->name, name, legal);
}

/* `what`: "--engines" or "--engine". */
_Noreturn static void refuse_setting(const struct args *args, const char *what, const char *key) {
    char legal[1024];
    size_t n = 0;
    for (size_t i = 0; i < SBT_N_OPTIONS && n < sizeof legal; i++)
        if (i != SBT_OPT_ENGINE)
            n += (size_t)snprintf(legal + n, sizeof legal - n, "%s%s", n > 0 ? ", " : "", sbt_option_table[i].name);
    cmd_refuse("%s: %s: unknown setting '%s' (legal: %s)", args->command->name, what, key, legal);
}

/* Is `key` the rest of `name` after a dash? */
static bool is_last_part(const char *key, const char *name) {
    size_t n_key = strlen(key), n_name = strlen(name);
    return n_key > 0 && n_key < n_name && name[n_name - n_key - 1] == '-' && strcmp(name + n_name - n_key, key) == 0;
}

/* The option that `key` names: by its whole name, or by the last part of the name if no other option ends in it. */
static const struct sbt_option *find_setting(const struct args *args, const char *what, const char *key) {
    const struct sbt_option *found = sbt_option_find(key);
    char legal[1024];
    size_t n_found = 0, n = 0;
    for (size_t i = 0; found == NULL && i < SBT_N_OPTIONS && n < sizeof legal; i++)
        if (is_last_part(key, sbt_option_table[i].name))
            n += (size_t)snprintf(legal + n, sizeof legal - n, "%s%s", n_found++ > 0 ? ", " : "",
                                  sbt_option_table[i].name);
    if (n_found > 1)
        cmd_refuse("%s: %s: setting '%s' can be more than one option (legal: %s)", args->command->name, what, key,
                   legal);
    if (n_found == 1)
        found = sbt_option_find(legal);
    if (found == NULL || found == &sbt_option_table[SBT_OPT_ENGINE])
        refuse_setting(args, what, key);
    return found;
}

static void set(const struct args *args, const char *what, struct settings *settings, char *setting) {
    char *value = strchr(setting, '=');
    if (value == NULL)
        cmd_refuse("%s: %s: '%s' is not a setting (legal: OPTION=VALUE)", args->command->name, what, setting);
    *value++ = '\0';
    char context[64];
    snprintf(context, sizeof context, "%s: %s: ", args->command->name, what);
    settings_set(settings, find_setting(args, what, setting), context, value);
}

static void add_setting(const struct args *args, struct engine_spec *c, char *setting) {
    if (c->native)
        cmd_refuse("%s: --engines: native takes no settings", args->command->name);
    set(args, "--engines", &c->settings, setting);
}

size_t engine_specs_parse(const struct args *args, const char *text, struct engine_spec list[static MAX_ENGINE_SPECS]) {
    size_t n = 0;
    /* Kept as long as the command runs: values point into it. */
    char *rest = cmd_format("%s", text), *element;
    while ((element = strsep(&rest, ",")) != NULL) {
        char *equals = strchr(element, '='), *colon = strchr(element, ':');
        if (equals != NULL && (colon == NULL || equals < colon)) {
            if (n == 0)
                cmd_refuse("%s: --engines: the setting '%s' has no engine before it (legal: NAME:OPTION=VALUE)",
                           args->command->name, element);
            list[n - 1].label = cmd_format("%s,%s", list[n - 1].label, element);
            add_setting(args, &list[n - 1], element);
            continue;
        }
        if (n == MAX_ENGINE_SPECS)
            cmd_refuse("%s: --engines: more than %d engines", args->command->name, MAX_ENGINE_SPECS);
        list[n] = (struct engine_spec){.label = cmd_format("%s", element)};
        if (colon != NULL)
            *colon = '\0';
        start_engine(args, &list[n], element);
        if (colon != NULL)
            add_setting(args, &list[n], colon + 1);
        n++;
    }
    return n;
}

void engine_spec_set(const struct args *args, const char *text) {
    char *rest = cmd_format("%s", text), *name = strsep(&rest, ":"), *setting, context[64]; /* kept, as above */
    snprintf(context, sizeof context, "%s: ", args->command->name);
    settings_set(args->settings, &sbt_option_table[SBT_OPT_ENGINE], context, name);
    while ((setting = strsep(&rest, ",")) != NULL)
        set(args, "--engine", args->settings, setting);
}

void engine_specs_refuse_engine(const struct args *args) {
    if (args->settings->text[SBT_OPT_ENGINE] != NULL)
        cmd_refuse("%s: --engine chooses nothing here (legal: --engines LIST)", args->command->name);
}
