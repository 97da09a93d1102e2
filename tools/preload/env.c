/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From options to the environment; see env.h. */
#include "env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_variable(const char *entry, const char *name) {
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static const char plain_name[] = "libsubutai.so", recording_name[] = "libsubutai-record.so";

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_own(const char *path, const char *name) {
    const char *base = base_of(path);
    return strcmp(base, name) == 0 || strcmp(base, plain_name) == 0 || strcmp(base, recording_name) == 0;
}

/*
 * The value of LD_PRELOAD without entries called `name`: a command that runs under itself must not load two libraries.
 */
static char *other_preloads(const char *value, const char *name) {
    char *kept = cmd_format("%s", ""), *copy = cmd_format("%s", value), *rest = copy, *entry;
    while ((entry = strsep(&rest, ": \t\n")) != NULL) {
        if (entry[0] == '\0' || is_own(entry, name))
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

/* The recording library next to `library`, allocated; or `library`, if the user chose it. */
static char *recording_library(const char *subcommand, const char *library) {
    if (strcmp(base_of(library), plain_name) != 0)
        return cmd_format("%s", library);
    char *recording = cmd_format("%.*s%s", (int)(base_of(library) - library), library, recording_name);
    if (access(recording, R_OK) != 0)
        cmd_refuse("%s: '%s': %s (legal: --library FILE, one that records)", subcommand, recording, strerror(errno));
    return recording;
}

/*
 * The name of the tree of processes that the command starts, as a variable: its id, which `run` leaves to the program,
 * and the time. What the tree has left is removed when the command ends, unless it has become the program.
 */
static char tree_file[80];

static void remove_tree_file(void) {
    unlink(tree_file);
}

static char *tree_variable(void) {
    static char *name;
    struct timespec now;
    if (name == NULL) {
        clock_gettime(CLOCK_REALTIME, &now);
        name = cmd_format("%d-%lld%09ld", (int)getpid(), (long long)now.tv_sec, now.tv_nsec);
        snprintf(tree_file, sizeof tree_file, "%s%s", SBT_TREE_FILE, name);
        atexit(remove_tree_file);
    }
    return cmd_format("%s=%s", SBT_TREE, name);
}

bool env_has(char *const *env, const struct sbt_option *option) {
    while (*env != NULL && !is_variable(*env, option->env))
        env++;
    return *env != NULL;
}

static void remove_variable(char **env, size_t *n, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!is_variable(env[i], name))
            env[kept++] = env[i];
    while (*n > kept)
        env[--*n] = NULL;
}

/* See env.h. `env` has n variables and ends in NULL. */
static void remove_idle(const char *subcommand, const struct settings *common, const struct settings *own,
                        const struct sbt_options *loaded, char **env, size_t *n) {
    for (size_t o = 0; o < SBT_N_OPTIONS; o++) {
        const char *why = sbt_option_idle(loaded, (enum sbt_option_id)o);
        if (why == NULL || (own == NULL && chosen(common, own, o) == NULL))
            continue;
        const struct settings *said = own != NULL ? own : common;
        if (said->text[o] != NULL && loaded->value[SBT_OPT_VERBOSE].u >= 1)
            cmd_warn("%s: --%s does nothing: %s", subcommand, sbt_option_table[o].name, why);
        remove_variable(env, n, sbt_option_table[o].env);
    }
}

char **env_build(const char *subcommand, char *const *base, const struct settings *common, const struct settings *own,
                 const char *library, const char *library_name, struct sbt_options *loaded) {
    size_t n_base = 0, n = 0;
    while (base[n_base] != NULL)
        n_base++;
    char **env = cmd_allocate(n_base + SBT_N_OPTIONS + 3, sizeof *env);
    char *others = NULL;

    for (size_t i = 0; i < n_base; i++) {
        bool replaced = false;
        for (size_t o = 0; o < SBT_N_OPTIONS; o++)
            replaced = replaced || (chosen(common, own, o) != NULL && is_variable(base[i], sbt_option_table[o].env));
        if (is_variable(base[i], "LD_PRELOAD"))
            others = other_preloads(base[i] + strlen("LD_PRELOAD="), library_name);
        else if (!replaced && !is_variable(base[i], SBT_TREE))
            env[n++] = base[i];
    }
    for (size_t o = 0; o < SBT_N_OPTIONS; o++)
        if (chosen(common, own, o) != NULL)
            env[n++] = cmd_format("%s=%s", sbt_option_table[o].env, chosen(common, own, o));
    char error[1024], *recording = NULL;
    if (!sbt_options_load(loaded, env, error, sizeof error))
        cmd_refuse("%s: %s", subcommand, error);
    remove_idle(subcommand, common, own, loaded, env, &n);
    if (library != NULL && loaded->value[SBT_OPT_WAIT].u != SBT_WAIT_ADAPTIVE &&
        (loaded->value[SBT_OPT_WAIT].u != SBT_WAIT_AUTO || loaded->given[SBT_OPT_DELEGATE]))
        env[n++] = tree_variable();
    const char *record = loaded->value[SBT_OPT_RECORD].s;
    if (library != NULL && record != NULL && record[0] != '\0')
        library = recording = recording_library(subcommand, library);
    if (library != NULL || (others != NULL && others[0] != '\0')) {
        bool both = library != NULL && others != NULL && others[0] != '\0';
        env[n++] = cmd_format("LD_PRELOAD=%s%s%s", library != NULL ? library : "", both ? ":" : "",
                              others != NULL ? others : "");
    }
    free(others);
    free(recording);
    return env;
}
