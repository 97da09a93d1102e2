/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hint file, and what is printed of the search. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hints_read.h"
#include "hints_try.h"
#include "table.h"

/* A weight of 1, which call sites have that are not named, is so long a computation. */
#define WEIGHT_NS 100
/* Call sites with weights of their own: those after which most is computed. */
#define MOST_WEIGHTS 50

static uint64_t weight_of(const struct hints_site *site) {
    uint64_t weight = site->n > 0 ? site->compute_ns / site->n / WEIGHT_NS : 1;
    return weight < 1 ? 1 : weight > HINTS_MAX_WEIGHT ? HINTS_MAX_WEIGHT : weight;
}

/* As the file has it: the program's own by the last part of its path, in quotes if need be. Allocated. */
static char *name_of(const struct hints_search *s, const struct hints_site *site) {
    size_t n = strlen(s->module);
    char *all = cmd_format("%s", "");
    for (size_t i = 0; i < site->n_calls; i++) {
        const char *name = site->calls[i];
        if (strncmp(name, s->module, n) == 0 && strchr(name + n, '/') == NULL && name[n] == '+')
            name = strrchr(name, '/') + 1;
        const char *quote = strpbrk(name, " \t\"<") == NULL ? "" : "\"";
        char *longer = cmd_format("%s%s%s%s%s", all, i > 0 ? "<" : "", quote, name, quote);
        free(all);
        all = longer;
    }
    return all;
}

/* A budget of as many turns as the weight is what it would grow to: other operations weigh 1 (lbdr.h). */
static void write_hint(FILE *out, const struct hints_search *s, const struct hints_candidate *c) {
    char *name = name_of(s, c->site);
    uint64_t weight = weight_of(c->site);
    if (c->kind == HINTS_BARRIER)
        fprintf(out, "soft-barrier %s %u\n", name, c->site->n_threads);
    else if (c->kind == HINTS_KEEP)
        fprintf(out, "keep-turn %s\n", name);
    else
        fprintf(out, "give-up-turn %s %ju %ju\n", name, (uintmax_t)weight, (uintmax_t)weight);
    free(name);
}

static void comment(FILE *out, const struct hints_search *s, const struct hints_candidate *c) {
    char mean[32], lost[32];
    bool keeps = c->kind == HINTS_KEEP;
    fprintf(out, "\n# %s: %u thread%s, %s computed after each operation", c->site->place, c->site->n_threads,
            cmd_s(c->site->n_threads),
            format_ns(mean, c->site->n > 0 ? (double)c->site->compute_ns / (double)c->site->n : NAN));
    if (!c->in_set) /* a set is of a run that kept every turn: what it costs others without hints is not known */
        fprintf(out, ", %s cost others %s", keeps ? "and to pass the turn on" : "which",
                format_ns(lost, keeps ? c->site->passed_ns : c->site->lost_ns));
    fputc('\n', out);
    if (c->is_kept && !c->in_set)
        fprintf(out, "# with it the program took %.2f times as long, beside the hints above (median of %d runs)\n",
                1 / c->ratio, s->n_runs);
}

static bool is_given_up(const struct hints_search *s, const struct hints_more *more, const struct hints_site *site) {
    bool is = false;
    for (size_t i = 0; i < more->n; i++)
        is = is || (more->list[i].kind == HINTS_GIVE_UP && strcmp(more->list[i].site->name, site->name) == 0);
    for (size_t i = 0; i < s->n_tried; i++)
        is = is || (s->tried[i].is_kept && s->tried[i].kind == HINTS_GIVE_UP &&
                    strcmp(s->tried[i].site->name, site->name) == 0);
    return is;
}

/* What is computed after other operations, against which a section is weighed. */
static void write_weights(FILE *out, const struct hints_search *s, const struct hints_more *more) {
    const struct hints_profile *p = hints_last_profile(s);
    size_t n = 0;
    for (size_t i = 0; i < p->n_sites && n < MOST_WEIGHTS; i++) {
        const struct hints_site *site = &p->sites[i];
        if (weight_of(site) < 2 || is_given_up(s, more, site))
            continue;
        char *name = name_of(s, site);
        fprintf(out, "weight %s %ju\n", name, (uintmax_t)weight_of(site));
        free(name);
        n++;
    }
}

static void write_times(FILE *out, const struct hints_search *s, const char *prefix) {
    char median[32], min[32], max[32];
    const struct {
        const char *what;
        const struct stats *stats;
    } rows[] = {{"without the library", &s->native},
                {"under det, without hints", &s->without},
                {s->is_of_use ? "under det, with these" : "under det, with some that are no help", &s->with}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!isnan(rows[i].stats->median))
            fprintf(out, "%s%s: %s (%s to %s), %.2f\n", prefix, rows[i].what,
                    format_ns(median, rows[i].stats->median * 1e9), format_ns(min, rows[i].stats->min * 1e9),
                    format_ns(max, rows[i].stats->max * 1e9), rows[i].stats->median / s->native.median);
}

static void write_head(FILE *out, const struct hints_search *s) {
    fputs("# Found by subutai hints for:", out);
    for (char *const *word = s->program.argv; *word != NULL; word++) {
        fputc(' ', out);
        for (const char *c = *word; *c != '\0'; c++)
            fputc(*c >= ' ' ? *c : '?', out);
    }
    fprintf(out,
            "\n# To be used with: subutai run --engine det --hints FILE -- ...\n# Median of %d interleaved runs at "
            "least:\n",
            s->n_runs);
    write_times(out, s, "# ");
    if (!s->is_of_use)
        fputs("# No hint has made it faster.\n", out);
}

static void write_set(FILE *out, const struct hints_search *s) {
    for (const struct hints_set *set = s->sets; set < s->sets + s->n_sets; set++)
        if (set->is_kept)
            fprintf(
                out,
                "\n# The first %zu hints below are a set, by how long threads compute: with it the program took %.2f "
                "times as long\n# as with %s (median of %d runs)\n",
                set->n_kinds[HINTS_KEEP] + set->n_kinds[HINTS_GIVE_UP], 1 / set->ratio,
                set->replaces ? "the hints that were kept before, which are not in this file" : "no hints", s->n_runs);
}

void hints_write(FILE *out, const struct hints_search *s, const struct hints_more *more, bool is_commented) {
    static const struct hints_more none;
    bool has_sections = false;
    more = more != NULL ? more : &none;
    fputs(HINTS_FIRST_LINE "\n", out);
    if (is_commented)
        write_head(out, s);
    if (is_commented && s->is_of_use)
        write_set(out, s);
    for (size_t i = 0; i < s->n_tried; i++) {
        const struct hints_candidate *c = &s->tried[i];
        if (!c->is_kept)
            continue;
        if (is_commented)
            comment(out, s, c);
        write_hint(out, s, c);
        has_sections = has_sections || c->kind == HINTS_GIVE_UP;
    }
    for (size_t i = 0; i < more->n; i++) {
        write_hint(out, s, &more->list[i]);
        has_sections = has_sections || more->list[i].kind == HINTS_GIVE_UP;
    }
    if (has_sections && is_commented)
        fprintf(out, "\n# What threads compute after other operations, in units of %d ns\n", WEIGHT_NS);
    if (has_sections)
        write_weights(out, s, more);
}

static void report_ratio(FILE *out, double ratio) {
    if (isnan(ratio))
        fputs("a run has failed\n", out);
    else
        fprintf(out, "%.2f times as long\n", 1 / ratio);
}

static const char *fate(bool is_kept) {
    return is_kept ? "kept   " : "dropped";
}

static void report_sets(FILE *out, const struct hints_search *s) {
    for (const struct hints_set *set = s->sets; set < s->sets + s->n_sets; set++) {
        fprintf(out, "%s  a set         keep-turn at %zu call site%s, give-up-turn at %zu: ", fate(set->is_kept),
                set->n_kinds[HINTS_KEEP], cmd_s(set->n_kinds[HINTS_KEEP]), set->n_kinds[HINTS_GIVE_UP]);
        report_ratio(out, set->ratio);
    }
}

void hints_report(FILE *out, const struct hints_search *s) {
    report_sets(out, s);
    for (size_t i = 0; i < s->n_tried; i++) {
        const struct hints_candidate *c = &s->tried[i];
        if (c->in_set)
            continue;
        fprintf(out, "%s  %-12s  %s: ", fate(c->is_kept), hints_kind_label(c->kind), c->site->place);
        report_ratio(out, c->ratio);
    }
    if (s->n_tried == 0 && s->n_sets == 0)
        fputs("no thread keeps the turn for long\n", out);
    write_times(out, s, "");
}
