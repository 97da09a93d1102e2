/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads libraries on OpenMP, as Python packages are loaded: each in a scope of its own. usage: openmp-loader OTHER FILE
 * Built with OpenMP the program has regions of its own: one before, and with the argument `within` one around it all.
 */
#include <dlfcn.h>
#include <stdio.h>

static int load_and_work(char **argv, long *sum) {
    void *other = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *library = other != NULL ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    long (*work)(int, int) = NULL;
    if (library != NULL)
        *(void **)&work = dlsym(library, "omp_library_work");
    if (work == NULL)
        return 1;
    *sum += work(4, 20);
    return 0;
}

int main(int argc, char **argv) {
    long sum = 0;
    int failed = 1;
    if (argc < 3)
        return 2;
#ifdef _OPENMP
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum++;
    if (argc > 3) {
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp single
            failed = load_and_work(argv, &sum);
#pragma omp critical
            sum++;
        }
    } else
#endif
        failed = load_and_work(argv, &sum);
    printf("sum %ld\n", sum);
    return failed;
}
