/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process's first pthread call of all: the constructor locks a statically initialised recursive mutex. Built twice;
 * linked with -z initfirst its constructor runs before the C library's own and before there is an `environ`.
 */
#include <pthread.h>

pthread_mutex_t early_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

__attribute__((constructor)) static void construct(void) {
    pthread_mutex_lock(&early_lock);
    pthread_mutex_unlock(&early_lock);
}
