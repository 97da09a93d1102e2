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

/* The lower bound of the step within which or below which this share (0 to 1) of all latencies lies. */
uint64_t sim_histogram_quantile(const struct sim_histogram *h, double share);

#endif
