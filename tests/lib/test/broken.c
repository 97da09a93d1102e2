/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library with locks that keep no thread out and timed waits that end at once: preloaded, it makes a test fail, or
 * the test tests nothing. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at) {
    (void)mutex, (void)at;
    return 0;
}
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at) {
    (void)mutex, (void)clock, (void)at;
    return 0;
}
int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at) {
    (void)cond, (void)mutex, (void)clock, (void)at;
    return ETIMEDOUT;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    (void)lock;
    return 0;
}

int pthread_spin_lock(pthread_spinlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_spin_trylock(pthread_spinlock_t *lock) {
    (void)lock;
    return 0;
}
int pthread_spin_unlock(pthread_spinlock_t *lock) {
    (void)lock;
    return 0;
}

int sem_wait(sem_t *sem) {
    (void)sem;
    return 0;
}
int sem_trywait(sem_t *sem) {
    (void)sem;
    return 0;
}

int mtx_lock(mtx_t *mutex) {
    (void)mutex;
    return thrd_success;
}
int mtx_unlock(mtx_t *mutex) {
    (void)mutex;
    return thrd_success;
}
