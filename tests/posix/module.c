/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A module that process.c loads and unloads. It locks in its constructor and destructor, keeps locks in its own static
 * memory and starts threads, without ever initialising or destroying an object.
 */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int constructed, n_once, arrived, left;
static int *unloaded;

static int lock_twice(void) {
    int failed = pthread_mutex_lock(&mutex) != 0 || pthread_mutex_lock(&mutex) != 0;
    return failed || pthread_mutex_unlock(&mutex) != 0 || pthread_mutex_unlock(&mutex) != 0;
}
static void count_once(void) {
    n_once++;
}
static void *call_outside(void *result) {
    char byte;
    struct iovec room = {.iov_base = &byte, .iov_len = 1};
    /* qemu-user says that nothing was received, not that there is no such file, if there is no room. */
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1};
    *(ssize_t *)result = recvmsg(-1, &message, 0);
    return NULL;
}
/* The loading thread has the dynamic linker's lock meanwhile. */
static int call_outside_in_thread(void) {
    pthread_t thread;
    ssize_t result = 0;
    if (pthread_create(&thread, NULL, call_outside, &result) != 0 || pthread_join(thread, NULL) != 0)
        return 0;
    return result == -1;
}
__attribute__((constructor)) static void at_load(void) {
    constructed = lock_twice() == 0 && pthread_once(&once, count_once) == 0 &&
                  (getenv(MODULE_CALLS_OUTSIDE) == NULL || call_outside_in_thread());
}
__attribute__((destructor)) static void at_unload(void) {
    if (unloaded != NULL && lock_twice() == 0)
        ++*unloaded;
}

static void *meet(void *n) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_mutex_lock(&mutex);
    if (++arrived == *(int *)n)
        pthread_cond_broadcast(&cond);
    while (arrived < *(int *)n)
        pthread_cond_wait(&cond, &mutex);
    left++;
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

int module_run(int n_threads, int *count_unloads) {
    pthread_t threads[16];
    unloaded = count_unloads;
    if (n_threads > 16 || pthread_once(&once, count_once) != 0)
        return -1;
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, meet, &n_threads) != 0)
            return -1;
    for (int i = 0; i < n_threads; i++)
        if (pthread_join(threads[i], NULL) != 0)
            return -1;
    /* Leaves the rwlock held: the memory goes away with the module. */
    return pthread_rwlock_wrlock(&rwlock) == 0 && constructed && n_once == 1 ? left : -1;
}
