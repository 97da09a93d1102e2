/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Median and extremes of a few samples, and ratios of paired samples. */
#ifndef CMD_STATS_H
#define CMD_STATS_H

#include <stddef.h>

struct stats {
    double median, min, max; /* NaN without samples */
};

struct stats stats_of(const double *samples, size_t n);
/*
 * How much smaller `samples` are than `base`: median over median, and the extremes of base[i] / samples[i]. Sample i
 * of both ran next to each other in time, so a slow minute of the machine cancels out in the pair. NaN where a
 * denominator is 0.
 */
struct stats stats_ratio(const double *base, const double *samples, size_t n);

#endif
