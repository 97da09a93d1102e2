/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The option table and its parser. Formats by hand into the caller's buffer: the library parses its options from
 * whatever call comes first, which may be a lock inside malloc, so neither snprintf nor strtoull (locale) is used.
 */
#include "core/options.h"

#include <string.h>

static const char *const engine_names[] = {"glibc", "direct", NULL};
static const char *const engine_help[] = {
    "pass-through to the C library: the base line",
    "software engine: state in place, waiters in a parking lot, adaptive waiting",
};

const struct sbt_option sbt_option_table[SBT_N_OPTIONS] = {
    [SBT_OPT_ENGINE] = {"engine", "SUBUTAI_ENGINE", SBT_OPTION_ENUM, "direct", 0, 0, engine_names, engine_help, "NAME",
                        "engine that serves the synchronization objects"},
    [SBT_OPT_VERBOSE] = {"verbose", "SUBUTAI_VERBOSE", SBT_OPTION_UINT, "1", 0, 3, NULL, NULL, "N",
                         "0 says nothing, 1 says when the library steps aside, 2 what it serves, 3 debugging"},
    [SBT_OPT_CHILDREN] = {"children", "SUBUTAI_CHILDREN", SBT_OPTION_BOOL, "1", 0, 1, NULL, NULL, "0|1",
                          "whether programs that the program starts are served too"},
    [SBT_OPT_SPIN_NS] = {"spin-ns", "SUBUTAI_SPIN_NS", SBT_OPTION_UINT, "2000", 0, 1000000, NULL, NULL, "NS",
                         "longest busy wait in nanoseconds, while every runnable thread has a core"},
    [SBT_OPT_YIELDS] = {"yields", "SUBUTAI_YIELDS", SBT_OPTION_UINT, "12", 0, 100000, NULL, NULL, "N",
                        "most sched_yield calls of one wait that switch to another thread, before it is parked"},
    [SBT_OPT_LOG] = {"log", "SUBUTAI_LOG", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                     "append the library's messages to FILE instead of stderr"},
};

/* Bounded text builder: never overruns, always terminated. */
struct text {
    char *at, *end;
};

static void text_add(struct text *t, const char *s) {
    while (*s != '\0' && t->at + 1 < t->end)
        *t->at++ = *s++;
    *t->at = '\0';
}

static void text_add_uint(struct text *t, uint64_t u) {
    char digits[21], *d = digits + sizeof digits - 1;
    *d = '\0';
    do {
        *--d = (char)('0' + u % 10);
        u /= 10;
    } while (u != 0);
    text_add(t, d);
}

const struct sbt_option *sbt_option_find(const char *name) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        if (strcmp(sbt_option_table[i].name, name) == 0)
            return &sbt_option_table[i];
    return NULL;
}

static bool parse_uint(const char *text, uint64_t *value) {
    uint64_t u = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || u > (UINT64_MAX - 9) / 10)
            return false;
        u = u * 10 + (uint64_t)(*text - '0');
    }
    *value = u;
    return true;
}

static bool parse_bool(const char *text, uint64_t *value) {
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i & 1;
            return true;
        }
    return false;
}

static bool parse_enum(const struct sbt_option *option, const char *text, uint64_t *value) {
    for (size_t i = 0; option->legal[i] != NULL; i++)
        if (strcmp(text, option->legal[i]) == 0) {
            *value = i;
            return true;
        }
    return false;
}

static void describe_legal(struct text *t, const struct sbt_option *option) {
    switch (option->kind) {
    case SBT_OPTION_UINT:
        text_add(t, " (legal: ");
        text_add_uint(t, option->min);
        text_add(t, " to ");
        text_add_uint(t, option->max);
        break;
    case SBT_OPTION_ENUM:
        text_add(t, " (legal: ");
        for (size_t i = 0; option->legal[i] != NULL; i++) {
            text_add(t, i == 0 ? "" : ", ");
            text_add(t, option->legal[i]);
        }
        break;
    case SBT_OPTION_BOOL:
        text_add(t, " (legal: 0, 1, no, yes, off, on, false, true");
        break;
    case SBT_OPTION_STRING:
        text_add(t, " (legal: any text");
        break;
    }
    text_add(t, ")");
}

bool sbt_option_parse(const struct sbt_option *option, const char *who, const char *text, union sbt_option_value *value,
                      char *error, size_t error_size) {
    const char *complaint = "unknown value";
    bool ok = false;
    switch (option->kind) {
    case SBT_OPTION_UINT:
        ok = parse_uint(text, &value->u);
        complaint = ok ? "value out of range" : "not a number:";
        ok = ok && value->u >= option->min && value->u <= option->max;
        break;
    case SBT_OPTION_ENUM:
        ok = parse_enum(option, text, &value->u);
        break;
    case SBT_OPTION_BOOL:
        ok = parse_bool(text, &value->u);
        break;
    case SBT_OPTION_STRING:
        value->s = text;
        ok = true;
        break;
    }
    if (!ok && error_size > 0) {
        struct text t = {error, error + error_size};
        text_add(&t, who);
        text_add(&t, ": ");
        text_add(&t, complaint);
        text_add(&t, " '");
        text_add(&t, text);
        text_add(&t, "'");
        describe_legal(&t, option);
    }
    return ok;
}

static const struct sbt_option *owner_of(const char *entry) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        size_t n = strlen(sbt_option_table[i].env);
        if (strncmp(entry, sbt_option_table[i].env, n) == 0 && entry[n] == '=')
            return &sbt_option_table[i];
    }
    return NULL;
}

static void refuse_variable(const char *entry, char *error, size_t error_size) {
    if (error_size == 0)
        return;
    struct text t = {error, error + error_size};
    char name[64];
    size_t n = strcspn(entry, "=");
    n = n < sizeof name - 1 ? n : sizeof name - 1;
    memcpy(name, entry, n);
    name[n] = '\0';
    text_add(&t, name);
    text_add(&t, ": unknown variable (legal: ");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        text_add(&t, i == 0 ? "" : ", ");
        text_add(&t, sbt_option_table[i].env);
    }
    text_add(&t, ")");
}

bool sbt_options_load(struct sbt_options *options, char *const *envp, char *error, size_t error_size) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        options->value[i].s = NULL;
        if (option->default_text != NULL &&
            !sbt_option_parse(option, option->env, option->default_text, &options->value[i], error, error_size))
            return false;
    }
    for (; envp != NULL && *envp != NULL; envp++) {
        if (strncmp(*envp, "SUBUTAI_", 8) != 0)
            continue;
        const struct sbt_option *option = owner_of(*envp);
        if (option == NULL) {
            refuse_variable(*envp, error, error_size);
            return false;
        }
        const char *text = strchr(*envp, '=') + 1;
        if (*text != '\0' &&
            !sbt_option_parse(option, option->env, text, &options->value[option - sbt_option_table], error, error_size))
            return false;
    }
    return true;
}
