/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads OpenMP's run-time library, and looks its functions up by name in that library alone: 30 regions of 3 threads
 * with two barriers and a critical section each. Of several libraries one after the other. usage: openmp-looked-up
 * LIBRARY...
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

typedef void parallel(void (*body)(void *), void *data, unsigned n_threads, unsigned flags);
typedef void call(void);

static call *barrier, *critical_start, *critical_end;
static long sum;

static void body(void *data) {
    barrier();
    critical_start();
    sum += *(const long *)data;
    critical_end();
    barrier();
}

static void *look_up(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL)
        printf("no %s\n", name);
    return found;
}

static bool use(const char *file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    parallel *region = NULL;
    long one = 1;
    if (library == NULL)
        return false;
    *(void **)&region = look_up(library, "GOMP_parallel");
    *(void **)&barrier = look_up(library, "GOMP_barrier");
    *(void **)&critical_start = look_up(library, "GOMP_critical_start");
    *(void **)&critical_end = look_up(library, "GOMP_critical_end");
    if (region == NULL || barrier == NULL || critical_start == NULL || critical_end == NULL)
        return false;
    for (int i = 0; i < 30; i++)
        region(body, &one, 3, 0);
    return dlsym(library, "GOMP_no_such_function") == NULL;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!use(argv[i]))
            return 2;
    printf("sum %ld, and no other\n", sum);
    return 0;
}
