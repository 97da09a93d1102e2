/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls from before main. With -DPREINIT the program's .preinit_array locks, ahead of every constructor; else
 * early-lib.c does. A call served before the library knows its engine leaves an owner that the unlock does not find, or
 * options taken from an environment that does not exist yet: the mutex must be free for another thread, and the script
 * looks at which engine the library says it has started.
 */
#include <pthread.h>
#include <stdio.h>

#include "lib/threads.h"

#ifdef PREINIT
static pthread_mutex_t early_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void before_everything(void) {
    pthread_mutex_lock(&early_lock);
    pthread_mutex_unlock(&early_lock);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = before_everything;
#else
extern pthread_mutex_t early_lock;
#endif

static void *other(void *arg) {
    (void)arg;
    int result = pthread_mutex_trylock(&early_lock);
    if (result == 0)
        pthread_mutex_unlock(&early_lock);
    return (void *)(long)result;
}

int main(void) {
    void *result = thread_join(thread_start(other, NULL));
    printf("another thread's trylock: %ld\n", (long)result);
    return result != NULL;
}
