/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program with a library that starts a team before main; main starts one of that many threads. */
#include <stdio.h>
#include <stdlib.h>

long omp_library_work(int n_threads, int rounds);

int main(int argc, char **argv) {
    printf("in main: %ld\n", omp_library_work(argc > 1 ? atoi(argv[1]) : 4, 20));
    return 0;
}
