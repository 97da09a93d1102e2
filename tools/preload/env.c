/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options to environment; see env.h. */
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_variable(const char *entry, const char *name) {
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* LD_PRELOAD's value without entries called `name`: a command started under itself must not load two libraries. */
static char *other_preloads(const char *value, const char *name) {
    char *kept = cmd_format("%s", ""), *copy = cmd_format("%s", value), *rest = copy, *entry;
    while ((entry = strsep(&rest, ": \t\n")) != NULL) {
        const char *slash = strrchr(entry, '/');
        if (entry[0] == '\0' || strcmp(slash != NULL ? slash + 1 : entry, name) == 0)
            continue;
        char *longer = cmd_format("%s%s%s", kept, kept[0] != '\0' ? ":" : "", entry);
        free(kept);
        kept = longer;
    }
    free(copy);
    return kept;
}

static const char *chosen(const struct settings *common, const struct settings *own, size_t option) {
    const char *text = own != NULL ? own->text[option] : NULL;
    return text != NULL || common == NULL ? text : common->text[option];
}

char **env_build(const char *who, char *const *base, const struct settings *common, const struct settings *own,
                 const char *library, const char *library_name, struct sbt_options *loaded) {
    size_t n_base = 0, n = 0;
    while (base[n_base] != NULL)
        n_base++;
    char **env = cmd_allocate(n_base + SBT_N_OPTIONS + 2, sizeof *env);
    char *others = NULL;

    for (size_t i = 0; i < n_base; i++) {
        bool replaced = false;
        for (size_t o = 0; o < SBT_N_OPTIONS; o++)
            replaced = replaced || (chosen(common, own, o) != NULL && is_variable(base[i], sbt_option_table[o].env));
        if (is_variable(base[i], "LD_PRELOAD"))
            others = other_preloads(base[i] + strlen("LD_PRELOAD="), library_name);
        else if (!replaced)
            env[n++] = base[i];
    }
    for (size_t o = 0; o < SBT_N_OPTIONS; o++)
        if (chosen(common, own, o) != NULL)
            env[n++] = cmd_format("%s=%s", sbt_option_table[o].env, chosen(common, own, o));
    if (library != NULL || (others != NULL && others[0] != '\0')) {
        bool both = library != NULL && others != NULL && others[0] != '\0';
        env[n++] = cmd_format("LD_PRELOAD=%s%s%s", library != NULL ? library : "", both ? ":" : "",
                              others != NULL ? others : "");
    }
    free(others);

    char error[512];
    if (!sbt_options_load(loaded, env, error, sizeof error))
        cmd_refuse("%s: %s", who, error);
    return env;
}
