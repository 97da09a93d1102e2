/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a subcommand's command line. getopt_long is not used: it accepts abbreviations, which turn into other options
 * when the table grows, and its complaints do not say what is legal.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_spec.h"

void settings_set(struct settings *settings, const struct sbt_option *option, const char *context, const char *text) {
    union sbt_option_value value;
    char error[512];
    if (!sbt_option_parse(option, option->name, text, &value, error, sizeof error))
        cmd_refuse("%s%s", context, error);
    settings->text[option - sbt_option_table] = text;
}

_Noreturn static void refuse_option(const struct args *args, const char *given) {
    char legal[1536];
    size_t n = 0;
    for (const struct own_option *o = args->command->options; o->name != NULL && n < sizeof legal; o++)
        n += (size_t)snprintf(legal + n, sizeof legal - n, "--%s, ", o->name);
    for (size_t i = 0; args->settings != NULL && i < SBT_N_OPTIONS && n < sizeof legal; i++) {
        const struct sbt_option *o = &sbt_option_table[i];
        n += (size_t)snprintf(legal + n, sizeof legal - n, "--%s, ", o->name);
        if (o->kind == SBT_OPTION_BOOL && n < sizeof legal)
            n += (size_t)snprintf(legal + n, sizeof legal - n, "--no-%s, ", o->name);
    }
    cmd_refuse("%s: unknown option '%s' (legal: %s--help)", args->command->name, given, n > 0 ? legal : "");
}

/* The value of the option just read: the text after '=', or the next word. */
static const char *take_value(struct args *args, const char *option, const char *attached, const char *metavar) {
    if (attached != NULL)
        return attached;
    if (args->at >= args->argc)
        cmd_refuse("%s: %s needs a value (%s)", args->command->name, option, metavar);
    return args->argv[args->at++];
}

/* The same for an option of a subcommand's own, which checks its values itself; but no file has an empty name. */
static const char *take_own_value(struct args *args, const struct own_option *option, const char *word,
                                  const char *attached) {
    const char *value = take_value(args, word, attached, option->metavar);
    if (strcmp(option->metavar, "FILE") == 0 && value[0] == '\0')
        cmd_refuse("%s: --%s: '' is not a legal value (legal: a file name)", args->command->name, option->name);
    return value;
}

static bool library_option(struct args *args, const char *word, const char *name, const char *attached) {
    const struct sbt_option *option = sbt_option_find(name);
    char context[64];
    snprintf(context, sizeof context, "%s: ", args->command->name);
    if (option != NULL) {
        /* An option that may come without a value takes an attached value only: --stats=json. */
        const char *text = option->bare_text != NULL && attached == NULL
                               ? option->bare_text
                               : take_value(args, word, attached, option->metavar);
        if (option == &sbt_option_table[SBT_OPT_ENGINE])
            engine_spec_set(args, text);
        else
            settings_set(args->settings, option, context, text);
        return true;
    }
    if (strncmp(name, "no-", 3) != 0 || (option = sbt_option_find(name + 3)) == NULL || option->kind != SBT_OPTION_BOOL)
        return false;
    if (attached != NULL)
        cmd_refuse("%s: --%s takes no value", args->command->name, name);
    settings_set(args->settings, option, context, "0");
    return true;
}

static int own_option(struct args *args, const char *word, const char *name, const char *attached) {
    const struct own_option *table = args->command->options;
    for (int i = 0; table[i].name != NULL; i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        if (table[i].metavar != NULL)
            args->value = take_own_value(args, &table[i], word, attached);
        else if (attached != NULL)
            cmd_refuse("%s: --%s takes no value", args->command->name, name);
        return i;
    }
    return ARGS_END;
}

static int short_option(struct args *args, const char *word) {
    const struct own_option *table = args->command->options;
    for (int i = 0; table[i].name != NULL; i++) {
        if (table[i].letter == 0 || table[i].letter != word[1])
            continue;
        if (table[i].metavar != NULL)
            args->value = take_own_value(args, &table[i], word, word[2] != '\0' ? word + 2 : NULL);
        else if (word[2] != '\0')
            break;
        return i;
    }
    refuse_option(args, word);
}

int args_next(struct args *args) {
    while (args->at < args->argc) {
        char *word = args->argv[args->at];
        bool is_option = word[0] == '-' && word[1] != '\0' && !args->operands_only;
        args->value = NULL;
        if (!is_option) {
            if (args->command->runs_program)
                return ARGS_END;
            args->at++;
            args->value = word;
            return ARGS_OPERAND;
        }
        args->at++;
        if (strcmp(word, "--") == 0) {
            args->operands_only = true;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help_command(args->command);
            exit(CMD_OK);
        }
        if (word[1] != '-')
            return short_option(args, word);

        char name[64];
        size_t n = strcspn(word + 2, "=");
        const char *attached = word[2 + n] == '=' ? word + 2 + n + 1 : NULL;
        if (n >= sizeof name)
            refuse_option(args, word);
        memcpy(name, word + 2, n);
        name[n] = '\0';
        int own = own_option(args, word, name, attached);
        if (own >= 0)
            return own;
        if (args->settings == NULL || !library_option(args, word, name, attached))
            refuse_option(args, word);
    }
    return ARGS_END;
}

uint64_t args_uint(const struct args *args, const char *what, const char *text, uint64_t min, uint64_t max) {
    char *end;
    errno = 0;
    unsigned long long u = strtoull(text, &end, 10);
    /* strtoull accepts leading blanks and signs; here a number starts with a digit. */
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || u < min || u > max)
        cmd_refuse("%s: %s: '%s' is not a legal value (legal: %ju to %ju)", args->command->name, what, text,
                   (uintmax_t)min, (uintmax_t)max);
    return u;
}

int64_t args_seconds_ns(const struct args *args, const char *what, const char *text, double max) {
    char *end;
    double seconds = strtod(text, &end);
    if (strspn(text, "0123456789.") != strlen(text) || end == text || *end != '\0' || seconds * 1e9 < 1 ||
        seconds > max)
        cmd_refuse("%s: %s: '%s' is not a legal value (legal: seconds above 0, at most %g)", args->command->name, what,
                   text, max);
    return (int64_t)(seconds * 1e9);
}

size_t args_uint_list(const struct args *args, const char *what, const char *text, uint64_t min, uint64_t max,
                      uint64_t *list, size_t n_max) {
    size_t count = 0;
    char *copy = cmd_format("%s", text), *rest = copy, *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        if (count == n_max)
            cmd_refuse("%s: %s: more than %zu values", args->command->name, what, n_max);
        list[count++] = args_uint(args, what, item, min, max);
    }
    free(copy);
    return count;
}
