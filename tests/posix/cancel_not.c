/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that are no cancellation points: a pending request, or a request that comes while they block, is not acted
 * upon inside them but at the next point. Source: POSIX.1-2017 2.9.5 (mutex and barrier calls shall not be), glibc 2.36
 * for the rwlock calls, which POSIX lets be cancellation points and glibc does not.
 */
#include "topic.h"

#include <semaphore.h>
#include <threads.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t sem;
static mtx_t mtx;
static atomic_int entered, returned;

/* A call that blocks until the test lets it go, made by a thread that is cancelled meanwhile. */
static void *enter(void *call) {
    atomic_fetch_add(&entered, 1);
    (*(void (*const *)(void))call)();
    atomic_fetch_add(&returned, 1);
    pthread_testcancel();
    FAIL("the cancel was forgotten");
}
static void *enter_pending(void *call) {
    OK(pthread_cancel(pthread_self()));
    return enter(call);
}
static void blocked(void (*call)(void), void (*let_go)(void)) {
    pthread_t t = thread_start(enter, &call);
    await(&entered, 1);
    let_threads_block();
    OK(pthread_cancel(t));
    let_threads_block();
    CHECK_INT(atomic_load(&returned), 0);
    CHECK_RC(pthread_tryjoin_np(t, NULL), EBUSY);
    let_go();
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&returned), 1);
}
static void pending(void (*call)(void)) {
    thread_join_cancelled(thread_start(enter_pending, &call));
    CHECK_INT(atomic_load(&returned), 1);
}

static void unlock_mutex(void) {
    OK(pthread_mutex_unlock(&mutex));
}
static void do_mutex_lock(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}
static void do_mutex_timedlock(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_mutex_timedlock(&mutex, &end));
    OK(pthread_mutex_unlock(&mutex));
}
static void do_mutex_clocklock(void) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    OK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &end));
    OK(pthread_mutex_unlock(&mutex));
}
TEST(cancel_not_mutex_lock__blocked, "a locker cancelled while it waits gets the mutex first") {
    OK(pthread_mutex_lock(&mutex));
    blocked(do_mutex_lock, unlock_mutex);
    OK(pthread_mutex_trylock(&mutex));
}
TEST(cancel_not_mutex_timedlock__blocked, "a timed locker cancelled while it waits gets the mutex first") {
    OK(pthread_mutex_lock(&mutex));
    blocked(do_mutex_timedlock, unlock_mutex);
    OK(pthread_mutex_trylock(&mutex));
}
TEST(cancel_not_mutex_clocklock__blocked, "a clocklocker cancelled while it waits gets the mutex first") {
    OK(pthread_mutex_lock(&mutex));
    blocked(do_mutex_clocklock, unlock_mutex);
    OK(pthread_mutex_trylock(&mutex));
}
static void use_mutex(void) {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_trylock(&m));
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_destroy(&m));
    OK(pthread_mutex_init(&m, NULL));
    do_mutex_lock();
    do_mutex_timedlock();
}
TEST(cancel_not_mutex__pending, "lock, trylock, timedlock, unlock, init, destroy with a pending request return") {
    pending(use_mutex);
}

static void enter_barrier(void) {
    int rc = pthread_barrier_wait(&barrier);
    CHECK(rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD);
}
TEST(cancel_not_barrier_wait__blocked, "a waiter cancelled in the barrier leaves it only with the others") {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    blocked(enter_barrier, enter_barrier);
}
TEST(cancel_not_barrier_wait__pending, "barrier_wait with a pending request returns SERIAL_THREAD at a barrier for 1") {
    OK(pthread_barrier_init(&barrier, NULL, 1));
    pending(enter_barrier);
}

static void unlock_rw(void) {
    OK(pthread_rwlock_unlock(&rw));
}
static void do_rdlock(void) {
    OK(pthread_rwlock_rdlock(&rw));
    OK(pthread_rwlock_unlock(&rw));
}
static void do_wrlock(void) {
    OK(pthread_rwlock_wrlock(&rw));
    OK(pthread_rwlock_unlock(&rw));
}
static void do_timedwrlock(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_rwlock_timedwrlock(&rw, &end));
    OK(pthread_rwlock_unlock(&rw));
}
static void use_rwlock(void) {
    do_rdlock();
    do_wrlock();
    do_timedwrlock();
}
TEST(cancel_not_rwlock_rdlock__blocked, "a reader cancelled while it waits gets the lock first (glibc)") {
    OK(pthread_rwlock_wrlock(&rw));
    blocked(do_rdlock, unlock_rw);
    OK(pthread_rwlock_trywrlock(&rw));
}
TEST(cancel_not_rwlock_wrlock__blocked, "a writer cancelled while it waits gets the lock first (glibc)") {
    OK(pthread_rwlock_rdlock(&rw));
    blocked(do_wrlock, unlock_rw);
    OK(pthread_rwlock_trywrlock(&rw));
}
TEST(cancel_not_rwlock_timedwrlock__blocked, "a timed writer cancelled while it waits gets the lock first (glibc)") {
    OK(pthread_rwlock_rdlock(&rw));
    blocked(do_timedwrlock, unlock_rw);
    OK(pthread_rwlock_trywrlock(&rw));
}
TEST(cancel_not_rwlock__pending, "rdlock, wrlock, timedwrlock, unlock with a pending request return (glibc)") {
    pending(use_rwlock);
}

static void do_spin(void) {
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
}
static void unlock_spin(void) {
    OK(pthread_spin_unlock(&spin));
}
TEST(cancel_not_spin_lock__blocked, "a spinner cancelled while it waits gets the lock first") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    blocked(do_spin, unlock_spin);
}
static void do_mtx_lock(void) {
    CHECK_INT(mtx_lock(&mtx), thrd_success);
    CHECK_INT(mtx_unlock(&mtx), thrd_success);
}
static void unlock_mtx(void) {
    CHECK_INT(mtx_unlock(&mtx), thrd_success);
}
TEST(cancel_not_mtx_lock__blocked, "a C11 locker cancelled while it waits gets the mtx first") {
    CHECK_INT(mtx_init(&mtx, mtx_plain), thrd_success);
    CHECK_INT(mtx_lock(&mtx), thrd_success);
    blocked(do_mtx_lock, unlock_mtx);
}
static void use_the_rest(void) {
    int value;
    OK(pthread_cond_signal(&cond));
    OK(pthread_cond_broadcast(&cond));
    SYS(sem_post(&sem));
    SYS(sem_trywait(&sem));
    SYS(sem_getvalue(&sem, &value));
    CHECK_ERRNO(sem_trywait(&sem), EAGAIN);
    CHECK_RC(pthread_tryjoin_np(pthread_self(), NULL), EBUSY);
}
TEST(cancel_not_others__pending, "signal, broadcast, sem_post, sem_trywait, sem_getvalue, tryjoin return") {
    SYS(sem_init(&sem, 0, 0));
    pending(use_the_rest);
}
