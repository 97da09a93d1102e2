/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Latencies: exact below 32 ns, above that in 32 steps to an octave. */
#ifndef SIM_HISTOGRAM_H
#define SIM_HISTOGRAM_H

#include <stdint.h>

enum { SIM_HISTOGRAM_STEPS = 32, SIM_HISTOGRAM_OCTAVES = 60 };

struct sim_histogram {
    uint64_t n, sum, max;
    uint64_t bucket[SIM_HISTOGRAM_OCTAVES * SIM_HISTOGRAM_STEPS];
};

static inline void sim_histogram_add(struct sim_histogram *h, uint64_t ns) {
    uint32_t octave = ns < SIM_HISTOGRAM_STEPS ? 0 : 59 - (uint32_t)__builtin_clzll(ns);
    h->n++;
    h->sum += ns;
    h->max = ns > h->max ? ns : h->max;
    h->bucket[octave * SIM_HISTOGRAM_STEPS + (octave == 0 ? ns : ns >> (octave - 1) & (SIM_HISTOGRAM_STEPS - 1))]++;
}

/* The same with a standard deviation. */
struct sim_spread {
    struct sim_histogram histogram;
    double sum_of_squares;
};

static inline void sim_spread_add(struct sim_spread *s, uint64_t ns) {
    sim_histogram_add(&s->histogram, ns);
    s->sum_of_squares += (double)ns * (double)ns;
}

double sim_spread_deviation(const struct sim_spread *s);

/* The lower bound of the step within which or below which this share (0 to 1) of all latencies lies. */
uint64_t sim_histogram_quantile(const struct sim_histogram *h, double share);

#endif
