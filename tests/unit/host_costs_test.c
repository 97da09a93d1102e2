/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of costs: what is read, and each fault with the line that names it. */
#include "host_costs.h"
#include "lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "\"format\": \"subutai host costs\", \"version\": 1"
#define MACHINE "\"machine\": {\"cpu\": \"c\", \"kernel\": \"k\", \"libc\": \"l\", \"n_cpus\": 4, \"n_cores\": 2}"
#define MEASURED "\"measured\": {\"by\": \"b\", \"at\": \"a\", \"seconds\": 1.5, \"forced\": true}"

/* A legal file in which cost i is i + 1; with `key` (as "group.key") the text `value` stands there instead. */
static char *file_with(const char *key, const char *value, size_t *n) {
    char *text, name[128];
    FILE *file = open_memstream(&text, n);
    fprintf(file, "{" HEAD ",\n" MACHINE ",\n" MEASURED);
    for (size_t i = 0; i < sim_n_host_costs; i++) {
        const struct sim_host_cost *row = &sim_host_cost_table[i];
        bool first = i == 0 || strcmp(row->group, row[-1].group) != 0;
        fprintf(file, "%s", first ? i == 0 ? "" : "}" : "");
        fprintf(file, first ? ",\n\"%s\": {" : ",\n", row->group);
        snprintf(name, sizeof name, "%s.%s", row->group, row->key);
        if (key != NULL && strcmp(name, key) == 0)
            fprintf(file, "\"%s\": %s", row->key, value);
        else
            fprintf(file, "\"%s\": %zu", row->key, i + 1);
    }
    fprintf(file, "}}\n");
    fclose(file);
    return text;
}

static void ck_parses(const char *key, const char *value, struct sim_host_costs *costs) {
    char error[256] = "";
    size_t n;
    char *text = file_with(key, value, &n);
    int result = sim_host_costs_parse(text, n, costs, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    free(text);
}

static void ck_refuses(const char *text, size_t n, const char *line) {
    struct sim_host_costs costs;
    char error[256] = "";
    ck_assert_int_eq(sim_host_costs_parse(text, n, &costs, error, sizeof error), -1);
    ck_assert_str_eq(error, line);
}

static void ck_refuses_value(const char *key, const char *value, const char *line) {
    size_t n;
    char *text = file_with(key, value, &n);
    ck_refuses(text, n, line);
    free(text);
}

/* The legal file with the first `old` in it replaced. */
static void ck_refuses_text(const char *old, const char *new, const char *line) {
    size_t n;
    char *text = file_with(NULL, NULL, &n), *at = strstr(text, old), *changed;
    ck_assert_ptr_nonnull(at);
    ck_assert_int_ge(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)), 0);
    ck_refuses(changed, strlen(changed), line);
    free(changed);
    free(text);
}

TEST(each_row_reads_into_its_own_number) {
    struct sim_host_costs costs;
    ck_parses(NULL, NULL, &costs);
    for (size_t i = 0; i < sim_n_host_costs; i++)
        ck_assert_double_eq(*(double *)((char *)&costs + sim_host_cost_table[i].offset), (double)(i + 1));
    ck_assert_double_eq(costs.kernel.call_ns, 1);
    ck_assert_double_eq(costs.fiber_switch_ns, (double)sim_n_host_costs);
    ck_assert(costs.direct.mutex_ns == costs.glibc.mutex_ns + 11);
    ck_assert(costs.switching.join_ns + 1 == costs.fiber_switch_ns);
}

TEST(names_and_numbers_of_the_machine) {
    struct sim_host_costs costs;
    ck_parses(NULL, NULL, &costs);
    ck_assert_str_eq(costs.cpu_name, "c");
    ck_assert_str_eq(costs.kernel_name, "k");
    ck_assert_str_eq(costs.libc_name, "l");
    ck_assert_uint_eq(costs.n_cpus, 4);
    ck_assert_uint_eq(costs.n_cores, 2);
    ck_assert(costs.forced);
}

TEST(of_a_spread_the_median_is_read) {
    struct sim_host_costs costs;
    ck_parses("kernel.tick_ns", "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 4, \"max\": 9.5, \"n\": 7}", &costs);
    ck_assert_double_eq(costs.kernel.tick_ns, 4);
}

TEST(a_cache_level_may_be_absent) {
    struct sim_host_costs costs;
    ck_parses("caches.l3_bytes", "0", &costs);
    ck_assert_double_eq(costs.caches.l3_bytes, 0);
}

/* Files that were written before this cost was measured: it is the first of a line, with the comma before it. */
TEST(a_later_cost_may_be_missing) {
    struct sim_host_costs costs;
    char error[256] = "";
    size_t n;
    char *text = file_with(NULL, NULL, &n), *at = strstr(text, ",\n\"wake_remote_ns\""), *rest = strchr(at + 1, ',');
    memmove(at, rest, strlen(rest) + 1);
    ck_assert_msg(sim_host_costs_parse(text, strlen(text), &costs, error, sizeof error) == 0, "%s", error);
    ck_assert_double_eq(costs.kernel.wake_remote_ns, 0);
    ck_assert(costs.kernel.wake_idle_ns > 0);
    free(text);
}

/* Costs that not every kernel or machine has; none is the first of its group. */
TEST(a_cost_that_cannot_be_measured_may_be_missing) {
    static const char *const keys[] = {"interrupt_ns",  "idle_entry_ns",    "wake_soon_ns",      "latency_soon_ns",
                                       "wake_short_ns", "latency_short_ns", "line_after_work_ns"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct sim_host_costs costs;
        char error[256] = "", line[64];
        size_t n;
        snprintf(line, sizeof line, ",\n\"%s\"", keys[i]);
        char *text = file_with(NULL, NULL, &n), *at = strstr(text, line);
        ck_assert_ptr_nonnull(at);
        char *rest = at + 1 + strcspn(at + 1, ",}");
        memmove(at, rest, strlen(rest) + 1);
        ck_assert_msg(sim_host_costs_parse(text, strlen(text), &costs, error, sizeof error) == 0, "%s", error);
        bool found = false;
        for (size_t row = 0; row < sim_n_host_costs; row++) {
            const struct sim_host_cost *cost = &sim_host_cost_table[row];
            double value = *(double *)((char *)&costs + cost->offset);
            bool missing = strcmp(cost->key, keys[i]) == 0;
            ck_assert_double_eq(value, missing ? 0 : (double)(row + 1));
            found |= missing;
        }
        ck_assert(found);
        free(text);
    }
}

TEST(nonsense_in_a_number) {
    ck_refuses_value("glibc.mutex_ns", "-3", "'glibc.mutex_ns' is -3 (legal: 0.001 to 1e+09)");
    ck_refuses_value("glibc.mutex_ns", "0", "'glibc.mutex_ns' is 0 (legal: 0.001 to 1e+09)");
    ck_refuses_value("glibc.mutex_ns", "1e10", "'glibc.mutex_ns' is 1e+10 (legal: 0.001 to 1e+09)");
    ck_refuses_value("glibc.mutex_ns", "\"6\"",
                     "'glibc.mutex_ns' is a text (legal: a number, or an object with median, min, q1, q3, max and n)");
    ck_refuses_value("glibc.mutex_ns", "null",
                     "'glibc.mutex_ns' is null (legal: a number, or an object with median, min, q1, q3, max and n)");
    ck_refuses_value("glibc.mutex_ns", "[6]",
                     "'glibc.mutex_ns' is an array (legal: a number, or an object with median, min, q1, q3, max and "
                     "n)");
    ck_refuses_value("caches.l1d_bytes", "0", "'caches.l1d_bytes' is 0 (legal: 1 to 1.09951e+12)");
}

TEST(what_is_no_number_in_json_is_named_by_the_key_before_it) {
    ck_refuses_value("kernel.call_ns", "NaN", "line 4: invalid token near 'NaN', after 'call_ns'");
    ck_refuses_value("kernel.call_ns", "Infinity", "line 4: invalid token near 'Infinity', after 'call_ns'");
    ck_refuses_value("kernel.call_ns", "1e999", "line 4: real number overflow near '1e999', after 'call_ns'");
    ck_refuses_value("kernel.call_ns", "1, \"call_ns\": 2",
                     "line 4: duplicate object key near '\"call_ns\"', after 'call_ns'");
}

/* A machine that stood still for a second while it was measured. */
TEST(samples_of_a_stall_are_no_nonsense) {
    struct sim_host_costs costs;
    ck_parses("kernel.latency_idle_ns", "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 1.1e9, \"max\": 5e9, \"n\": 7}",
              &costs);
    ck_assert_double_eq(costs.kernel.latency_idle_ns, 4);
    ck_refuses_value("kernel.latency_idle_ns",
                     "{\"median\": 1.1e9, \"min\": 2, \"q1\": 3, \"q3\": 1.1e9, \"max\": 5e9, \"n\": 7}",
                     "'kernel.latency_idle_ns.median' is 1.1e+09 (legal: 0.001 to 1e+09)");
    ck_refuses_value("kernel.latency_idle_ns",
                     "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 5, \"max\": 1e16, \"n\": 7}",
                     "'kernel.latency_idle_ns.max' is 1e+16 (legal: 0.001 to 1e+15)");
}

TEST(nonsense_in_a_spread) {
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"min\": 2, \"q1\": 5, \"q3\": 6, \"max\": 9, \"n\": 7}",
                     "'core.atomic_ns.median' is 4, below 'q1' (legal: min, q1, median, q3, max in this order)");
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"min\": -2, \"q1\": 3, \"q3\": 6, \"max\": 9, \"n\": 7}",
                     "'core.atomic_ns.min' is -2 (legal: 0.001 to 1e+09)");
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 6, \"n\": 7}",
                     "'core.atomic_ns.max' is missing");
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 6, \"max\": 9}",
                     "'core.atomic_ns.n' is missing");
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"min\": 2, \"q1\": 3, \"q3\": 6, \"max\": 9, \"n\": 0}",
                     "'core.atomic_ns.n' is 0 (legal: 1 to 1e+15)");
    ck_refuses_value("core.atomic_ns", "{\"median\": 4, \"mean\": 4}", "'core.atomic_ns.mean' is unknown in version 1");
}

TEST(missing_and_unknown_keys) {
    ck_refuses_text("\"tick_ns\": ", "\"tock_ns\": ", "'kernel.tick_ns' is missing");
    ck_refuses_text("\"tick_ns\": ", "\"tock_ns\": 1, \"tick_ns\": ", "'kernel.tock_ns' is unknown in version 1");
    ck_refuses_text("\"memory\": ", "\"memories\": ", "'memory' is missing");
    ck_refuses_text("\"memory\": ", "\"remark\": 1, \"memory\": ", "'remark' is unknown in version 1");
    ck_refuses_text("\"memory\": {", "\"memory\": 3, \"m\": {", "'memory' is a number (legal: an object)");
    ck_refuses_text("\"n_cores\": 2", "\"n_core\": 2", "'machine.n_cores' is missing");
    ck_refuses_text("\"n_cores\": 2", "\"n_cores\": 5", "'machine.n_cores' is 5 (legal: 1 to 4)");
    ck_refuses_text("\"n_cores\": 2", "\"n_cores\": 1.5", "'machine.n_cores' is a number (legal: a whole number)");
    ck_refuses_text("\"cpu\": \"c\"", "\"cpu\": 5", "'machine.cpu' is a number (legal: a text)");
    ck_refuses_text("\"forced\": true", "\"forced\": 1", "'measured.forced' is a number (legal: true or false)");
    ck_refuses_text("\"forced\": true", "\"forced\": true, \"x\\ny\": 1", "'measured.x?y' is unknown in version 1");
}

TEST(another_version_or_another_file) {
    ck_refuses_text("\"version\": 1", "\"version\": 2", "'version' is 2 (legal: 1)");
    ck_refuses_text("\"version\": 1", "\"version\": \"1\"", "'version' is a text (legal: a whole number)");
    ck_refuses_text(", \"version\": 1", "", "'version' is missing");
    ck_refuses_text("subutai host costs", "costs", "'format' is \"costs\" (legal: \"subutai host costs\")");
    ck_refuses("[]", 2, "the file has an array (legal: an object, as 'subutai calibrate' writes it)");
    ck_refuses("{}", 2, "'format' is missing");
    ck_refuses("", 0, "line 1: unexpected token near end of file");
}

TEST(a_text_that_is_cut_anywhere_is_refused) {
    size_t n;
    char *text = file_with(NULL, NULL, &n), error[256];
    struct sim_host_costs costs;
    for (size_t i = 0; i < n - 2; i++) /* the last two are the closing bracket and the line break */
        ck_assert_int_eq(sim_host_costs_parse(text, i, &costs, error, sizeof error), -1);
    free(text);
}

TEST(a_long_name_is_refused) {
    char name[SIM_HOST_TEXT + 16] = "\"cpu\": \"";
    size_t n = strlen(name);
    memset(name + n, 'x', SIM_HOST_TEXT);
    name[n + SIM_HOST_TEXT] = '"';
    ck_refuses_text("\"cpu\": \"c\"", name, "'machine.cpu' has 128 bytes (legal: at most 127)");
    name[n + SIM_HOST_TEXT - 1] = '"';
    name[n + SIM_HOST_TEXT] = '\0';
    ck_refuses_text("\"cpu\": \"c\", \"kernel\": \"k\"", name, "'machine.kernel' is missing");
}

TEST(files_that_cannot_be_read) {
    struct sim_host_costs costs;
    char error[256];
    ck_assert_int_eq(sim_host_costs_read("/no/such/file", &costs, error, sizeof error), -1);
    ck_assert_str_eq(error, "No such file or directory");
    ck_assert_int_eq(sim_host_costs_read("/", &costs, error, sizeof error), -1);
    ck_assert_str_eq(error, "Is a directory");
    ck_assert_int_eq(sim_host_costs_read("/dev/zero", &costs, error, sizeof error), -1);
    ck_assert_str_eq(error, "the file has more than 1048576 bytes, so it is none of 'subutai calibrate'");
}

/* It is compiled in from sim/reference.costs; that file itself reads the same. */
TEST(reference_machine) {
    struct sim_host_costs ours = sim_host_costs_reference(), file;
    char error[256] = "";
    ck_assert_msg(sim_host_costs_read(REFERENCE, &file, error, sizeof error) == 0, "%s", error);
    for (size_t i = 0; i < sim_n_host_costs; i++) {
        size_t at = sim_host_cost_table[i].offset;
        ck_assert_double_eq(*(double *)((char *)&ours + at), *(double *)((char *)&file + at));
    }
    ck_assert(!ours.forced);
    ck_assert_uint_ge(ours.n_cpus, 1);
}
