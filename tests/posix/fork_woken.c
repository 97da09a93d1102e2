/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A lock that a thread of the parent was about to take: in a forked child it is free. */
#include "topic.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The lock has been given back and a thread woken for it, which has not run yet. All stay on one CPU and the woken
 * thread gets it only when no other thread wants it, so it has mostly not run at the fork; if it was quicker the round
 * is void. At other times it is a thread as others are: on a busy machine it would not get the CPU for minutes.
 */
static pthread_mutex_t woken_for = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t woken_to_write = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int about_to_wait; /* the thread's kernel thread */
/* False: the thread has ended. */
static bool set_policy(pid_t thread, int policy) {
    struct sched_param none = {0};
    int r = sched_setscheduler(thread, policy, &none);
    SYS(r == 0 || errno == ESRCH ? 0 : r);
    return r == 0;
}
static void *wait_for_mutex(void *unused) {
    (void)unused;
    atomic_store(&about_to_wait, (int)syscall(SYS_gettid));
    OK(pthread_mutex_lock(&woken_for));
    OK(pthread_mutex_unlock(&woken_for));
    return NULL;
}
static void *wait_to_write(void *unused) {
    (void)unused;
    atomic_store(&about_to_wait, (int)syscall(SYS_gettid));
    OK(pthread_rwlock_wrlock(&woken_to_write));
    OK(pthread_rwlock_unlock(&woken_to_write));
    return NULL;
}
static void try_mutex(void *is_free) {
    if (pthread_mutex_trylock(&woken_for) == 0)
        atomic_store((atomic_int *)is_free, 1);
}
static void try_rwlock(void *is_free) {
    if (pthread_rwlock_trywrlock(&woken_to_write) == 0)
        atomic_store((atomic_int *)is_free, 1);
}
TEST(fork__trylock_of_what_a_thread_of_the_parent_was_woken_for, "mutex and rwlock are free in one of 20 children at "
                                                                 "least") {
    atomic_int *is_free = shared_memory(2 * sizeof *is_free);
    stay_on_one_cpu();
    for (int i = 0; another_round(i, 20, 20); i++) {
        for (int k = 0; k < 2; k++) {
            int waits;
            atomic_store(&about_to_wait, 0);
            OK(k == 0 ? pthread_mutex_lock(&woken_for) : pthread_rwlock_wrlock(&woken_to_write));
            pthread_t other = thread_start(k == 0 ? wait_for_mutex : wait_to_write, NULL);
            while ((waits = atomic_load(&about_to_wait)) == 0)
                sched_yield();
            let_threads_block();
            CHECK(set_policy(waits, SCHED_IDLE));
            OK(k == 0 ? pthread_mutex_unlock(&woken_for) : pthread_rwlock_unlock(&woken_to_write));
            run_in_child(k == 0 ? try_mutex : try_rwlock, &is_free[k]);
            set_policy(waits, SCHED_OTHER);
            thread_join(other);
        }
    }
    CHECK_INT(atomic_load(&is_free[0]), 1);
    CHECK_INT(atomic_load(&is_free[1]), 1);
}
