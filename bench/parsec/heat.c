/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An OpenMP program: heat spreads over a plate of SIZE x SIZE cells, by Jacobi's method. The rim is kept hot on one
 * side and cold on the others. Each sweep is a loop that the threads of one team share, with barriers around it, and
 * the largest change is found in a critical section. What it prints does not depend on the number of threads.
 *
 * usage: heat SIZE SWEEPS THREADS
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* One sweep from `from` to `to`; the result is the largest change of a cell. */
static double sweep(size_t size, const double *from, double *to) {
    double most = 0;
#pragma omp for schedule(static)
    for (size_t y = 1; y < size - 1; y++)
        for (size_t x = 1; x < size - 1; x++) {
            size_t i = y * size + x;
            to[i] = (from[i - 1] + from[i + 1] + from[i - size] + from[i + size]) / 4;
            most = fmax(most, fabs(to[i] - from[i]));
        }
    return most;
}

static int number(const char *text, long least, long most, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return *end == '\0' && *value >= least && *value <= most;
}

int main(int argc, char **argv) {
    long size, sweeps, threads;
    if (argc != 4 || !number(argv[1], 3, 20000, &size) || !number(argv[2], 1, 10000000, &sweeps) ||
        !number(argv[3], 1, 1024, &threads)) {
        fprintf(stderr, "usage: heat SIZE SWEEPS THREADS\n");
        return 2;
    }
    size_t n = (size_t)size;
    double *plate[2] = {calloc(n * n, sizeof(double)), calloc(n * n, sizeof(double))};
    if (plate[0] == NULL || plate[1] == NULL) {
        fprintf(stderr, "heat: no memory for a plate of that size\n");
        return 1;
    }
    for (size_t x = 0; x < n; x++)
        plate[0][x] = plate[1][x] = 100;
    double change = 0, sum = 0;
#pragma omp parallel num_threads((int)threads)
    for (long i = 0; i < sweeps; i++) {
#pragma omp single
        change = 0;
        double mine = sweep(n, plate[i % 2], plate[(i + 1) % 2]);
#pragma omp critical
        change = fmax(change, mine);
#pragma omp barrier
    }
    for (size_t i = 0; i < n * n; i++)
        sum += plate[sweeps % 2][i];
    printf("%ld sweeps: the last one changed a cell by %.12g at most; the mean is %.12g\n", sweeps, change,
           sum / (double)(n * n));
    free(plate[0]);
    free(plate[1]);
    return 0;
}
