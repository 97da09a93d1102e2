/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits of which the time is over, one of each kind, of 100 ms; a thread has the locks and keeps them. Each is a global
 * variable. The main thread waits. usage: timed [for-ever]; with it, a thread waits for the mutex until the process
 * ends
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER, cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t kept_for_writing = PTHREAD_RWLOCK_INITIALIZER, kept_for_reading = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t no_signal = PTHREAD_COND_INITIALIZER;
static sem_t no_post;
static pthread_barrier_t taken, over;

static void *keeper(void *argument) {
    pthread_mutex_lock(&kept_mutex);
    pthread_rwlock_wrlock(&kept_for_writing);
    pthread_rwlock_rdlock(&kept_for_reading);
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&over);
    pthread_rwlock_unlock(&kept_for_reading);
    pthread_rwlock_unlock(&kept_for_writing);
    pthread_mutex_unlock(&kept_mutex);
    return argument;
}

static const struct timespec *soon(void) {
    static struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 100000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return &at;
}

static void *waits(void *argument) {
    pthread_mutex_lock(&kept_mutex);
    return argument;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    int n_over = 0;
    sem_init(&no_post, 0, 0);
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&over, NULL, 2);
    pthread_create(&thread, NULL, keeper, NULL);
    pthread_barrier_wait(&taken);
    if (argc > 1) {
        pthread_create(&thread, NULL, waits, NULL);
        sem_timedwait(&no_post, soon());
        return 0;
    }
    n_over += pthread_mutex_timedlock(&kept_mutex, soon()) != 0;
    n_over += pthread_rwlock_timedrdlock(&kept_for_writing, soon()) != 0;
    n_over += pthread_rwlock_timedwrlock(&kept_for_reading, soon()) != 0;
    n_over += sem_timedwait(&no_post, soon()) != 0;
    pthread_mutex_lock(&cond_mutex);
    n_over += pthread_cond_timedwait(&no_signal, &cond_mutex, soon()) != 0;
    pthread_mutex_unlock(&cond_mutex);
    pthread_barrier_wait(&over);
    pthread_join(thread, NULL);
    printf("%d\n", n_over);
    return 0;
}
