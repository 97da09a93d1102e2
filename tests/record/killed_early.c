/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that synchronizes in its constructor, which runs before the recorder's. */
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void locks_early(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
