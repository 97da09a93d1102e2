/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiters under a real-time policy: the highest priority is served first, and the first to come among equals. Every
 * waiter is blocked before the first is served, on one CPU, where a waiter of higher priority also runs first.
 */
#include "topic.h"

#include "lib/asleep.h"

#include <sched.h>
#include <semaphore.h>

enum { N = 6, N_REAL_TIME = 4 };

/* In the order of coming. Two pairs of equals; the last two are not real-time. */
static const int priorities[N] = {10, 30, 10, 30, 0, 0};
static const int served_by_priority[N] = {1, 3, 0, 2, 4, 5};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int served[N], n_served; /* under what is waited for */
static pid_t waits[N]; /* asleep.h: on a busy machine a thread may not run for longer than others sleep for it */

static void note_served(int thread) {
    served[n_served++] = thread;
}

static void *lock_mutex(void *number) {
    asleep_from_here(&waits[(long)number]);
    OK(pthread_mutex_lock(&mutex));
    note_served((int)(long)number);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *wait_cond(void *number) {
    OK(pthread_mutex_lock(&mutex));
    asleep_from_here(&waits[(long)number]);
    OK(pthread_cond_wait(&cond, &mutex));
    note_served((int)(long)number);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *write_rwlock(void *number) {
    asleep_from_here(&waits[(long)number]);
    OK(pthread_rwlock_wrlock(&rwlock));
    note_served((int)(long)number);
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

/*
 * An object of this process that is used first takes the only place in a hardware that has one: the others are the
 * software's then.
 */
static void begin(void) {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    SKIP_IF(no_realtime(), "SCHED_FIFO is refused");
    stay_on_one_cpu();
    OK(pthread_mutex_lock(&first));
}

static pthread_t start_with(int priority, void *(*routine)(void *), void *argument) {
    pthread_attr_t attr;
    pthread_t thread;
    struct sched_param parameters = {.sched_priority = priority};
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    OK(pthread_attr_setschedpolicy(&attr, priority != 0 ? SCHED_FIFO : SCHED_OTHER));
    OK(pthread_attr_setschedparam(&attr, &parameters));
    OK(pthread_create(&thread, &attr, routine, argument));
    OK(pthread_attr_destroy(&attr));
    return thread;
}

static void let_block(int thread) {
    await_asleep(&waits[thread]);
    let_threads_block();
}

static void start_all(pthread_t *threads, void *(*routine)(void *)) {
    for (int i = 0; i < N; i++) {
        threads[i] = start_with(priorities[i], routine, (void *)(long)i);
        let_block(i);
    }
}

/* Of the first n: after glibc's broadcast the others come as they like. */
static void check_order(const pthread_t *threads, int n) {
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    for (int i = 0; i < n; i++)
        CHECK_INT(served[i], served_by_priority[i]);
}

TEST(priority__mutex_goes_to_the_highest,
     "SCHED_FIFO 10, 30, 10, 30 and two others wait for a mutex: by priority, then FIFO") {
    pthread_t threads[N];
    begin();
    OK(pthread_mutex_lock(&mutex));
    start_all(threads, lock_mutex);
    OK(pthread_mutex_unlock(&mutex));
    check_order(threads, N);
}

/* A thread that the kernel does not run for long would be overtaken by the next one. */
static void await_served(int n) {
    for (bool is_served = false; !is_served; sleep_ms(1)) {
        OK(pthread_mutex_lock(&mutex));
        is_served = n_served == n;
        OK(pthread_mutex_unlock(&mutex));
    }
}

TEST(priority__signal_wakes_the_highest, "the same at a condition: each signal wakes the highest that is left") {
    pthread_t threads[N];
    begin();
    start_all(threads, wait_cond);
    for (int i = 0; i < N; i++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        await_served(i + 1);
    }
    check_order(threads, N);
}

TEST(priority__broadcast_serves_by_priority, "the same after one broadcast, under the mutex") {
    pthread_t threads[N];
    begin();
    start_all(threads, wait_cond);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    check_order(threads, N_REAL_TIME);
}

TEST(priority__writers_by_priority, "the same of writers that wait for a read-write lock") {
    pthread_t threads[N];
    begin();
    OK(pthread_rwlock_wrlock(&rwlock));
    start_all(threads, write_rwlock);
    OK(pthread_rwlock_unlock(&rwlock));
    check_order(threads, N);
}

static void *lock_as_round_robin(void *number) {
    struct sched_param parameters = {.sched_priority = 20};
    OK(pthread_setschedparam(pthread_self(), SCHED_RR, &parameters));
    return lock_mutex(number);
}

TEST(priority__set_later, "a thread that becomes SCHED_RR after it was created goes before one that waits already") {
    begin();
    OK(pthread_mutex_lock(&mutex));
    pthread_t first = thread_start(lock_mutex, (void *)0L);
    let_block(0);
    pthread_t second = thread_start(lock_as_round_robin, (void *)1L);
    let_block(1);
    OK(pthread_mutex_unlock(&mutex));
    thread_join(first);
    thread_join(second);
    CHECK_INT(served[0], 1);
    CHECK_INT(served[1], 0);
}
