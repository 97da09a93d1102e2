/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allocator that locks in free(), as real ones do. A dlsym that failed has left an error message behind; the next
 * dlsym that succeeds frees it. So when the library looks up the C library's functions on the process's first lock,
 * free() comes back with a second one from inside the look-up.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

extern void __libc_free(void *block);

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_locking;
int n_locked_frees;

void free(void *block) {
    if (is_locking) {
        pthread_mutex_lock(&heap_lock);
        n_locked_frees++;
    }
    __libc_free(block);
    if (is_locking)
        pthread_mutex_unlock(&heap_lock);
}

__attribute__((constructor)) static void construct(void) {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    dlsym(RTLD_DEFAULT, "no_such_function");
    is_locking = 1;
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    dlerror();
}
