/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asynchronous cancellation of threads that wait for a lock. POSIX allows no such call with that type. Programs make it
 * nevertheless, and test suites do, and glibc cancels the thread in its wait: else a thread that waits for itself
 * cannot be joined.
 */
#include <semaphore.h>

#include "topic.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int entered, cleaned;

static void clean(void *unused) {
    (void)unused;
    atomic_fetch_add(&cleaned, 1);
}
static void *wait_asynchronously(void *call) {
    pthread_cleanup_push(clean, NULL);
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    atomic_fetch_add(&entered, 1);
    (*(void (*const *)(void))call)();
    FAIL("the lock was taken");
    pthread_cleanup_pop(0);
    return NULL;
}
static pthread_t waiter(void (**call)(void)) {
    int before = atomic_load(&entered);
    pthread_t t = thread_start(wait_asynchronously, call);
    await(&entered, before + 1);
    let_threads_block();
    return t;
}
static void cancel(pthread_t t) {
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
}
static void cancelled_in(void (*call)(void)) {
    cancel(waiter(&call));
    CHECK_INT(atomic_load(&cleaned), 1);
}

static void lock_mutex(void) {
    OK(pthread_mutex_lock(&mutex));
}
static void lock_mutex_until(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_mutex_timedlock(&mutex, &end));
}
static void lock_twice(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&mutex));
}
static void read_lock(void) {
    OK(pthread_rwlock_rdlock(&rw));
}
static void write_lock(void) {
    OK(pthread_rwlock_wrlock(&rw));
}
static void sleep_long(void) {
    struct timespec time = {LONG_MS / 1000, 0};
    nanosleep(&time, NULL);
}
static void *lock_and_unlock(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(cancel_async_mutex_lock__blocked, "a locker is cancelled in its wait; the mutex serves other threads afterwards") {
    OK(pthread_mutex_lock(&mutex));
    cancelled_in(lock_mutex);
    OK(pthread_mutex_unlock(&mutex));
    thread_join(thread_start(lock_and_unlock, NULL));
}
TEST(cancel_async_mutex_timedlock__blocked, "a locker with a deadline is cancelled in its wait") {
    OK(pthread_mutex_lock(&mutex));
    cancelled_in(lock_mutex_until);
    OK(pthread_mutex_unlock(&mutex));
    thread_join(thread_start(lock_and_unlock, NULL));
}
TEST(cancel_async_mutex_lock__of_its_own, "a thread that waits for the mutex that it holds is cancelled") {
    cancelled_in(lock_twice);
}
TEST(cancel_async_mutex_lock__between_others, "of four lockers the second is cancelled: the others get the mutex") {
    void (*call)(void) = lock_mutex;
    pthread_t threads[3];
    OK(pthread_mutex_lock(&mutex));
    threads[0] = thread_start(lock_and_unlock, NULL);
    let_threads_block();
    pthread_t second = waiter(&call);
    threads[1] = thread_start(lock_and_unlock, NULL);
    threads[2] = thread_start(lock_and_unlock, NULL);
    let_threads_block();
    cancel(second);
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
}
/* Glibc leaves them counted in the lock, so it serves no other thread afterwards. */
TEST(cancel_async_rwlock__blocked, "a reader and a writer are cancelled in their waits") {
    void (*calls[2])(void) = {read_lock, write_lock};
    OK(pthread_rwlock_wrlock(&rw));
    pthread_t reader = waiter(&calls[0]), writer = waiter(&calls[1]);
    cancel(writer);
    cancel(reader);
}

/* The thread may get it after the cancellation came, and gives it back then. */
static sem_t sem;
static void take_token(void) {
    OK(sem_wait(&sem));
}
static void post(void) {
    OK(sem_post(&sem));
}
static void unlock_mutex(void) {
    OK(pthread_mutex_unlock(&mutex));
}
static void unlock_rw(void) {
    OK(pthread_rwlock_unlock(&rw));
}
static void *take_asynchronously(void *call) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    atomic_fetch_add(&entered, 1);
    (*(void (*const *)(void))call)();
    FAIL("the cancellation has not acted");
    return NULL;
}
static void cancelled_as_it_gets(void (*take)(void), void (*give)(void), int i) {
    pthread_t t = thread_start(take_asynchronously, &take);
    await(&entered, i + 1);
    OK(pthread_cancel(t));
    give();
    thread_join_cancelled(t);
}
#define ROUNDS 100
TEST(cancel_async_mutex_lock__as_it_gets_it, "a locker is cancelled as the mutex is unlocked: others get the mutex") {
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_trylock(&mutex));
        cancelled_as_it_gets(lock_mutex, unlock_mutex, i);
    }
}
TEST(cancel_async_rwlock_wrlock__as_it_gets_it, "a writer is cancelled as the lock is unlocked: others get the lock") {
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_rwlock_trywrlock(&rw));
        cancelled_as_it_gets(write_lock, unlock_rw, i);
    }
}
TEST(cancel_async_sem_wait__as_it_gets_it, "a waiter is cancelled as a token comes: the token is there afterwards") {
    OK(sem_init(&sem, 0, 0));
    for (int i = 0; i < ROUNDS; i++) {
        cancelled_as_it_gets(take_token, post, i);
        OK(sem_trywait(&sem));
    }
}

/* The clean-up handler is a place where a thread synchronizes, too. */
static void wait_in_handler(void *unused) {
    struct timespec time = {0, 1000000};
    (void)unused;
    nanosleep(&time, NULL);
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&cleaned, 1);
    OK(pthread_mutex_unlock(&mutex));
}
static void *sleep_asynchronously(void *unused) {
    (void)unused;
    pthread_cleanup_push(wait_in_handler, NULL);
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    atomic_fetch_add(&entered, 1);
    sleep_long();
    FAIL("it slept to the end");
    pthread_cleanup_pop(0);
    return NULL;
}
TEST(cancel_async_nanosleep__handler_waits,
     "cancelled at the beginning of a sleep: the clean-up handler sleeps, locks") {
    for (int i = 0; i < 20; i++) {
        pthread_t t = thread_start(sleep_asynchronously, NULL);
        await(&entered, i + 1);
        cancel(t);
    }
    CHECK_INT(atomic_load(&cleaned), 20);
}
TEST(rwlock_destroy__held, "destroy of a lock that a thread holds: 0, as glibc returns it") {
    OK(pthread_rwlock_rdlock(&rw));
    OK(pthread_rwlock_destroy(&rw));
    OK(pthread_rwlock_init(&rw, NULL));
    OK(pthread_rwlock_wrlock(&rw));
    OK(pthread_rwlock_destroy(&rw));
}
