/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of `subutai compare`; see compare.h. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "stats.h"

/* The result of one engine at one point. */
struct engine_row {
    uint64_t threads;
    const char *engine, *status, *output;
    char status_cell[48];
    struct stats wall, cpu, ratio, cpu_ratio;
    int64_t peak_kib;
    double peak_mib;
    bool same_status, same_output;
    int n_timeouts;
};

#define ROW(member) offsetof(struct engine_row, member)
enum { COLUMN_THREADS = 1 }; /* hidden unless the comparison has several numbers of threads */
static const struct field row_fields[] = {
    {NULL, "engine", "engine", 2, FIELD_TEXT, ROW(engine), 0},
    {NULL, "threads", "threads", COLUMN_THREADS, FIELD_UINT64, ROW(threads), 0},
    {"wall_ns", "median", "wall", 3, FIELD_NS, ROW(wall.median), 0},
    {"wall_ns", "min", "min", 4, FIELD_NS, ROW(wall.min), 0},
    {"wall_ns", "max", "max", 5, FIELD_NS, ROW(wall.max), 0},
    {"cpu_ns", "median", "cpu", 9, FIELD_NS, ROW(cpu.median), 0},
    {"cpu_ns", "min", NULL, 0, FIELD_NS, ROW(cpu.min), 0},
    {"cpu_ns", "max", NULL, 0, FIELD_NS, ROW(cpu.max), 0},
    {"ratio", "median", "ratio", 6, FIELD_RATIO, ROW(ratio.median), 4},
    {"ratio", "min", "(min", 7, FIELD_RATIO, ROW(ratio.min), 4},
    {"ratio", "max", "max)", 8, FIELD_RATIO, ROW(ratio.max), 4},
    {"cpu_ratio", "median", "cpu ratio", 10, FIELD_RATIO, ROW(cpu_ratio.median), 4},
    {"cpu_ratio", "min", NULL, 0, FIELD_RATIO, ROW(cpu_ratio.min), 4},
    {"cpu_ratio", "max", NULL, 0, FIELD_RATIO, ROW(cpu_ratio.max), 4},
    {NULL, "peak_kib", NULL, 0, FIELD_INT64, ROW(peak_kib), 0},
    {NULL, NULL, "peak MiB", 11, FIELD_REAL, ROW(peak_mib), 0},
    {NULL, "status", NULL, 0, FIELD_TEXT, ROW(status), 0},
    {NULL, NULL, "status", 12, FIELD_CHARS, ROW(status_cell), 0},
    {NULL, "same_status", NULL, 0, FIELD_BOOL, ROW(same_status), 0},
    {NULL, "same_output", NULL, 0, FIELD_BOOL, ROW(same_output), 0},
    {NULL, NULL, "output", 13, FIELD_TEXT, ROW(output), 0},
    {NULL, "timeouts", NULL, 0, FIELD_INT, ROW(n_timeouts), 0},
    {0},
};

#define RUN(member) offsetof(struct run_record, member)
static const struct field run_fields[] = {
    {NULL, "wall_ns", NULL, 0, FIELD_INT64, RUN(wall_ns), 0},
    {NULL, "cpu_ns", NULL, 0, FIELD_INT64, RUN(cpu_ns), 0},
    {NULL, "peak_kib", NULL, 0, FIELD_INT64, RUN(peak_kib), 0},
    {NULL, "status", NULL, 0, FIELD_CHARS, RUN(outcome), 0},
    {NULL, "same_status", NULL, 0, FIELD_BOOL, RUN(same_status), 0},
    {NULL, "same_output", NULL, 0, FIELD_BOOL, RUN(same_output), 0},
    {0},
};

static double *samples_of(const struct side *side, int n_runs, bool cpu) {
    double *samples = cmd_allocate((size_t)n_runs, sizeof *samples);
    for (int i = 0; i < n_runs; i++)
        samples[i] = (double)(cpu ? side->records[i].cpu_ns : side->records[i].wall_ns);
    return samples;
}

/* Times by one clock, and the ratios of the base's times to them. */
static void measure(const struct comparison *c, const struct side *base, const struct side *side, bool cpu,
                    struct stats *times, struct stats *ratio) {
    double *base_samples = samples_of(base, c->measure.n_runs, cpu),
           *samples = samples_of(side, c->measure.n_runs, cpu);
    *times = stats_of(samples, (size_t)c->measure.n_runs);
    *ratio = stats_ratio(base_samples, samples, (size_t)c->measure.n_runs);
    free(base_samples);
    free(samples);
}

static struct engine_row row_of(const struct comparison *c, const struct point *point, size_t engine) {
    const struct side *side = &point->sides[engine];
    struct engine_row row = {
        .threads = point->threads,
        .engine = c->measure.specs[engine].label,
        .status = side->outcome,
        .output = side->n_other_output > 0 ? "DIFFERS" : "same",
        .same_status = side->n_other_status == 0,
        .same_output = side->n_other_output == 0,
        .n_timeouts = side->n_timeouts,
    };
    snprintf(row.status_cell, sizeof row.status_cell, "%s%s", side->outcome, row.same_status ? "" : " DIFFERS");
    measure(c, &point->sides[0], side, false, &row.wall, &row.ratio);
    measure(c, &point->sides[0], side, true, &row.cpu, &row.cpu_ratio);
    for (int i = 0; i < c->measure.n_runs; i++)
        row.peak_kib = side->records[i].peak_kib > row.peak_kib ? side->records[i].peak_kib : row.peak_kib;
    row.peak_mib = (double)row.peak_kib / 1024;
    return row;
}

bool point_is_same(const struct comparison *c, const struct point *point) {
    bool same = !point->missing_output;
    for (size_t i = 0; i < c->measure.n_engines; i++)
        same = same && point->sides[i].n_other_status == 0 && point->sides[i].n_other_output == 0 &&
               point->sides[i].n_timeouts == 0;
    return same;
}

static void print_verdict(const struct comparison *c, const struct point *point, FILE *out) {
    int n_total = c->measure.n_runs + c->measure.n_warmups;
    if (c->sweep)
        fprintf(out, "%ju threads: ", (uintmax_t)point->threads);
    if (point_is_same(c, point)) {
        fprintf(out, "outputs and exit status identical in all runs (%s)\n", point->sides[0].outcome);
        return;
    }
    fprintf(out, "NOT identical");
    if (point->missing_output)
        fprintf(out, "; a file named by --output was not written");
    for (size_t i = 0; i < c->measure.n_engines; i++) {
        const struct side *s = &point->sides[i];
        const char *label = c->measure.specs[i].label;
        if (s->n_timeouts > 0)
            fprintf(out, "; %s: %d of %d runs timed out", label, s->n_timeouts, n_total);
        if (s->n_other_status > 0)
            fprintf(out, "; %s: other exit status in %d of %d runs", label, s->n_other_status, n_total);
        if (s->n_other_output > 0)
            fprintf(out, "; %s: other output in %d of %d runs", label, s->n_other_output, n_total);
    }
    if (point->sides[0].n_other_output > 0)
        fprintf(out, "; the program's output varies under %s alone", c->measure.specs[0].label);
    fputc('\n', out);
}

void compare_print_table(const struct comparison *c, FILE *out) {
    unsigned hidden = c->sweep ? 0 : FIELDS_HIDE(COLUMN_THREADS);
    struct table t = fields_table(row_fields, hidden);
    for (size_t p = 0; p < c->n_points; p++)
        for (size_t i = 0; i < c->measure.n_engines; i++) {
            struct engine_row row = row_of(c, &c->points[p], i);
            fields_row(&t, row_fields, hidden, &row);
        }
    table_print(&t, out);
    if (c->measure.n_background > 0)
        fprintf(out, "background load: %zu processes that compute\n", c->measure.n_background);
    for (size_t p = 0; p < c->n_points; p++)
        print_verdict(c, &c->points[p], out);
}

static void put_row(struct json *j, const struct comparison *c, const struct point *point, size_t engine) {
    struct engine_row row = row_of(c, point, engine);
    json_line(j);
    json_open(j, NULL, '{');
    fields_json(j, row_fields, c->sweep ? 0 : FIELDS_HIDE(COLUMN_THREADS), &row);
    json_open(j, "runs", '[');
    for (int i = 0; i < c->measure.n_runs; i++) {
        json_open(j, NULL, '{');
        fields_json(j, run_fields, 0, &point->sides[engine].records[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void put_point(struct json *j, const struct comparison *c, const struct point *point) {
    json_line(j);
    json_open(j, NULL, '{');
    if (c->sweep)
        json_uint(j, "threads", point->threads);
    else
        json_text(j, "threads", NULL);
    json_bool(j, "identical", point_is_same(c, point));
    json_bool(j, "missing_output", point->missing_output);
    json_open(j, "engines", '[');
    for (size_t i = 0; i < c->measure.n_engines; i++)
        put_row(j, c, point, i);
    json_close(j, ']');
    json_close(j, '}');
}

void compare_print_json(const struct comparison *c, FILE *out) {
    struct json j = json_on(out);
    bool same = true;
    for (size_t p = 0; p < c->n_points; p++)
        same = point_is_same(c, &c->points[p]) && same;
    json_open(&j, NULL, '{');
    json_open(&j, "command", '[');
    for (char *const *word = c->command_line; *word != NULL; word++)
        json_text(&j, NULL, *word);
    json_close(&j, ']');
    json_int(&j, "n_runs", c->measure.n_runs);
    json_int(&j, "n_warmups", c->measure.n_warmups);
    json_int(&j, "n_beside", (int64_t)c->measure.n_background);
    json_bool(&j, "identical", same);
    json_open(&j, "points", '[');
    for (size_t p = 0; p < c->n_points; p++)
        put_point(&j, c, &c->points[p]);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
