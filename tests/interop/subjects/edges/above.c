/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Under above-lib.c: the interposer sees each of the program's locks once and no other, not those that a condition or
 * a C11 function takes inside, and the mutex that it passed on is locked.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <threads.h>

#include "lib/checks.h"
#include "lib/clock.h"

enum { N_LOCKS = 10 };

int main(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    const long *n_seen = dlsym(RTLD_DEFAULT, "n_seen_above");
    struct timespec past = time_in_ms(CLOCK_REALTIME, -1000);
    mtx_t plain;
    CHECK(n_seen != NULL);
    long before = *n_seen;
    for (int i = 0; i < N_LOCKS; i++) {
        OK(pthread_mutex_lock(&lock));
        CHECK(pthread_mutex_trylock(&lock) != 0);
        CHECK(pthread_cond_timedwait(&cond, &lock, &past) != 0);
        OK(pthread_mutex_unlock(&lock));
    }
    CHECK(mtx_init(&plain, mtx_plain) == thrd_success && mtx_lock(&plain) == thrd_success);
    CHECK(mtx_trylock(&plain) == thrd_busy && mtx_unlock(&plain) == thrd_success);
    printf("the interposer above saw %ld of %d\n", *n_seen - before, N_LOCKS);
    return *n_seen - before != N_LOCKS;
}
