/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai compare` prints; see compare.h. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "stats.h"
#include "table.h"

struct numbers {
    struct stats wall, cpu, ratio, cpu_ratio;
    int64_t peak_kib;
};

static double *samples_of(const struct side *side, int n_runs, bool cpu) {
    double *samples = cmd_allocate((size_t)n_runs, sizeof *samples);
    for (int i = 0; i < n_runs; i++)
        samples[i] = (double)(cpu ? side->records[i].cpu_ns : side->records[i].wall_ns);
    return samples;
}

static struct numbers numbers_of(const struct comparison *c, const struct point *point, size_t contender) {
    const struct side *base = &point->sides[0], *side = &point->sides[contender];
    size_t n = (size_t)c->n_runs;
    double *base_wall = samples_of(base, c->n_runs, false), *base_cpu = samples_of(base, c->n_runs, true);
    double *wall = samples_of(side, c->n_runs, false), *cpu = samples_of(side, c->n_runs, true);
    struct numbers r = {stats_of(wall, n), stats_of(cpu, n), stats_ratio(base_wall, wall, n),
                        stats_ratio(base_cpu, cpu, n), 0};
    for (int i = 0; i < c->n_runs; i++)
        r.peak_kib = side->records[i].peak_kib > r.peak_kib ? side->records[i].peak_kib : r.peak_kib;
    free(base_wall);
    free(base_cpu);
    free(wall);
    free(cpu);
    return r;
}

bool point_is_same(const struct comparison *c, const struct point *point) {
    bool same = !point->missing_output;
    for (size_t i = 0; i < c->n_contenders; i++)
        same = same && point->sides[i].n_other_status == 0 && point->sides[i].n_other_output == 0 &&
               point->sides[i].n_timeouts == 0;
    return same;
}

static void print_verdict(const struct comparison *c, const struct point *point, FILE *out) {
    int n_total = c->n_runs + c->n_warmups;
    if (c->sweep)
        fprintf(out, "%ju threads: ", (uintmax_t)point->threads);
    if (point_is_same(c, point)) {
        fprintf(out, "outputs and exit status identical in all runs (%s)\n", point->sides[0].outcome);
        return;
    }
    fprintf(out, "NOT identical");
    if (point->missing_output)
        fprintf(out, "; a file named by --output was not written");
    for (size_t i = 0; i < c->n_contenders; i++) {
        const struct side *s = &point->sides[i];
        const char *label = c->contenders[i].label;
        if (s->n_timeouts > 0)
            fprintf(out, "; %s: %d of %d runs timed out", label, s->n_timeouts, n_total);
        if (s->n_other_status > 0)
            fprintf(out, "; %s: other exit status in %d of %d runs", label, s->n_other_status, n_total);
        if (s->n_other_output > 0)
            fprintf(out, "; %s: other output in %d of %d runs", label, s->n_other_output, n_total);
    }
    if (point->sides[0].n_other_output > 0)
        fprintf(out, "; the program's output varies under %s alone", c->contenders[0].label);
    fputc('\n', out);
}

void compare_print_table(const struct comparison *c, FILE *out) {
    static const char *const headings[] = {"threads", "engine", "wall",      "min",      "max",    "ratio", "(min",
                                           "max)",    "cpu",    "cpu ratio", "peak MiB", "status", "output"};
    size_t skip = c->sweep ? 0 : 1;
    struct table t = {sizeof headings / sizeof *headings - skip, &"rlrrrrrrrrrll"[skip], NULL, 0, 0};
    for (size_t i = skip; i < sizeof headings / sizeof *headings; i++)
        table_add(&t, "%s", headings[i]);
    for (size_t p = 0; p < c->n_points; p++)
        for (size_t i = 0; i < c->n_contenders; i++) {
            const struct side *s = &c->points[p].sides[i];
            struct numbers n = numbers_of(c, &c->points[p], i);
            char text[32];
            if (c->sweep)
                table_add(&t, "%ju", (uintmax_t)c->points[p].threads);
            table_add(&t, "%s", c->contenders[i].label);
            table_add(&t, "%s", format_ns(text, n.wall.median));
            table_add(&t, "%s", format_ns(text, n.wall.min));
            table_add(&t, "%s", format_ns(text, n.wall.max));
            table_add(&t, "%s", format_ratio(text, n.ratio.median));
            table_add(&t, "(%s", format_ratio(text, n.ratio.min));
            table_add(&t, "%s)", format_ratio(text, n.ratio.max));
            table_add(&t, "%s", format_ns(text, n.cpu.median));
            table_add(&t, "%s", format_ratio(text, n.cpu_ratio.median));
            table_add(&t, "%.1f", (double)n.peak_kib / 1024);
            table_add(&t, "%s%s", s->outcome, s->n_other_status > 0 ? " DIFFERS" : "");
            table_add(&t, "%s", s->n_other_output > 0 ? "DIFFERS" : "same");
        }
    table_print(&t, out);
    if (c->n_beside > 0)
        fprintf(out, "beside %zu processes that compute\n", c->n_beside);
    for (size_t p = 0; p < c->n_points; p++)
        print_verdict(c, &c->points[p], out);
}

static void put_stats(struct json *j, const char *key, struct stats s, int n_decimals) {
    json_open(j, key, '{');
    json_real(j, "median", s.median, n_decimals);
    json_real(j, "min", s.min, n_decimals);
    json_real(j, "max", s.max, n_decimals);
    json_close(j, '}');
}

static void put_side(struct json *j, const struct comparison *c, const struct point *point, size_t contender) {
    const struct side *s = &point->sides[contender];
    struct numbers n = numbers_of(c, point, contender);
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "engine", c->contenders[contender].label);
    if (c->sweep)
        json_int(j, "threads", (int64_t)point->threads);
    put_stats(j, "wall_ns", n.wall, 0);
    put_stats(j, "cpu_ns", n.cpu, 0);
    put_stats(j, "ratio", n.ratio, 4);
    put_stats(j, "cpu_ratio", n.cpu_ratio, 4);
    json_int(j, "peak_kib", n.peak_kib);
    json_text(j, "status", s->outcome);
    json_bool(j, "same_status", s->n_other_status == 0);
    json_bool(j, "same_output", s->n_other_output == 0);
    json_int(j, "timeouts", s->n_timeouts);
    json_open(j, "runs", '[');
    for (int i = 0; i < c->n_runs; i++) {
        const struct run_record *r = &s->records[i];
        json_open(j, NULL, '{');
        json_int(j, "wall_ns", r->wall_ns);
        json_int(j, "cpu_ns", r->cpu_ns);
        json_int(j, "peak_kib", r->peak_kib);
        json_text(j, "status", r->outcome);
        json_bool(j, "same_status", r->same_status);
        json_bool(j, "same_output", r->same_output);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void compare_print_json(const struct comparison *c, FILE *out) {
    struct json j = {.out = out};
    bool same = true;
    for (size_t p = 0; p < c->n_points; p++)
        same = point_is_same(c, &c->points[p]) && same;
    json_open(&j, NULL, '{');
    json_open(&j, "command", '[');
    for (char *const *word = c->command_line; *word != NULL; word++)
        json_text(&j, NULL, *word);
    json_close(&j, ']');
    json_int(&j, "n_runs", c->n_runs);
    json_int(&j, "n_warmups", c->n_warmups);
    json_int(&j, "n_beside", (int64_t)c->n_beside);
    json_bool(&j, "identical", same);
    json_open(&j, "points", '[');
    for (size_t p = 0; p < c->n_points; p++) {
        json_line(&j);
        json_open(&j, NULL, '{');
        if (c->sweep)
            json_int(&j, "threads", (int64_t)c->points[p].threads);
        else
            json_text(&j, "threads", NULL);
        json_bool(&j, "identical", point_is_same(c, &c->points[p]));
        json_bool(&j, "missing_output", c->points[p].missing_output);
        json_open(&j, "engines", '[');
        for (size_t i = 0; i < c->n_contenders; i++)
            put_side(&j, c, &c->points[p], i);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
