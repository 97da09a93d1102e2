/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Median and extremes of a few samples, and ratios of paired samples. */
#ifndef CMD_STATS_H
#define CMD_STATS_H

#include <stddef.h>

struct stats {
    double median, min, max; /* NaN: no samples */
    double q1, q3;           /* quartiles: between two samples in proportion to the distance; NaN in ratios */
};

struct stats stats_of(const double *samples, size_t n);
/*
 * The median of `base` over the median of `samples`, and the extremes of base[i] / samples[i]. Samples i of both were
 * measured one after the other, so a slow minute of the machine cancels out in the pair. NaN: a denominator is 0.
 */
struct stats stats_ratio(const double *base, const double *samples, size_t n);

#endif
