/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An IFUNC resolver takes a lock: the first call comes while the program is being relocated. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int answer(void) {
    return pthread_mutex_trylock(&lock) == 0 ? 42 : 0;
}

__attribute__((used)) static int (*resolve(void))(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return answer;
}

int chosen(void) __attribute__((ifunc("resolve")));
