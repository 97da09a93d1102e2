/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file of costs, and the table for people. */
#include <string.h>
#include <time.h>

#include "calibrate.h"
#include "command.h"
#include "json_file.h"
#include "stats.h"
#include "table.h"

/* Digits beyond the spread would say nothing. */
enum { N_DIGITS = 6 };

/* What the kernel tells was not measured: it is a plain number. */
static bool is_told(const struct sim_host_cost *row) {
    return strcmp(row->group, "caches") == 0;
}

static void put_cost(struct json *j, const struct sim_host_cost *row, const struct cost_samples *samples) {
    struct stats s = stats_of(samples->value, samples->n);
    json_line(j);
    if (is_told(row)) {
        json_uint(j, row->key, (uint64_t)s.median);
        return;
    }
    json_open(j, row->key, '{');
    json_significant(j, "median", s.median, N_DIGITS);
    json_significant(j, "min", s.min, N_DIGITS);
    json_significant(j, "q1", s.q1, N_DIGITS);
    json_significant(j, "q3", s.q3, N_DIGITS);
    json_significant(j, "max", s.max, N_DIGITS);
    json_uint(j, "n", samples->n);
    json_close(j, '}');
}

static void put_head(struct json *j, const struct calibration *c) {
    char at[32];
    time_t seconds = (time_t)c->at;
    struct tm utc;
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    json_text(j, "format", SIM_HOST_COSTS_FORMAT);
    json_int(j, "version", SIM_HOST_COSTS_VERSION);
    json_line(j);
    json_open(j, "machine", '{');
    json_text(j, "cpu", c->cpu_name);
    json_text(j, "kernel", c->kernel_name);
    json_text(j, "libc", c->libc_name);
    json_uint(j, "n_cpus", c->n_cpus);
    json_uint(j, "n_cores", c->n_cores);
    json_close(j, '}');
    json_line(j);
    json_open(j, "measured", '{');
    json_text(j, "by", "subutai " SUBUTAI_VERSION);
    json_text(j, "at", at);
    json_real(j, "seconds", c->took_s, 1);
    json_bool(j, "forced", c->forced);
    json_real(j, "busy_share", c->busy.others, 4);
    json_real(j, "stolen_share", c->busy.stolen, 4);
    json_close(j, '}');
}

char *calibrate_text(const struct calibration *c, size_t *n) {
    char *text = NULL, error[256];
    struct sim_host_costs costs;
    FILE *memory = open_memstream(&text, n);
    if (memory == NULL)
        cmd_refuse("out of memory");
    struct json j = json_on(memory);
    json_open(&j, NULL, '{');
    put_head(&j, c);
    for (size_t i = 0; i < sim_n_host_costs; i++) {
        const struct sim_host_cost *row = &sim_host_cost_table[i];
        if (i == 0 || strcmp(row->group, row[-1].group) != 0) {
            json_line(&j);
            json_open(&j, row->group, '{');
        }
        if (c->samples[i].n > 0) /* an optional cost has none on some kernels */
            put_cost(&j, row, &c->samples[i]);
        if (i + 1 == sim_n_host_costs || strcmp(row->group, row[1].group) != 0)
            json_close(&j, '}');
    }
    json_close(&j, '}');
    json_end(&j);
    if (fclose(memory) != 0)
        cmd_refuse("out of memory");
    if (sim_host_costs_parse(text, *n, &costs, error, sizeof error) != 0)
        cmd_refuse("calibrate: what was measured makes no sense: %s", error);
    return text;
}

static void add_number(struct table *t, double value) {
    table_add(t, value < 1000 ? "%.2f" : "%.0f", value);
}

void calibrate_table(const struct calibration *c, FILE *out) {
    struct table t = {.n_columns = 8, .alignment = "lrrrrrrl"};
    static const char *const headings[] = {"cost", "median", "min", "q1", "q3", "max", "n", "what"};
    fprintf(out, "%s, %u CPUs on %u cores, %s, %s\n", c->cpu_name, c->n_cpus, c->n_cores, c->kernel_name, c->libc_name);
    fprintf(out, "others used %.1f %% of the CPUs' time, the hypervisor took %.1f %%%s\n\n", c->busy.others * 100,
            c->busy.stolen * 100, c->forced ? ": measured by force, do not trust the numbers" : "");
    for (size_t i = 0; i < t.n_columns; i++)
        table_add(&t, "%s", headings[i]);
    for (size_t i = 0; i < sim_n_host_costs; i++) {
        const struct sim_host_cost *row = &sim_host_cost_table[i];
        if (c->samples[i].n == 0)
            continue;
        struct stats s = stats_of(c->samples[i].value, c->samples[i].n);
        table_add(&t, "%s.%s", row->group, row->key);
        if (is_told(row)) {
            table_add(&t, "%.0f", s.median);
            for (int k = 0; k < 5; k++)
                table_add(&t, "-");
        } else {
            add_number(&t, s.median);
            add_number(&t, s.min);
            add_number(&t, s.q1);
            add_number(&t, s.q3);
            add_number(&t, s.max);
            table_add(&t, "%zu", c->samples[i].n);
        }
        table_add(&t, "%s", row->help);
    }
    table_print(&t, out);
}
