/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads a library on libgomp, as a Python package is loaded: in a scope of its own. usage: openmp-loader FILE */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    long (*work)(int, int) = NULL;
    if (library != NULL)
        *(void **)&work = dlsym(library, "omp_library_work");
    if (work == NULL)
        return 1;
    printf("sum %ld\n", work(4, 20));
    return 0;
}
