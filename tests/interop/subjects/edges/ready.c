/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Under ready-lib.c: an ordinary program, which uses each kind of object, threads and time-outs once it has begun. By
 * then every interposer is ready.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

enum { N_THREADS = 4, N_ROUNDS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int n_arrived;

static void *work(void *arg) {
    for (int i = 0; i < N_ROUNDS; i++)
        pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&lock);
    if (++n_arrived == N_THREADS)
        pthread_cond_broadcast(&cond);
    while (n_arrived < N_THREADS)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
    sem_post(&sem);
    return arg;
}

int main(void) {
    pthread_t threads[N_THREADS];
    struct timespec past = time_in_ms(CLOCK_REALTIME, -1000);
    OK_ERRNO(sem_init(&sem, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, N_THREADS));
    CHECK_ERRNO(sem_timedwait(&sem, &past), ETIMEDOUT);
    for (int i = 0; i < N_THREADS; i++)
        threads[i] = thread_start(work, NULL);
    for (int i = 0; i < N_THREADS; i++) {
        thread_join(threads[i]);
        OK_ERRNO(sem_wait(&sem));
    }
    pthread_mutex_lock(&lock);
    CHECK_RC(pthread_cond_timedwait(&cond, &lock, &past), ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    printf("%d threads met\n", n_arrived);
    return 0;
}
