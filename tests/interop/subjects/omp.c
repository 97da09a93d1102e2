/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP on libgomp, which starts its team with pthread_create and synchronises on futexes of its own beside pthread
 * objects: both kinds in one process. Argument: number of threads.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long fibonacci(int n) {
    if (n < 2)
        return n;
    long a, b;
#pragma omp task shared(a) if (n > 12)
    a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 12)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(int argc, char **argv) {
    int n_threads = argc > 1 ? atoi(argv[1]) : 4;
    omp_set_dynamic(0);
    omp_set_num_threads(n_threads);

    long critical = 0, atomic = 0, reduced = 0, locked = 0, nested = 0, broken = 0, singles = 0;
    int team = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);

#pragma omp parallel reduction(+ : reduced)
    {
#pragma omp single
        team = omp_get_num_threads();
        for (int i = 0; i < 2000; i++) {
#pragma omp critical
            critical++;
#pragma omp atomic
            atomic++;
            omp_set_lock(&lock);
            locked++;
            omp_unset_lock(&lock);
            omp_set_nest_lock(&nest);
            omp_set_nest_lock(&nest);
            nested++;
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
            reduced += i;
        }
    }

    static int stage[256];
#pragma omp parallel reduction(+ : broken)
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads();
        for (int round = 1; round <= 100; round++) {
            stage[me] = round;
#pragma omp barrier
            for (int i = 0; i < all; i++)
                broken += stage[i] != round;
#pragma omp barrier
#pragma omp single
            singles++;
        }
    }

    long ordered = 0;
#pragma omp parallel for ordered schedule(dynamic, 1)
    for (int i = 0; i < 200; i++) {
#pragma omp ordered
        ordered = (ordered * 31 + i) % 1000003;
    }

    long dynamic = 0;
    for (int region = 0; region < 200; region++) {
#pragma omp parallel for schedule(guided) reduction(+ : dynamic)
        for (int i = 0; i < 100; i++)
            dynamic += i;
    }

    long fib = 0;
#pragma omp parallel
#pragma omp single
    fib = fibonacci(20);

    printf("team %d critical %ld atomic %ld locked %ld nested %ld reduced %ld\n", team, critical, atomic, locked,
           nested, reduced);
    printf("barriers broken %ld singles %ld ordered %ld dynamic %ld fibonacci %ld\n", broken, singles, ordered, dynamic,
           fib);
    long each = 2000L * team;
    return !(team == n_threads && critical == each && atomic == each && locked == each && nested == each &&
             reduced == 1999000L * team && broken == 0 && singles == 100 && dynamic == 990000 && fib == 6765);
}
