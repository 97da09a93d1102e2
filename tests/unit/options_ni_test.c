/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of the engine ni: their kinds, the order of their enums, what they default to and where they end. */
#include "options_check.h"

#include <stdio.h>

static const struct sbt_option grid = {"grid", "SUBUTAI_GRID", SBT_OPTION_MESH, "8x8",     1,    32,
                                       NULL,   NULL,           "WxH",           "how big", NULL, NULL};
static const struct sbt_option map = {"map", "SUBUTAI_MAP", SBT_OPTION_MAP, "linear", 0,    0,
                                      NULL,  NULL,          "MAP",          "where",  NULL, NULL};

TEST(mesh_is_two_numbers) {
    check_value(&grid, "8x8", 8 << 16 | 8);
    check_value(&grid, "1x32", 1 << 16 | 32);
    check_value(&grid, "32x1", 32 << 16 | 1);
    check_value(&grid, "04x2", 4 << 16 | 2);
}

TEST(mesh_refuses_the_rest) {
    /* 65536 and 65537 are 0 and 1 to a parser that keeps 16 bits of each, 4294967297 is 1 to one that keeps 32. */
    static const char *const outside[] = {"0x8", "8x0", "33x8", "8x33", "65535x65535"};
    static const char *const wrong[] = {
        "",     "8",    "x",     "8x",      "x8",      "8x8x8",       "8X8",          "8*8",
        " 8x8", "8x8 ", "8 x 8", "-8x8",    "8x-8",    "axb",         "65537x8",      "8x65537",
        "8xx8", "0x",   "8,8",   "65536x1", "1x65536", "000000008x8", "1x4294967297", "1x18446744073709551617"};
    char line[128];
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        snprintf(line, sizeof line, "grid: value out of range '%s' (legal: WxH, each 1 to 32)", outside[i]);
        check_refused(&grid, "grid", outside[i], line);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "grid: not a mesh: '%s' (legal: WxH, each 1 to 32)", wrong[i]);
        check_refused(&grid, "grid", wrong[i], line);
    }
}

TEST(map_is_the_text_itself) {
    static const char *const right[] = {"linear",    "random",       "random:0",    "random:18446744073709551599",
                                        "file:/a/b", "file:a b,c:d", "file:linear", "file: "};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        union sbt_option_value value = {.s = NULL};
        ck_assert_msg(sbt_option_parse(&map, "map", right[i], &value, error, sizeof error), "%s", error);
        ck_assert_ptr_eq(value.s, right[i]);
    }
}

TEST(map_refuses_the_rest) {
    static const char *const wrong[] = {"",
                                        "linear:",
                                        "linear:1",
                                        "Linear",
                                        "linear ",
                                        "random:",
                                        "random:x",
                                        "random:-1",
                                        "random: 1",
                                        "random:1 ",
                                        "random1",
                                        "rand",
                                        "file",
                                        "file:",
                                        "/tmp/map",
                                        "random:1:2",
                                        "round",
                                        "0 1 2",
                                        "random:18446744073709551617"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128];
        snprintf(line, sizeof line, "map: unknown value '%s' (legal: linear, random, random:SEED, file:PATH)",
                 wrong[i]);
        check_refused(&map, "map", wrong[i], line);
    }
}

TEST(enums_are_in_the_order_of_their_ids) {
    ck_assert_str_eq(sbt_option_table[SBT_OPT_NI_SERVICE].legal[SBT_NI_SERVICE_DEDICATED], "dedicated");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_NI_SERVICE].legal[SBT_NI_SERVICE_INLINE], "inline");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_CONTROL_FULL].legal[SBT_CONTROL_FULL_EVICT], "evict");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_CONTROL_FULL].legal[SBT_CONTROL_FULL_SOFTWARE], "software");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_QUEUE_FULL].legal[SBT_QUEUE_FULL_HOLD], "hold");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_QUEUE_FULL].legal[SBT_QUEUE_FULL_AGAIN], "again");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_STATS].legal[SBT_STATS_OFF], "off");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_STATS].legal[SBT_STATS_TEXT], "text");
    ck_assert_str_eq(sbt_option_table[SBT_OPT_STATS].legal[SBT_STATS_JSON], "json");
}

/* The values of options that are not given, and where the engine's numbers end. */
TEST(ni_defaults_and_limits) {
    static const struct {
        enum sbt_option_id id;
        uint64_t value;
        const char *lowest, *highest, *below, *above;
    } expected[] = {
        {SBT_OPT_MESH, 8 << 16 | 8, "1x1", "32x32", "0x1", "32x33"},
        {SBT_OPT_NI_SERVICE, SBT_NI_SERVICE_DEDICATED, "dedicated", "inline", "", "both"},
        {SBT_OPT_NI_THREADS, 0, "0", "64", "-1", "65"},
        {SBT_OPT_TIME_SCALE, 0, "0", "1000000", "-1", "1000001"},
        {SBT_OPT_CONTROL_ELEMENTS, 4, "1", "256", "0", "257"},
        {SBT_OPT_QUEUE_ELEMENTS, 122, "1", "16000", "0", "16001"},
        {SBT_OPT_CONTROL_FULL, SBT_CONTROL_FULL_EVICT, "evict", "software", "", "again"},
        {SBT_OPT_QUEUE_FULL, SBT_QUEUE_FULL_HOLD, "hold", "again", "", "evict"},
        {SBT_OPT_STRICT_PAPER, 0, "0", "1", "-1", "2"},
        {SBT_OPT_DATA_LOAD, 0, "0", "900", "-1", "901"},
        {SBT_OPT_QOS, SBT_QOS_CONTROL, "control", "none", "", "data"},
        {SBT_OPT_NETWORK, SBT_NETWORK_MESH, "mesh", "atac", "", "optical"},
        {SBT_OPT_STATS, SBT_STATS_OFF, "off", "json", "", "xml"},
    };
    struct sbt_options options;
    ck_assert(sbt_options_load(&options, NULL, error, sizeof error));
    ck_assert_str_eq(options.value[SBT_OPT_MAP].s, "linear");
    ck_assert_ptr_null(options.value[SBT_OPT_STATS_FILE].s);
    ck_assert_ptr_null(options.value[SBT_OPT_REQUESTS].s);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct sbt_option *option = &sbt_option_table[expected[i].id];
        union sbt_option_value value;
        ck_assert_str_eq(option->engine, "ni");
        ck_assert_uint_eq(options.value[expected[i].id].u, expected[i].value);
        ck_assert(sbt_option_parse(option, "", expected[i].lowest, &value, error, sizeof error));
        ck_assert(sbt_option_parse(option, "", expected[i].highest, &value, error, sizeof error));
        ck_assert(!sbt_option_parse(option, "", expected[i].below, &value, error, sizeof error));
        ck_assert(!sbt_option_parse(option, "", expected[i].above, &value, error, sizeof error));
    }
}

TEST(load_reads_the_engine_ni) {
    char *envp[] = {"SUBUTAI_ENGINE=ni",          "SUBUTAI_MESH=4x2",          "SUBUTAI_MAP=file:tiles",
                    "SUBUTAI_NI_SERVICE=inline",  "SUBUTAI_NI_THREADS=3",      "SUBUTAI_TIME_SCALE=100",
                    "SUBUTAI_CONTROL_ELEMENTS=5", "SUBUTAI_QUEUE_ELEMENTS=50", "SUBUTAI_CONTROL_FULL=software",
                    "SUBUTAI_QUEUE_FULL=again",   "SUBUTAI_STRICT_PAPER=yes",  "SUBUTAI_DATA_LOAD=300",
                    "SUBUTAI_QOS=none",           "SUBUTAI_NETWORK=atac",      "SUBUTAI_STATS=json",
                    "SUBUTAI_STATS_FILE=/x",      "SUBUTAI_REQUESTS=/y",       NULL};
    struct sbt_options options;
    ck_assert_msg(sbt_options_load(&options, envp, error, sizeof error), "%s", error);
    ck_assert_uint_eq(options.value[SBT_OPT_ENGINE].u, SBT_ENGINE_NI);
    ck_assert_uint_eq(options.value[SBT_OPT_MESH].u, 4 << 16 | 2);
    ck_assert_str_eq(options.value[SBT_OPT_MAP].s, "file:tiles");
    ck_assert_uint_eq(options.value[SBT_OPT_NI_SERVICE].u, SBT_NI_SERVICE_INLINE);
    ck_assert_uint_eq(options.value[SBT_OPT_NI_THREADS].u, 3);
    ck_assert_uint_eq(options.value[SBT_OPT_TIME_SCALE].u, 100);
    ck_assert_uint_eq(options.value[SBT_OPT_CONTROL_ELEMENTS].u, 5);
    ck_assert_uint_eq(options.value[SBT_OPT_QUEUE_ELEMENTS].u, 50);
    ck_assert_uint_eq(options.value[SBT_OPT_CONTROL_FULL].u, SBT_CONTROL_FULL_SOFTWARE);
    ck_assert_uint_eq(options.value[SBT_OPT_QUEUE_FULL].u, SBT_QUEUE_FULL_AGAIN);
    ck_assert_uint_eq(options.value[SBT_OPT_STRICT_PAPER].u, 1);
    ck_assert_uint_eq(options.value[SBT_OPT_DATA_LOAD].u, 300);
    ck_assert_uint_eq(options.value[SBT_OPT_QOS].u, SBT_QOS_NONE);
    ck_assert_uint_eq(options.value[SBT_OPT_NETWORK].u, SBT_NETWORK_ATAC);
    ck_assert_uint_eq(options.value[SBT_OPT_STATS].u, SBT_STATS_JSON);
    ck_assert_str_eq(options.value[SBT_OPT_STATS_FILE].s, "/x");
    ck_assert_str_eq(options.value[SBT_OPT_REQUESTS].s, "/y");
}
