/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads libraries on OpenMP, as Python packages are loaded: each in a scope of its own. usage: openmp-loader OTHER FILE
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *other = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *library = other != NULL ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    long (*work)(int, int) = NULL;
    if (library != NULL)
        *(void **)&work = dlsym(library, "omp_library_work");
    if (work == NULL)
        return 1;
    printf("sum %ld\n", work(4, 20));
    return 0;
}
