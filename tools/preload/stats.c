/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Median and extremes; see stats.h. The median, so that a run that the machine disturbed does not count by its length.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct stats stats_of(const double *samples, size_t n) {
    if (n == 0)
        return (struct stats){NAN, NAN, NAN};
    double *sorted = cmd_allocate(n, sizeof *sorted);
    memcpy(sorted, samples, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    struct stats s = {(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[0], sorted[n - 1]};
    free(sorted);
    return s;
}

struct stats stats_ratio(const double *base, const double *samples, size_t n) {
    double above = stats_of(base, n).median, below = stats_of(samples, n).median;
    struct stats r = {below > 0 ? above / below : NAN, NAN, NAN};
    for (size_t i = 0; i < n; i++) {
        double pair = samples[i] > 0 ? base[i] / samples[i] : NAN;
        r.min = fmin(r.min, pair); /* fmin and fmax ignore a NaN on one side */
        r.max = fmax(r.max, pair);
    }
    return r;
}
