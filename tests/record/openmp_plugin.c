/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A plug-in with tasks, for openmp_plugins.c. Its tasks call another plug-in's function, which may have a run-time
 * library of its own, and go on with their own. The last call of some is one of the run-time library's, so that the
 * compiler makes it a jump: the library then seems to be called from elsewhere.
 */
#include <omp.h>
#include <stddef.h>

enum { N_TASKS = 24 };

/* With `other`, each task calls it. 0: all is as it should be. */
long plugin_work(int rounds, long (*other)(int rounds, void *other));
long plugin_work(int rounds, long (*other)(int rounds, void *other)) {
    long n_wrong = 0;
    long n_begun = 0,
         n_ended = 0; /* by critical sections: one that is entered by one library and left by another shows */
    for (int round = 0; round < rounds; round++)
#pragma omp parallel num_threads(2)
#pragma omp single nowait
        for (int i = 0; i < N_TASKS; i++) {
#pragma omp task shared(n_wrong, n_begun, n_ended)
            {
#pragma omp critical(begun)
                n_begun++;
#pragma omp task shared(n_ended)
                {
#pragma omp critical(ended)
                    n_ended++;
                }
                if (other != NULL && i % 8 == 0) {
                    long wrong = other(1, NULL);
#pragma omp atomic
                    n_wrong += wrong;
                }
#pragma omp taskwait
#pragma omp critical(ended)
                n_ended++;
            }
        }
    return n_wrong + (n_begun != (long)rounds * N_TASKS) + (n_ended != 2L * rounds * N_TASKS);
}
