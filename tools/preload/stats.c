/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Median, extremes and quartiles; see stats.h. The median, so that a run that the machine disturbed does not count by
 * its length.
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

/* What a share of the samples lies below: the sample there, or between the two beside that place. */
static double quantile(const double *sorted, size_t n, double share) {
    double place = (double)(n - 1) * share;
    size_t below = (size_t)place;
    return below + 1 < n ? sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below])
                         : sorted[below];
}

struct stats stats_of(const double *samples, size_t n) {
    if (n == 0)
        return (struct stats){NAN, NAN, NAN, NAN, NAN};
    double *sorted = cmd_allocate(n, sizeof *sorted);
    memcpy(sorted, samples, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    struct stats s = {.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
                      .min = sorted[0],
                      .max = sorted[n - 1],
                      .q1 = quantile(sorted, n, 0.25),
                      .q3 = quantile(sorted, n, 0.75)};
    free(sorted);
    return s;
}

struct stats stats_ratio(const double *base, const double *samples, size_t n) {
    double above = stats_of(base, n).median, below = stats_of(samples, n).median;
    struct stats r = {below > 0 ? above / below : NAN, NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < n; i++) {
        double pair = samples[i] > 0 ? base[i] / samples[i] : NAN;
        r.min = fmin(r.min, pair); /* fmin and fmax ignore a NaN on one side */
        r.max = fmax(r.max, pair);
    }
    return r;
}
