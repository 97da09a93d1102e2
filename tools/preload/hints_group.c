/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites with or without callers: where threads compute for short after a call from here and for long after one
 * from there, one hint for both is wrong for one of them. A site is divided by callers, and these by theirs, until what
 * is computed afterwards is alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hints_find.h"
#include "symbols.h"

/* Callers with so small a part of operations and computing say nothing. */
#define MINOR 0.02
/* The longest times are not typical: the kernel has given the core to another thread. */
#define TYPICAL 0.95

/* Long times that differ by that are not alike. */
#define UNLIKE 8

enum length { SHORT, MEDIUM, LONG };

struct groups {
    struct hints_profile *profile;
    const struct schedule_log *log;
    struct symbols *symbols;
};

/* ---- times ---- */

/* A quarter of an octave. */
unsigned hints_bucket_of(uint64_t ns) {
    if (ns < 4)
        return (unsigned)ns;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    return 4 * (octave - 1) + (unsigned)(ns >> (octave - 2) & 3);
}

static double middle_of(unsigned bucket) {
    if (bucket < 4)
        return bucket;
    return (4.5 + bucket % 4) * (double)(UINT64_C(1) << (bucket / 4 - 1));
}

static double typical(const struct hints_way *way) {
    double sum = 0, most = TYPICAL * (double)way->n, n = 0;
    for (unsigned b = 0; b < HINTS_BUCKETS && n < most; b++) {
        double here = way->buckets[b] < most - n ? way->buckets[b] : most - n;
        sum += here * middle_of(b);
        n += here;
    }
    return n > 0 ? sum / n : 0;
}

static enum length length_of(double ns) {
    return ns < HINTS_SHORT_NS ? SHORT : ns < HINTS_LONG_NS ? MEDIUM : LONG;
}

/* ---- sums ---- */

static struct hints_way sum_of(const struct hints_way *ways, size_t n) {
    struct hints_way sum = {.n = 0};
    memcpy(sum.calls, ways->calls, sizeof sum.calls);
    for (const struct hints_way *w = ways; w < ways + n; w++) {
        sum.n += w->n;
        sum.compute_ns += w->compute_ns;
        sum.lost_ns += w->lost_ns;
        sum.passed_ns += w->passed_ns;
        for (size_t i = 0; i < sizeof sum.seen / sizeof *sum.seen; i++)
            sum.seen[i] |= w->seen[i];
        for (size_t i = 0; i < HINTS_BUCKETS; i++)
            sum.buckets[i] += w->buckets[i];
    }
    return sum;
}

/* How many of the ways have the first one's caller at that depth. */
static size_t same_caller(const struct hints_way *ways, size_t n, size_t depth) {
    size_t i = 1;
    while (i < n && ways[i].calls[depth] == ways->calls[depth])
        i++;
    return i;
}

static bool is_minor(const struct hints_way *part, const struct hints_way *all) {
    return (double)part->n < MINOR * (double)all->n && (double)part->compute_ns < MINOR * (double)all->compute_ns;
}

static bool are_alike(const struct hints_way *ways, size_t n, const struct hints_way *all) {
    double least = INFINITY, most = 0;
    for (const struct hints_way *w = ways; w < ways + n; w++) {
        if (is_minor(w, all))
            continue;
        least = fmin(least, typical(w));
        most = fmax(most, typical(w));
    }
    return most <= 0 || (length_of(least) == length_of(most) && (length_of(most) != LONG || most < UNLIKE * least));
}

/* ---- sites ---- */

static void lengthen(char **text, const char *more) {
    char *longer = *text == NULL ? cmd_format("%s", more) : cmd_format("%s<%s", *text, more);
    free(*text);
    *text = longer;
}

static void add_site(const struct groups *g, const struct hints_way *way, size_t n_calls) {
    struct hints_profile *p = g->profile;
    struct hints_site site = {.n_calls = n_calls,
                              .n = way->n,
                              .compute_ns = way->compute_ns,
                              .typical_ns = typical(way),
                              .lost_ns = way->lost_ns,
                              .passed_ns = way->passed_ns};
    for (size_t i = 0; i < n_calls; i++) {
        site.calls[i] = schedule_site(g->log, way->calls[i]);
        lengthen(&site.name, site.calls[i]);
        lengthen(&site.place, symbols_name(g->symbols, site.calls[i]));
    }
    for (size_t i = 0; i < sizeof way->seen / sizeof *way->seen; i++)
        site.n_threads += (uint32_t)__builtin_popcountll(way->seen[i]);
    p->sites = cmd_reallocate(p->sites, p->n_sites + 1, sizeof *p->sites);
    p->sites[p->n_sites++] = site;
}

/* Ways with the same first calls. Operations without a known next caller have no name but that of all. */
static void group(const struct groups *g, const struct hints_way *ways, size_t n, size_t n_calls) {
    const struct hints_way all = sum_of(ways, n);
    if (n_calls == HINTS_CALLS || are_alike(ways, n, &all)) {
        add_site(g, &all, n_calls);
        return;
    }
    for (size_t i = 0, k; i < n; i += k) {
        k = same_caller(ways + i, n - i, n_calls);
        if (ways[i].calls[n_calls] != 0) {
            group(g, ways + i, k, n_calls + 1);
        } else {
            const struct hints_way part = sum_of(ways + i, k);
            add_site(g, &part, n_calls);
        }
    }
}

static int by_calls(const void *a, const void *b) {
    const struct hints_way *p = a, *q = b;
    for (size_t i = 0; i < HINTS_CALLS; i++)
        if (p->calls[i] != q->calls[i])
            return p->calls[i] < q->calls[i] ? -1 : 1;
    return 0;
}

static int by_loss(const void *a, const void *b) {
    const struct hints_site *p = a, *q = b;
    double of_p = p->lost_ns + p->passed_ns, of_q = q->lost_ns + q->passed_ns;
    return (of_p < of_q) - (of_p > of_q);
}

void hints_group(struct hints_profile *p, const struct schedule_log *log, struct hints_way *ways, size_t n) {
    const struct groups g = {.profile = p, .log = log, .symbols = symbols_new()};
    if (n > 0)
        qsort(ways, n, sizeof *ways, by_calls);
    for (size_t i = 0, k; i < n; i += k) {
        k = same_caller(ways + i, n - i, 0);
        if (ways[i].calls[0] != 0)
            group(&g, ways + i, k, 1);
    }
    if (p->n_sites > 0)
        qsort(p->sites, p->n_sites, sizeof *p->sites, by_loss);
    symbols_free(g.symbols);
}
