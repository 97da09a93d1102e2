/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses a lock of openmp_stub.c, and then its futexes. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "openmp_stub.h"

static void *wait_there(void *argument) {
    stub_wait();
    return argument;
}

int main(void) {
    int lock = 0;
    pthread_t thread;
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    if (pthread_create(&thread, NULL, wait_there, NULL) != 0)
        abort();
    usleep(50000);
    stub_wake();
    pthread_join(thread, NULL);
    return 0;
}
