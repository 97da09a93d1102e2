/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the programs of disease.c pass their time, and their threads. */
#ifndef TESTS_DISEASE_H
#define TESTS_DISEASE_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Computes for so long by its own processor time, however many others compute. */
static inline void compute(long us) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    uint64_t until = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)us * 1000;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec < until);
}

static inline void pause_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&t, &t) != 0)
        ;
}

static inline void run(int n, void *(*routine)(void *)) {
    pthread_t threads[64];
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, routine, (void *)i) != 0)
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static inline void *computing_thread(void *argument) {
    compute(1000);
    return argument;
}

#endif
