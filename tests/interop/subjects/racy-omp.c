/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP: what this program prints depends on the order of its threads: sums of doubles in the order of the additions,
 * and which thread made which iteration of dynamic loops. It computes for different times, so natively each run
 * differs.
 *
 * usage: racy-omp [threads]   (default 4)
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 400, ROUNDS = 5 };
static int maker[N];
static double in_critical, in_atomic, under_lock;

static double compute(int i) {
    volatile double x = 1;
    for (int k = 0; k < i * 7919 % 300; k++)
        x = x + 1.0 / (k + 1);
    return 1.0 / (x + i);
}

static void add(int i, omp_lock_t *lock) {
    double x = compute(i);
    maker[i] = maker[i] * 5 + omp_get_thread_num();
#pragma omp critical
    in_critical += x * (1 + maker[i] * 1e-9);
#pragma omp atomic
    in_atomic += x;
    omp_set_lock(lock);
    under_lock = under_lock * 0.75 + x;
    omp_unset_lock(lock);
}

int main(int argc, char **argv) {
    omp_lock_t lock;
    double reduced = 0;
    int singles = 0, sections = 0;
    omp_init_lock(&lock);
    omp_set_num_threads(argc > 1 ? atoi(argv[1]) : 4);
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 3)
            for (int i = 0; i < N; i++)
                add(i, &lock);
#pragma omp for schedule(guided) nowait
            for (int i = 0; i < N; i++)
                add(N - 1 - i, &lock);
#pragma omp single
            singles = singles * 5 + omp_get_thread_num();
#pragma omp barrier
#pragma omp sections
            {
#pragma omp section
                sections = sections * 5 + omp_get_thread_num();
#pragma omp section
                compute(90);
            }
#pragma omp for reduction(+ : reduced)
            for (int i = 0; i < N; i++)
                reduced += compute(i) * in_critical;
        }
    }
    unsigned makers = 0;
    for (int i = 0; i < N; i++)
        makers = makers * 31 + (unsigned)maker[i];
    printf("%.17g %.17g %.17g %.17g %08x %d %d\n", in_critical, in_atomic, under_lock, reduced, makers, singles,
           sections);
    return 0;
}
