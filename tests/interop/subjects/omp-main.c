/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The main thread is one of a team, as in nearly every OpenMP program, and meets the others at barriers. Prints whether
 * a kernel thread other than its own has ever run it.
 */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/proc.h"

int main(void) {
    int n_away = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(8)
    for (int round = 0; round < 2000; round++) {
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            n_away += proc_kernel_thread() != getpid();
    }
    printf("main %s\n", n_away > 0 ? "is switched" : "keeps its kernel thread");
    return 0;
}
