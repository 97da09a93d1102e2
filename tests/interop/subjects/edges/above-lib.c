/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Another interposer, preloaded ahead of the library. C11 objects guard its own state. Under the C library these never
 * come back to it, since glibc calls its own functions directly; so must ours, or the two call each other
 * until the stack ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>

long n_seen_above;

static mtx_t guard;
static once_flag once = ONCE_FLAG_INIT;
static int (*next)(pthread_mutex_t *);

static void start(void) {
    mtx_init(&guard, mtx_plain);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    call_once(&once, start);
    mtx_lock(&guard);
    n_seen_above++;
    mtx_unlock(&guard);
    return next(mutex);
}
