/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are stopped in a signal handler while they signal a condition: others may use it all the same. Under
 * glibc such a thread may hold a lock in the condition, so this is not for that oracle.
 */
#include "stopped.h"

#define LEAST 200
#define MOST 3000
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int owed; /* wake-ups, protected by mutex */
static bool over;
static void *signal_again_and_again(void *unused) {
    (void)unused;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&ended) == 0) {
        OK(pthread_cond_signal(&cond));
        sched_yield();
    }
    return NULL;
}
static void *wait_for_what_is_owed(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    for (int i = 1; !over; i++) {
        while (owed < i && !over)
            OK(pthread_cond_wait(&cond, &mutex));
        atomic_store(&passed, owed);
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(stopped__signallers_keep_no_thread_from_the_condition,
     "200 to 3000 times 6 that signal one; another's broadcast is heard") {
    start_stoppable(signal_again_and_again);
    pthread_t waiter = thread_start(wait_for_what_is_owed, NULL);
    int i = 0;
    while (another_round(i, LEAST, MOST)) {
        i++;
        stop_all();
        OK(pthread_mutex_lock(&mutex));
        owed = i;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_cond_broadcast(&cond));
        while (atomic_load(&passed) < i)
            sched_yield();
        let_go_on(i);
    }
    atomic_store(&ended, 1);
    join_stoppable();
    OK(pthread_mutex_lock(&mutex));
    over = true;
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_cond_broadcast(&cond));
    thread_join(waiter);
    CHECK_INT(atomic_load(&passed), i);
}
