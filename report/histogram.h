/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts of times in classes of equal relative width, 32 an octave: a percentile is right to 1.6 %, and exact below 64.
 * Memory is what the values span, at most 8 KiB. (The idea is HdrHistogram's.)
 */
#ifndef REP_HISTOGRAM_H
#define REP_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct rep_histogram {
    uint64_t n, ns, min_ns, max_ns;
    uint32_t first, n_classes; /* `counts` has the classes from `first` */
    uint32_t *counts;
};

/* All-zero is an empty one. Without memory the value is in n, ns, min and max alone. */
void rep_histogram_add(struct rep_histogram *h, uint64_t ns);
void rep_histogram_add_n(struct rep_histogram *h, uint64_t ns, uint64_t n);
/* The value below which `part` (0 to 1) of the values are; 0: empty. */
double rep_histogram_quantile(const struct rep_histogram *h, double part);
double rep_histogram_mean(const struct rep_histogram *h); /* 0: empty */
/* How many values are at least `from_ns` and below `to_ns`; both are rounded down to the limit of a class. */
uint64_t rep_histogram_count(const struct rep_histogram *h, uint64_t from_ns, uint64_t to_ns);
void rep_histogram_free(struct rep_histogram *h);

#endif
