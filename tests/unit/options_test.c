/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options: every kind of value, the exact text of every refusal, what the environment may hold, and that an error
 * buffer of any size is filled to its end and not beyond. The table itself is checked for what its users rely on.
 */
#include "options_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const colours[] = {"red", "green", NULL};
static const char *const colours_help[] = {"like a rose", "like grass"};

static const struct sbt_option number = {
    "count", "SUBUTAI_COUNT", SBT_OPTION_UINT, "7", 5, 20, NULL, NULL, "N", "how many", NULL, NULL};
static const struct sbt_option colour = {"colour", "SUBUTAI_COLOUR", SBT_OPTION_ENUM, "red",   0,    0,
                                         colours,  colours_help,     "NAME",          "which", NULL, NULL};
static const struct sbt_option toggle = {"flag", "SUBUTAI_FLAG", SBT_OPTION_BOOL, "0",       0,    1,
                                         NULL,   NULL,           "0|1",           "whether", NULL, NULL};
static const struct sbt_option text = {
    "text", "SUBUTAI_TEXT", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "TEXT", "what", NULL, NULL};

/* ---- kinds ---- */
TEST(uint_takes_its_range) {
    check_value(&number, "5", 5);
    check_value(&number, "20", 20);
    check_value(&number, "007", 7);
}

TEST(uint_refuses_the_rest) {
    check_refused(&number, "count", "4", "count: value out of range '4' (legal: 5 to 20)");
    check_refused(&number, "count", "21", "count: value out of range '21' (legal: 5 to 20)");
    check_refused(&number, "count", "0", "count: value out of range '0' (legal: 5 to 20)");
    check_refused(&number, "SUBUTAI_COUNT", "", "SUBUTAI_COUNT: not a number: '' (legal: 5 to 20)");
    check_refused(&number, "count", "six", "count: not a number: 'six' (legal: 5 to 20)");
    check_refused(&number, "count", "-6", "count: value out of range '-6' (legal: 5 to 20)");
    check_refused(&number, "count", "-", "count: not a number: '-' (legal: 5 to 20)");
    check_refused(&number, "count", "--6", "count: not a number: '--6' (legal: 5 to 20)");
    check_refused(&number, "count", "12345678901234567890123",
                  "count: value out of range '12345678901234567890123' (legal: 5 to 20)");
    check_refused(&number, "count", "+6", "count: not a number: '+6' (legal: 5 to 20)");
    check_refused(&number, "count", " 6", "count: not a number: ' 6' (legal: 5 to 20)");
    check_refused(&number, "count", "6 ", "count: not a number: '6 ' (legal: 5 to 20)");
    check_refused(&number, "count", "0x6", "count: not a number: '0x6' (legal: 5 to 20)");
    check_refused(&number, "count", "6.0", "count: not a number: '6.0' (legal: 5 to 20)");
}

/* 2^64 + 6 is 6 to a parser that wraps round. */
TEST(uint_does_not_wrap) {
    static const char *const huge[] = {"18446744073709551622", "18446744073709551616", "99999999999999999999",
                                       "100000000000000000000000000000006"};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        union sbt_option_value value;
        ck_assert(!sbt_option_parse(&number, "count", huge[i], &value, error, sizeof error));
        ck_assert_ptr_nonnull(strstr(error, huge[i]));
        ck_assert_ptr_nonnull(strstr(error, "(legal: 5 to 20)"));
    }
}

TEST(uint_bounds_are_printed_whole) {
    const struct sbt_option wide = {
        "wide", "SUBUTAI_WIDE", SBT_OPTION_UINT, "1", 1, 18446744073709551615u, NULL, NULL, "N", "wide", NULL, NULL};
    check_refused(&wide, "wide", "0", "wide: value out of range '0' (legal: 1 to 18446744073709551615)");
    check_value(&wide, "1000000000000000000", 1000000000000000000u);
}

TEST(enum_is_the_index) {
    check_value(&colour, "red", 0);
    check_value(&colour, "green", 1);
}

TEST(enum_refuses_the_rest) {
    check_refused(&colour, "colour", "blue", "colour: unknown value 'blue' (legal: red, green)");
    check_refused(&colour, "colour", "", "colour: unknown value '' (legal: red, green)");
    check_refused(&colour, "colour", "Red", "colour: unknown value 'Red' (legal: red, green)");
    check_refused(&colour, "colour", "re", "colour: unknown value 're' (legal: red, green)");
    check_refused(&colour, "SUBUTAI_COLOUR", "red ", "SUBUTAI_COLOUR: unknown value 'red ' (legal: red, green)");
    check_refused(&colour, "colour", "0", "colour: unknown value '0' (legal: red, green)");
}

TEST(bool_takes_eight_words) {
    static const char *const no[] = {"0", "no", "off", "false"}, *const yes[] = {"1", "yes", "on", "true"};
    for (size_t i = 0; i < 4; i++) {
        check_value(&toggle, no[i], 0);
        check_value(&toggle, yes[i], 1);
    }
}

TEST(bool_refuses_the_rest) {
    static const char *const wrong[] = {"2", "", "y", "True", "enabled", "00"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128];
        snprintf(line, sizeof line, "flag: unknown value '%s' (legal: 0, 1, no, yes, off, on, false, true)", wrong[i]);
        check_refused(&toggle, "flag", wrong[i], line);
    }
}

TEST(string_is_the_text_itself) {
    static const char *const any[] = {"a", " ", "with space", "'quoted'", "100"};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        union sbt_option_value value = {.s = NULL};
        ck_assert(sbt_option_parse(&text, "text", any[i], &value, error, sizeof error));
        ck_assert_ptr_eq(value.s, any[i]);
    }
    check_refused(&text, "text", "", "text: unknown value '' (legal: a file name)");
}

/* ---- the error buffer ---- */
TEST(error_is_cut_at_every_size) {
    static const char whole[] = "colour: unknown value 'blue' (legal: red, green)";
    for (size_t size = 0; size <= sizeof whole + 4; size++) {
        union sbt_option_value value;
        char buffer[sizeof whole + 16];
        memset(buffer, '#', sizeof buffer);
        ck_assert(!sbt_option_parse(&colour, "colour", "blue", &value, buffer, size));
        size_t expected = size == 0 ? 0 : size - 1 < strlen(whole) ? size - 1 : strlen(whole);
        ck_assert(memcmp(buffer, whole, expected) == 0);
        if (size > 0)
            ck_assert_int_eq(buffer[expected], '\0');
        for (size_t i = size; i < sizeof buffer; i++)
            ck_assert_int_eq(buffer[i], '#');
    }
}

TEST(long_value_is_cut_with_its_line) {
    char value_text[1000], small[40];
    union sbt_option_value value;
    memset(value_text, 'x', sizeof value_text - 1);
    value_text[sizeof value_text - 1] = '\0';
    ck_assert(!sbt_option_parse(&colour, "colour", value_text, &value, small, sizeof small));
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    ck_assert(strncmp(small, "colour: unknown value 'xxx", 26) == 0);
}

/* The line of an unknown variable goes through another path. */
TEST(unknown_variable_is_cut_at_every_size) {
    char *envp[] = {"SUBUTAI_NONSENSE=1", NULL};
    struct sbt_options options;
    char whole[1024];
    ck_assert(!sbt_options_load(&options, envp, whole, sizeof whole));
    for (size_t size = 0; size <= strlen(whole) + 4; size++) {
        char buffer[1100];
        memset(buffer, '#', sizeof buffer);
        ck_assert(!sbt_options_load(&options, envp, buffer, size));
        size_t expected = size == 0 ? 0 : size - 1 < strlen(whole) ? size - 1 : strlen(whole);
        ck_assert(memcmp(buffer, whole, expected) == 0);
        if (size > 0)
            ck_assert_int_eq(buffer[expected], '\0');
        for (size_t i = size; i < sizeof buffer; i++)
            ck_assert_int_eq(buffer[i], '#');
    }
}

/* The library says it in a line of 1024 bytes with "subutai: " in front, whatever the name was. */
TEST(unknown_variable_fits_the_log) {
    char name[200], whole[1024];
    char *envp[] = {name, NULL};
    struct sbt_options options;
    memset(name, 'X', sizeof name);
    memcpy(name, "SUBUTAI_", 8);
    memcpy(name + sizeof name - 3, "=1", 3);
    ck_assert(!sbt_options_load(&options, envp, whole, sizeof whole));
    ck_assert_uint_lt(strlen(whole) + strlen("subutai: \n"), 1024);
    ck_assert_int_eq(whole[strlen(whole) - 1], ')');
}

/* ---- the table ---- */
TEST(table_is_consistent) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        union sbt_option_value value;
        char env[64] = "SUBUTAI_";
        ck_assert_ptr_nonnull(option->name);
        for (size_t k = 0; option->name[k] != '\0'; k++) {
            env[8 + k] = option->name[k] == '-' ? '_' : (char)toupper((unsigned char)option->name[k]);
            env[9 + k] = '\0';
        }
        ck_assert_str_eq(option->env, env);
        ck_assert_ptr_nonnull(option->metavar);
        ck_assert_ptr_nonnull(option->help);
        ck_assert_ptr_null(strchr(option->help, '\n'));
        ck_assert_int_ne(option->help[strlen(option->help) - 1], '.');
        if (option->default_text != NULL)
            ck_assert_msg(sbt_option_parse(option, option->name, option->default_text, &value, error, sizeof error),
                          "default: %s", error);
        else
            ck_assert_int_eq(option->kind, SBT_OPTION_STRING); /* the others have no value that means unset */
        if (option->kind == SBT_OPTION_UINT || option->kind == SBT_OPTION_MESH)
            ck_assert_uint_le(option->min, option->max);
        if (option->engine != NULL)
            ck_assert_msg(sbt_option_parse(&sbt_option_table[SBT_OPT_ENGINE], option->name, option->engine, &value,
                                           error, sizeof error),
                          "engine: %s", error);
        if (option->bare_text != NULL)
            ck_assert_msg(sbt_option_parse(option, option->name, option->bare_text, &value, error, sizeof error),
                          "alone: %s", error);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(option->name, sbt_option_table[k].name);
    }
}

TEST(enums_describe_every_value) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        if (option->kind != SBT_OPTION_ENUM)
            continue;
        ck_assert_ptr_nonnull(option->legal);
        ck_assert_ptr_nonnull(option->legal_help);
        for (size_t k = 0; option->legal[k] != NULL; k++) {
            ck_assert_ptr_nonnull(option->legal_help[k]);
            check_value(option, option->legal[k], k);
        }
    }
}

TEST(engines_are_in_the_order_of_their_ids) {
    const char *const *legal = sbt_option_table[SBT_OPT_ENGINE].legal;
    ck_assert_str_eq(legal[SBT_ENGINE_GLIBC], "glibc");
    ck_assert_str_eq(legal[SBT_ENGINE_DIRECT], "direct");
    ck_assert_str_eq(legal[SBT_ENGINE_NI], "ni");
    ck_assert_str_eq(legal[SBT_ENGINE_DET], "det");
    ck_assert_ptr_null(legal[SBT_N_ENGINES]);
}

TEST(find_knows_names_only) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        ck_assert_ptr_eq(sbt_option_find(sbt_option_table[i].name), &sbt_option_table[i]);
    ck_assert_ptr_null(sbt_option_find(""));
    ck_assert_ptr_null(sbt_option_find("engin"));
    ck_assert_ptr_null(sbt_option_find("engine "));
    ck_assert_ptr_null(sbt_option_find("--engine"));
    ck_assert_ptr_null(sbt_option_find("SUBUTAI_ENGINE"));
}

/* ---- the environment ---- */
static void check_defaults(const struct sbt_options *options) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        union sbt_option_value value = {.s = NULL};
        if (option->default_text != NULL)
            ck_assert(sbt_option_parse(option, option->name, option->default_text, &value, error, sizeof error));
        if (option->kind == SBT_OPTION_STRING || option->kind == SBT_OPTION_MAP || option->kind == SBT_OPTION_LOCKS)
            ck_assert_pstr_eq(options->value[i].s, value.s);
        else
            ck_assert_uint_eq(options->value[i].u, value.u);
    }
}

TEST(load_without_variables_gives_defaults) {
    char *none[] = {NULL}, *foreign[] = {"PATH=/bin", "SUBUTAI=1", "XSUBUTAI_ENGINE=glibc", "subutai_engine=x", NULL};
    char *const *environments[] = {none, foreign, NULL};
    for (size_t i = 0; i < 3; i++) {
        struct sbt_options options;
        memset(&options, 0xff, sizeof options);
        ck_assert(sbt_options_load(&options, environments[i], error, sizeof error));
        check_defaults(&options);
    }
}

TEST(load_takes_empty_as_unset) {
    char *envp[] = {"SUBUTAI_ENGINE=", "SUBUTAI_VERBOSE=", "SUBUTAI_CHILDREN=", "SUBUTAI_LOG=", NULL};
    struct sbt_options options;
    ck_assert(sbt_options_load(&options, envp, error, sizeof error));
    check_defaults(&options);
}

TEST(load_reads_every_kind) {
    char *envp[] = {"HOME=/", "SUBUTAI_ENGINE=glibc", "SUBUTAI_VERBOSE=3", "SUBUTAI_CHILDREN=off", "SUBUTAI_LOG=a=b",
                    NULL};
    struct sbt_options options;
    ck_assert(sbt_options_load(&options, envp, error, sizeof error));
    ck_assert_uint_eq(options.value[SBT_OPT_ENGINE].u, SBT_ENGINE_GLIBC);
    ck_assert_uint_eq(options.value[SBT_OPT_VERBOSE].u, 3);
    ck_assert_uint_eq(options.value[SBT_OPT_CHILDREN].u, 0);
    ck_assert_str_eq(options.value[SBT_OPT_LOG].s, "a=b"); /* only the first = divides */
    ck_assert_ptr_eq(options.value[SBT_OPT_LOG].s, envp[4] + strlen("SUBUTAI_LOG="));
}

TEST(load_names_the_variable_it_refuses) {
    char *engine[] = {"SUBUTAI_ENGINE=foo", NULL}, *verbose[] = {"SUBUTAI_VERBOSE=4", NULL};
    char *children[] = {"SUBUTAI_CHILDREN=maybe", NULL}, *mesh[] = {"SUBUTAI_MESH=8", NULL};
    char *tiles[] = {"SUBUTAI_MAP=rows", NULL};
    struct sbt_options options;
    ck_assert(!sbt_options_load(&options, engine, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_ENGINE: unknown value 'foo' (legal: glibc, direct, ni, det)");
    ck_assert(!sbt_options_load(&options, verbose, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_VERBOSE: value out of range '4' (legal: 0 to 3)");
    ck_assert(!sbt_options_load(&options, children, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_CHILDREN: unknown value 'maybe' (legal: 0, 1, no, yes, off, on, false, true)");
    ck_assert(!sbt_options_load(&options, mesh, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_MESH: not a mesh: '8' (legal: WxH, each 1 to 32)");
    ck_assert(!sbt_options_load(&options, tiles, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_MAP: unknown value 'rows' (legal: linear, random, random:SEED, file:PATH)");
}

TEST(load_refuses_unknown_variables) {
    static char *const unknown[] = {"SUBUTAI_NONSENSE=1", "SUBUTAI_ENGINES=glibc", "SUBUTAI_ENGIN=glibc",
                                    "SUBUTAI_=",          "SUBUTAI_engine=glibc",  "SUBUTAI_ENGINE"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char *envp[] = {"A=1", unknown[i], NULL};
        char line[1024] = "";
        struct sbt_options options;
        ck_assert_msg(!sbt_options_load(&options, envp, error, sizeof error), "takes %s", unknown[i]);
        strncat(line, unknown[i], strcspn(unknown[i], "="));
        strcat(line, ": unknown variable (legal: ");
        for (size_t k = 0; k < SBT_N_OPTIONS; k++) {
            strcat(line, k == 0 ? "" : ", ");
            strcat(line, sbt_option_table[k].env);
        }
        strcat(line, ")");
        ck_assert(strncmp(error, line, sizeof error - 1) == 0);
    }
}

TEST(load_reports_the_first_error) {
    char *envp[] = {"SUBUTAI_VERBOSE=9", "SUBUTAI_ENGINE=foo", "SUBUTAI_NONSENSE=1", NULL};
    struct sbt_options options;
    ck_assert(!sbt_options_load(&options, envp, error, sizeof error));
    ck_assert_str_eq(error, "SUBUTAI_VERBOSE: value out of range '9' (legal: 0 to 3)");
}

/* A name longer than any that is legal must not overrun the place where the line is put together. */
TEST(load_survives_a_long_unknown_name) {
    char name[500];
    char *envp[] = {name, NULL};
    struct sbt_options options;
    memset(name, 'X', sizeof name);
    memcpy(name, "SUBUTAI_", 8);
    memcpy(name + sizeof name - 3, "=1", 3);
    ck_assert(!sbt_options_load(&options, envp, error, sizeof error));
    ck_assert(strncmp(error, "SUBUTAI_XXXX", 12) == 0);
    ck_assert_ptr_nonnull(strstr(error, ": unknown variable (legal: SUBUTAI_"));
}
