/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tiny OpenMP regions, for `bench/recorder --profile --only openmp`: usage: openmp-load REGIONS THREADS
 * In each region each thread computes for about 2 us, meets the others at a barrier, and does so again. Prints nothing;
 * the exit status says whether every thread came to every region.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long number(const char *text) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    return *end == '\0' && n <= 100000000 ? n : 0;
}

static void compute(void) {
    unsigned long seed = 1;
    for (int i = 0; i < 1000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
    }
    __asm__ volatile("" : "+r"(seed)); /* a result that is not used would cost nothing */
}

int main(int argc, char **argv) {
    unsigned long n_regions = argc == 3 ? number(argv[1]) : 0, n_threads = argc == 3 ? number(argv[2]) : 0, n = 0;
    if (n_regions == 0 || n_threads == 0 || n_threads > 64) {
        fprintf(stderr, "Usage: openmp-load REGIONS THREADS (1 to 64)\n");
        return 2;
    }
    omp_set_dynamic(0);
    for (unsigned long i = 0; i < n_regions; i++)
#pragma omp parallel num_threads((int)n_threads) reduction(+ : n)
    {
        compute();
#pragma omp barrier
        compute();
        n++;
    }
    return n != n_regions * n_threads;
}
