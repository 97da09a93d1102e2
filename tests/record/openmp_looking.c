/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads look up a function of OpenMP's run-time library by name, again and again, while main loads modules with a
 * region in their constructors. usage: openmp-looking LIBRARY MODULE...
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { N = 3 };

static atomic_bool over;

static void *look(void *library) {
    while (!over && dlsym(library, "GOMP_parallel") != NULL)
        ;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[N];
    int n_loaded = 0;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL)
        return 2;
    for (int i = 0; i < N; i++)
        if (pthread_create(&threads[i], NULL, look, library) != 0)
            return 2;
    for (int i = 2; i < argc; i++)
        n_loaded += dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) != NULL;
    over = true;
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    printf("%d modules\n", n_loaded);
    return 0;
}
