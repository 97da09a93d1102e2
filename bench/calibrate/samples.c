/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples; see calibrate.h. */
#include "calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"

enum { N_SERIES_MAX = 32 };
#define BATCH_NS 100000 /* long against a clock read, short against a tick: few batches are interrupted */

struct samples {
    const char *key;
    size_t n;
    double value[N_SAMPLES_MAX];
};

static struct samples series[N_SERIES_MAX];
static size_t n_series;

struct samples *samples_new(const char *key) {
    if (n_series == N_SERIES_MAX)
        fail("no room for samples of %s", key);
    series[n_series].key = key;
    return &series[n_series++];
}

void samples_add(struct samples *s, double value) {
    if (s->n < N_SAMPLES_MAX)
        s->value[s->n++] = value;
}

size_t samples_n(const struct samples *s) {
    return s->n;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_median(const struct samples *s) {
    double sorted[N_SAMPLES_MAX];
    if (s->n == 0)
        fail("no sample of %s", s->key);
    memcpy(sorted, s->value, s->n * sizeof *sorted);
    qsort(sorted, s->n, sizeof *sorted, ascending);
    return (sorted[(s->n - 1) / 2] + sorted[s->n / 2]) / 2;
}

bool samples_wanted(const struct samples *s, uint64_t end_ns) {
    return s->n < N_SAMPLES_MIN || (s->n < N_SAMPLES_MAX && now_ns() < end_ns);
}

static uint64_t thread_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hopeless_cpu_ns(double seconds) {
    return thread_cpu_ns() + (uint64_t)(seconds * 1e9) + 1000000000u;
}

bool is_hopeless(uint64_t cpu_ns) {
    return thread_cpu_ns() > cpu_ns;
}

/*
 * The least of three batches. One may have been interrupted, and the thread may have lost its CPU for a while: with
 * that time alone, a batch of one operation could seem to be long enough.
 */
static uint64_t least_time(void operate(uint64_t n), uint64_t n) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3 && least >= BATCH_NS; i++) {
        uint64_t begin = now_ns();
        operate(n);
        uint64_t took = now_ns() - begin;
        least = took < least ? took : least;
    }
    return least;
}

void samples_of_batches(const char *key, double seconds, void operate(uint64_t n)) {
    struct samples *s = samples_new(key);
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), n = 1;
    while (least_time(operate, n) < BATCH_NS) /* also warms up */
        n *= 2;
    while (samples_wanted(s, end_ns)) {
        uint64_t begin = now_ns();
        operate(n);
        samples_add(s, (double)(now_ns() - begin) / (double)n);
    }
}

double clock_cost_ns(void) {
    static double cost;
    double least = 1e9;
    for (int i = 0; cost == 0 && i < 50; i++) {
        enum { N = 1000 };
        uint64_t begin = now_ns();
        for (int k = 0; k < N; k++)
            (void)now_ns();
        double one = (double)(now_ns() - begin) / (N + 1);
        least = one < least ? one : least;
    }
    cost = cost == 0 ? least : cost;
    return cost;
}

void samples_print(void) {
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    for (size_t i = 0; i < n_series; i++) {
        json_open(&j, series[i].key, '[');
        for (size_t k = 0; k < series[i].n; k++)
            json_significant(&j, NULL, series[i].value[k], 6);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    json_end(&j);
}
