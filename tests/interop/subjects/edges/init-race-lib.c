/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that the library did not see being made (the C library's own helper threads are such; here they are made by
 * its pthread_create itself) make the process's first calls at the same moment, in a constructor: start-up must happen
 * once, and the later callers must wait until it is done. Lost counts mean that two were served differently.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { N_THREADS = 4, N_ROUNDS = 2000 };

const long n_expected = (long)N_THREADS * N_ROUNDS;
long n_counted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_ready;

static void *count(void *arg) {
    __atomic_add_fetch(&n_ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&n_ready, __ATOMIC_SEQ_CST) < N_THREADS)
        ;
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        n_counted++;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

__attribute__((constructor)) static void construct(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    pthread_t thread[N_THREADS];
    if (libc == NULL)
        abort();
    *(void **)&create = dlsym(libc, "pthread_create");
    *(void **)&join = dlsym(libc, "pthread_join");
    for (int i = 0; i < N_THREADS; i++)
        if (create(&thread[i], NULL, count, NULL) != 0)
            abort();
    for (int i = 0; i < N_THREADS; i++)
        join(thread[i], NULL);
}
