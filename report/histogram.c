/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Classes of times; see histogram.h. */
#include "histogram.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 5, PER_OCTAVE = 1 << BITS };

/* Below 2 * PER_OCTAVE a value is its own class. */
static uint32_t class_of(uint64_t ns) {
    if (ns < PER_OCTAVE)
        return (uint32_t)ns;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    return (uint32_t)((octave - BITS + 1) << BITS | (ns >> (octave - BITS) & (PER_OCTAVE - 1)));
}

static double start_of(uint32_t class) {
    uint32_t octave = class >> BITS;
    if (octave == 0)
        return class;
    return (double)((uint64_t)(PER_OCTAVE | (class & (PER_OCTAVE - 1))) << (octave - 1));
}

/* Make the classes reach to this one. */
static bool reach(struct rep_histogram *h, uint32_t class) {
    if (h->counts != NULL && class >= h->first && class < h->first + h->n_classes)
        return true;
    uint32_t first = class / 16 * 16, end = first + 16;
    if (h->counts != NULL) {
        first = first < h->first ? first : h->first;
        end = end > h->first + h->n_classes ? end : h->first + h->n_classes;
    }
    uint32_t *counts = calloc(end - first, sizeof *counts);
    if (counts == NULL)
        return false;
    if (h->counts != NULL)
        memcpy(counts + (h->first - first), h->counts, h->n_classes * sizeof *counts);
    free(h->counts);
    h->counts = counts;
    h->first = first;
    h->n_classes = end - first;
    return true;
}

void rep_histogram_add_n(struct rep_histogram *h, uint64_t ns, uint64_t n) {
    uint32_t class = class_of(ns);
    if (n == 0)
        return;
    if (h->n == 0 || ns < h->min_ns)
        h->min_ns = ns;
    if (ns > h->max_ns)
        h->max_ns = ns;
    h->n += n;
    h->ns += n * ns;
    if (reach(h, class)) {
        uint64_t count = h->counts[class - h->first] + n;
        h->counts[class - h->first] = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    }
}

void rep_histogram_add(struct rep_histogram *h, uint64_t ns) {
    rep_histogram_add_n(h, ns, 1);
}

double rep_histogram_quantile(const struct rep_histogram *h, double part) {
    double wanted = part * (double)h->n, before = 0;
    double value = (double)h->max_ns;
    for (uint32_t i = 0; i < h->n_classes; i++) {
        double n = h->counts[i];
        if (n > 0 && before + n >= wanted) {
            double from = start_of(h->first + i), to = start_of(h->first + i + 1);
            value = from + (to - from - 1) * ((wanted - before - 0.5) / n > 0 ? (wanted - before - 0.5) / n : 0);
            break;
        }
        before += n;
    }
    if (value < (double)h->min_ns)
        value = (double)h->min_ns;
    return value > (double)h->max_ns ? (double)h->max_ns : value;
}

double rep_histogram_mean(const struct rep_histogram *h) {
    return h->n > 0 ? (double)h->ns / (double)h->n : 0;
}

uint64_t rep_histogram_count(const struct rep_histogram *h, uint64_t from_ns, uint64_t to_ns) {
    uint64_t n = 0;
    uint32_t from = class_of(from_ns), to = class_of(to_ns);
    for (uint32_t i = 0; i < h->n_classes; i++)
        if (h->first + i >= from && h->first + i < to)
            n += h->counts[i];
    return n;
}

void rep_histogram_free(struct rep_histogram *h) {
    free(h->counts);
    *h = (struct rep_histogram){0};
}
