/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that are stopped in a signal handler while they wait for locks: they own nothing, so the others go on. */
#include "stopped.h"

#define LEAST 500
#define MOST 3000
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int turn;

static void *take_turns(void *unused) {
    (void)unused;
    for (int i = 1;; i++) {
        while (atomic_load(&turn) < i) {
            if (atomic_load(&ended) != 0)
                return NULL;
            sched_yield();
        }
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        atomic_store(&passed, i);
    }
}
static struct timespec in_60us(void) {
    struct timespec at = time_now(CLOCK_REALTIME);
    at.tv_nsec += 60000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}
static void *wait_for_locks(void *unused) {
    (void)unused;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&ended) == 0) {
        struct timespec soon = in_60us();
        if (pthread_mutex_timedlock(&mutex, &soon) == 0)
            OK(pthread_mutex_unlock(&mutex));
        soon = in_60us();
        if (pthread_rwlock_timedwrlock(&rwlock, &soon) == 0)
            OK(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}
TEST(stopped__waiters_for_locks_keep_no_thread_out, "500 to 3000 times 6 that wait for locks, which others pass on") {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    start_stoppable(wait_for_locks);
    pthread_t other = thread_start(take_turns, NULL);
    int i = 0;
    while (another_round(i, LEAST, MOST)) {
        i++;
        stop_all();
        atomic_store(&turn, i);
        for (int k = 0; k < i % 16; k++)
            sched_yield();
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_unlock(&rwlock));
        while (atomic_load(&passed) < i)
            sched_yield();
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        let_go_on(i);
    }
    atomic_store(&ended, 1);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_unlock(&rwlock));
    join_stoppable();
    thread_join(other);
    CHECK_INT(atomic_load(&passed), i);
}
