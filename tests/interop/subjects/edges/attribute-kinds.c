/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every combination of mutex type, protocol, robustness and sharing, of read-write lock kind and sharing, in memory
 * that was full of ones before init: some combinations are the library's, some are passed to the C library, and each
 * must answer as the C library does, in a condition too. All results are printed; the script compares them with the
 * C library's own.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static const struct timespec past = {1, 0};

/* One call, one word: the arguments of one printf have no order. */
#define SAY(call) printf(" " #call " %d\n", (call))

static void try_mutex(const pthread_mutexattr_t *attr, int type) {
    const int is_recursive = type == PTHREAD_MUTEX_RECURSIVE, is_checked = type == PTHREAD_MUTEX_ERRORCHECK;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    memset(&mutex, 0xEE, sizeof mutex);
    memset(&cond, 0xEE, sizeof cond);
    SAY(pthread_mutex_init(&mutex, attr));
    SAY(pthread_cond_init(&cond, NULL));
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_trylock(&mutex));
    if (is_recursive)
        SAY(pthread_mutex_unlock(&mutex));
    if (is_checked)
        SAY(pthread_mutex_lock(&mutex));
    if (!is_recursive)
        SAY(pthread_mutex_timedlock(&mutex, &past));
    SAY(pthread_cond_timedwait(&cond, &mutex, &past));
    SAY(pthread_mutex_trylock(&mutex));
    if (is_recursive)
        SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    if (is_recursive || is_checked)
        SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_destroy(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_consistent(&mutex));
    SAY(pthread_cond_destroy(&cond));
    SAY(pthread_mutex_destroy(&mutex));
}

static void try_rwlock(const pthread_rwlockattr_t *attr) {
    pthread_rwlock_t lock;
    memset(&lock, 0xEE, sizeof lock);
    SAY(pthread_rwlock_init(&lock, attr));
    SAY(pthread_rwlock_rdlock(&lock));
    SAY(pthread_rwlock_tryrdlock(&lock));
    SAY(pthread_rwlock_trywrlock(&lock));
    SAY(pthread_rwlock_timedwrlock(&lock, &past));
    SAY(pthread_rwlock_unlock(&lock));
    SAY(pthread_rwlock_unlock(&lock));
    SAY(pthread_rwlock_wrlock(&lock));
    SAY(pthread_rwlock_wrlock(&lock));
    SAY(pthread_rwlock_rdlock(&lock));
    SAY(pthread_rwlock_tryrdlock(&lock));
    SAY(pthread_rwlock_unlock(&lock));
    SAY(pthread_rwlock_destroy(&lock));
}

#define SAY_ERRNO(call) printf(" " #call " %s\n", (call) == 0 ? "0" : strerrorname_np(errno))

static void try_semaphore(int shared) {
    sem_t sem;
    memset(&sem, 0xEE, sizeof sem);
    SAY_ERRNO(sem_init(&sem, shared, 1));
    SAY_ERRNO(sem_wait(&sem));
    SAY_ERRNO(sem_trywait(&sem));
    SAY_ERRNO(sem_timedwait(&sem, &past));
    SAY_ERRNO(sem_init(&sem, shared, (unsigned)SEM_VALUE_MAX + 1));
    SAY_ERRNO(sem_init(&sem, shared, SEM_VALUE_MAX));
    SAY_ERRNO(sem_post(&sem));
    SAY_ERRNO(sem_destroy(&sem));
}

int main(void) {
    static const int type[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                               PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t rwlock;
    pthread_mutexattr_init(&mutex);
    pthread_rwlockattr_init(&rwlock);
    for (int i = 0; i < 4 * 2 * 2 * 2; i++) {
        int t = type[i / 8], inherit = i / 4 % 2, robust = i / 2 % 2, shared = i % 2;
        pthread_mutexattr_settype(&mutex, t);
        pthread_mutexattr_setprotocol(&mutex, inherit ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutexattr_setrobust(&mutex, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        pthread_mutexattr_setpshared(&mutex, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        printf("mutex: type %d inherit %d robust %d shared %d\n", t, inherit, robust, shared);
        try_mutex(&mutex, t);
    }
    for (int i = 0; i < 3 * 2; i++) {
        pthread_rwlockattr_setkind_np(&rwlock, i / 2);
        pthread_rwlockattr_setpshared(&rwlock, i % 2);
        printf("rwlock: kind %d shared %d\n", i / 2, i % 2);
        try_rwlock(&rwlock);
    }
    for (int shared = 0; shared < 2; shared++) {
        printf("semaphore: shared %d\n", shared);
        try_semaphore(shared);
    }
    return 0;
}
