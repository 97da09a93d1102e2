/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of two run-time libraries for OpenMP that are looked up by name. Built three times: the program; with
 * CALLS, a module that knows nothing of OpenMP and calls what it is given, as libffi does; and with REGION, a module
 * of OpenMP's that also looks the other library's function up. What is printed is the number of threads that the
 * library sees of which the function was asked for: 3 each time.
 *
 * usage: openmp-elsewhere CALLS REGION LIBRARY LIBRARY
 */
#include <stddef.h>

typedef void body_function(void *);
typedef void parallel(body_function *body, void *data, unsigned n_threads, unsigned flags);

void call_region(parallel *region, body_function *body, void *data);
int look_up_and_begin(void *other);

#ifdef CALLS
void call_region(parallel *region, body_function *body, void *data) {
    region(body, data, 3, 0);
    __asm__ volatile(""); /* no jump */
}
#elif defined REGION
#include <dlfcn.h>
#include <omp.h>

int look_up_and_begin(void *other) {
    int seen = 0;
    if (dlsym(other, "GOMP_parallel") == NULL)
        return -1;
#pragma omp parallel num_threads(3)
#pragma omp master
    seen = omp_get_num_threads();
    return seen;
}
#else
#include <dlfcn.h>
#include <stdio.h>

typedef int number(void);

struct library {
    parallel *region;
    number *n_threads;
    int seen;
};

static void look(void *library) {
    struct library *l = library;
    __atomic_store_n(&l->seen, l->n_threads(), __ATOMIC_RELAXED); /* each thread sees the same */
}

static void *look_up(const char *file, const char *name) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL)
        printf("no %s in %s\n", name, file);
    return found;
}

int main(int argc, char **argv) {
    void (*call)(parallel *, body_function *, void *) = NULL;
    int (*begin)(void *) = NULL;
    struct library libraries[2] = {{0}};
    if (argc != 5)
        return 2;
    *(void **)&call = look_up(argv[1], "call_region");
    for (int i = 0; i < 2; i++) {
        *(void **)&libraries[i].region = look_up(argv[3 + i], "GOMP_parallel");
        *(void **)&libraries[i].n_threads = look_up(argv[3 + i], "omp_get_num_threads");
        if (call == NULL || libraries[i].region == NULL || libraries[i].n_threads == NULL)
            return 2;
    }
    for (int i = 0; i < 2; i++) {
        call(libraries[i].region, look, &libraries[i]);
        printf("%d\n", libraries[i].seen);
    }
    *(void **)&begin = look_up(argv[2], "look_up_and_begin");
    if (begin == NULL)
        return 2;
    printf("%d\n", begin(dlopen(argv[4], RTLD_NOW | RTLD_LOCAL)));
    return 0;
}
#endif
