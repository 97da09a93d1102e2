/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of which the probes must tell, so many of each; it prints the addresses that their arguments must be. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex;
static pthread_cond_t cond;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;

static void *meet(void *argument) {
    pthread_barrier_wait(&barrier);
    return argument;
}

int main(void) {
    static const struct timespec past = {1, 0};
    pthread_t thread;
    printf("thread %p\nmutex %p\ncond %p\nrwlock %p\nbarrier %p\nsem %p\n", (void *)&thread, (void *)&mutex,
           (void *)&cond, (void *)&rwlock, (void *)&barrier, (void *)&sem);
    fflush(stdout);
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&cond, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        if (i == 2)
            pthread_cond_timedwait(&cond, &mutex, &past); /* one more release and acquisition */
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_timedlock(&mutex, &past);
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
    pthread_cond_broadcast(&cond);
    pthread_cond_destroy(&cond);
    pthread_mutex_destroy(&mutex);
    for (int i = 0; i < 2; i++) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_destroy(&rwlock);
    sem_init(&sem, 0, 0);
    sem_post(&sem);
    sem_wait(&sem);
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, meet, NULL) != 0)
        return 1;
    pthread_barrier_wait(&barrier);
    return pthread_join(thread, NULL);
}
