/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of libgomp that OpenMP's compilers call, looked up when they are wanted: nothing else needs libgomp. */
#ifndef BENCH_LIBGOMP_H
#define BENCH_LIBGOMP_H

#include <dlfcn.h>
#include <stddef.h>

struct bench_libgomp {
    void (*parallel)(void (*function)(void *), void *data, unsigned n_threads, unsigned flags);
    void (*barrier)(void);
    int (*thread)(void);
    int (*n_threads)(void);
    void (*set_dynamic)(int);
};

/* NULL: all of them were found. Else the reason why not. */
static inline const char *bench_libgomp_find(struct bench_libgomp *omp) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {{"GOMP_parallel", &omp->parallel},
                  {"GOMP_barrier", &omp->barrier},
                  {"omp_get_thread_num", &omp->thread},
                  {"omp_get_num_threads", &omp->n_threads},
                  {"omp_set_dynamic", &omp->set_dynamic}};
    void *library = dlopen("libgomp.so.1", RTLD_NOW);
    if (library == NULL)
        return dlerror();
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if ((*(void **)wanted[i].function = dlsym(library, wanted[i].name)) == NULL)
            return dlerror();
    return NULL;
}

#endif
