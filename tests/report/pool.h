/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pool of threads that take tasks: of disease.c and of cured.c. Its objects are variables, so that reports name them.
 */
#ifndef TESTS_POOL_H
#define TESTS_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "disease.h"

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_there = PTHREAD_COND_INITIALIZER;
static int n_tasks, n_got;
static bool over;

static inline void take_tasks(long us) {
    pthread_mutex_lock(&pool_lock);
    for (;;) {
        while (n_tasks == 0 && !over)
            pthread_cond_wait(&work_there, &pool_lock);
        if (n_tasks == 0)
            break;
        n_tasks--;
        n_got++;
        pthread_mutex_unlock(&pool_lock);
        compute(us);
        pthread_mutex_lock(&pool_lock);
    }
    pthread_mutex_unlock(&pool_lock);
}

static inline void finish(pthread_t *threads, int n) {
    pthread_mutex_lock(&pool_lock);
    over = true;
    pthread_cond_broadcast(&work_there);
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* One thread gathers what the first one gives, so many at a time. It is told of each, or only when all are there. */
enum { GATHERED_AT_ONCE = 10, GATHERINGS = 1000 };
static pthread_mutex_t basket = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gathered = PTHREAD_COND_INITIALIZER;
static int n_gathered;

static inline void *gathering_thread(void *argument) {
    pthread_mutex_lock(&basket);
    for (int i = 0; i < GATHERINGS; i++) {
        while (n_gathered < GATHERED_AT_ONCE)
            pthread_cond_wait(&gathered, &basket);
        n_gathered -= GATHERED_AT_ONCE;
    }
    pthread_mutex_unlock(&basket);
    return argument;
}

static inline void gather(int told_at) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, gathering_thread, NULL) != 0)
        abort();
    for (int i = 0; i < GATHERED_AT_ONCE * GATHERINGS; i++) {
        compute(5);
        pthread_mutex_lock(&basket);
        if (++n_gathered >= told_at)
            pthread_cond_signal(&gathered);
        pthread_mutex_unlock(&basket);
    }
    pthread_join(thread, NULL);
}

/* Threads that share so many short sections of a lock, with as much work outside. */
enum { SECTIONS = 6000 };
static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;

static inline void *ledger_thread(void *argument) {
    for (long n = (long)argument; n > 0; n--) {
        pthread_mutex_lock(&ledger);
        compute(5);
        pthread_mutex_unlock(&ledger);
        compute(20);
    }
    return NULL;
}

static inline void share_ledger(int n_threads) {
    pthread_t threads[64];
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, ledger_thread, (void *)(long)(SECTIONS / n_threads)) != 0)
            abort();
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

#endif
