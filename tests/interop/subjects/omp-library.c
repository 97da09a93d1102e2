/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library on libgomp: linked in it starts a team in its constructor, before main; or it is loaded late, while threads
 * run. A team that loses a wake-up hangs.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

long omp_library_work(int n_threads, int rounds);
long omp_library_work(int n_threads, int rounds) {
    long sum = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(n_threads) reduction(+ : sum)
    for (int round = 0; round < rounds; round++) {
        long here = 0;
#pragma omp barrier
#pragma omp critical
        here = round;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 64; i++)
            sum += i + here;
    }
    return sum;
}

__attribute__((constructor)) static void early(void) {
    if (getenv("OMP_LIBRARY_EARLY") != NULL)
        printf("in the constructor: %ld\n", omp_library_work(4, 20));
}
