/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "histogram.h"

#include <math.h>
#include <stddef.h>

/* Exact below 32 ns. */
static uint64_t step_value(uint32_t step) {
    uint32_t octave = step / SIM_HISTOGRAM_STEPS, at = step % SIM_HISTOGRAM_STEPS;
    return octave == 0 ? at : ((uint64_t)SIM_HISTOGRAM_STEPS + at) << (octave - 1);
}

uint64_t sim_histogram_quantile(const struct sim_histogram *h, double share) {
    uint64_t target = (uint64_t)((double)h->n * share), seen = 0;
    for (uint32_t i = 0; i < sizeof h->bucket / sizeof *h->bucket; i++)
        if ((seen += h->bucket[i]) > target)
            return step_value(i);
    return h->max;
}

double sim_spread_deviation(const struct sim_spread *s) {
    double n = (double)s->histogram.n, mean = (double)s->histogram.sum / n;
    double variance = s->sum_of_squares / n - mean * mean;
    return s->histogram.n > 0 && variance > 0 ? sqrt(variance) : 0;
}
