/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_once. Source: POSIX.1-2017 pthread_once: the routine runs once, callers return after it is done, and a
 * routine that is cancelled counts as never called.
 */
#include "topic.h"

#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static atomic_int calls, inner_calls, in_routine, release, returned;
static int plain;

static void count_call(void) {
    plain = 42;
    atomic_fetch_add(&calls, 1);
}
static void slow_call(void) {
    atomic_store(&in_routine, 1);
    await(&release, 1);
    count_call();
}
static void *do_count(void *unused) {
    (void)unused;
    OK(pthread_once(&once, count_call));
    CHECK_INT(plain, 42);
    return NULL;
}
static void *do_slow(void *unused) {
    (void)unused;
    OK(pthread_once(&once, slow_call));
    CHECK_INT(plain, 42);
    atomic_fetch_add(&returned, 1);
    return NULL;
}
TEST(once__runs_the_routine, "the first call runs the routine and returns 0") {
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(once__runs_the_routine_only_once, "the second and 1000 more calls return 0 and do not run it") {
    for (int i = 0; i < 1002; i++)
        OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(once__concurrent_callers_run_it_once, "300 races of 8 threads: one run each, every caller sees its writes") {
    for (int round = 0; round < 300; round++) {
        pthread_t threads[8];
        once = (pthread_once_t)PTHREAD_ONCE_INIT;
        plain = 0;
        for (int i = 0; i < 8; i++)
            threads[i] = thread_start(do_count, NULL);
        for (int i = 0; i < 8; i++)
            thread_join(threads[i]);
        CHECK_INT(atomic_load(&calls), round + 1);
    }
}
TEST(once__callers_wait_for_the_routine, "16 callers stay in while the routine runs and return when it is done") {
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        threads[i] = thread_start(do_slow, NULL);
    await(&in_routine, 1);
    let_threads_block();
    CHECK_INT(atomic_load(&returned), 0);
    atomic_store(&release, 1);
    for (int i = 0; i < 16; i++)
        thread_join(threads[i]);
    CHECK_INT(atomic_load(&calls), 1);
    CHECK_INT(atomic_load(&returned), 16);
}
static void count_inner(void) {
    atomic_fetch_add(&inner_calls, 1);
}
static void nest(void) {
    OK(pthread_once(&inner, count_inner));
    atomic_fetch_add(&calls, 1);
}
TEST(once__routine_may_use_another_once, "a routine that calls pthread_once on another object") {
    OK(pthread_once(&once, nest));
    OK(pthread_once(&inner, count_inner));
    CHECK_INT(atomic_load(&calls), 1);
    CHECK_INT(atomic_load(&inner_calls), 1);
}
TEST(once__two_objects_are_independent, "a caller of a second object does not wait for the first one's routine") {
    pthread_t t = thread_start(do_slow, NULL);
    await(&in_routine, 1);
    OK(pthread_once(&inner, count_inner));
    CHECK_INT(atomic_load(&inner_calls), 1);
    atomic_store(&release, 1);
    thread_join(t);
}
TEST(once__zeroed_memory_is_valid, "an object of zero bytes is a fresh one") {
    memset(&once, 0, sizeof once);
    OK(pthread_once(&once, count_call));
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
static void use_locks(void) {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_unlock(&m));
    thread_join(thread_start(do_count, NULL) /* of another object, below */);
    atomic_fetch_add(&inner_calls, 1);
}
TEST(once__routine_may_lock_and_start_threads, "a routine that locks a mutex, starts a thread and joins it") {
    OK(pthread_once(&inner, use_locks));
    CHECK_INT(atomic_load(&inner_calls), 1);
    CHECK_INT(atomic_load(&calls), 1);
}

/* --- a routine that does not return ------------------------------------------------------------------------------- */
static void wait_for_cancel(void) {
    atomic_store(&in_routine, 1);
    for (;;)
        pause();
}
static void *do_cancelled(void *unused) {
    (void)unused;
    pthread_once(&once, wait_for_cancel);
    FAIL("the cancelled routine returned");
}
static void leave_thread(void) {
    atomic_store(&in_routine, 1);
    pthread_exit((void *)7);
}
static void *do_exit(void *unused) {
    (void)unused;
    pthread_once(&once, leave_thread);
    FAIL("the routine returned from pthread_exit");
}
TEST(once__cancelled_routine_counts_as_not_called, "the routine is cancelled; the next call runs its own routine") {
    pthread_t t = thread_start(do_cancelled, NULL);
    await(&in_routine, 1);
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(once__cancelled_routine_releases_the_waiters,
     "8 callers wait for a routine that is cancelled: one of them runs its "
     "own, all return") {
    pthread_t t = thread_start(do_cancelled, NULL), threads[8];
    await(&in_routine, 1);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(do_count, NULL);
    let_threads_block();
    CHECK_INT(atomic_load(&calls), 0);
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
    for (int i = 0; i < 8; i++)
        thread_join(threads[i]);
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(once__routine_that_exits_counts_as_not_called, "the routine calls pthread_exit; the next call runs its own") {
    CHECK(thread_join(thread_start(do_exit, NULL)) == (void *)7);
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
static void *do_pending(void *unused) {
    (void)unused;
    OK(pthread_cancel(pthread_self()));
    OK(pthread_once(&once, count_call));
    atomic_store(&returned, 1);
    pthread_testcancel();
    return NULL;
}
TEST(once__is_not_a_cancellation_point, "a pending cancel is not acted upon in pthread_once itself") {
    thread_join_cancelled(thread_start(do_pending, NULL));
    CHECK_INT(atomic_load(&calls), 1);
    CHECK_INT(atomic_load(&returned), 1);
}
static void in_child(void *unused) {
    (void)unused;
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
/* The thread that runs the routine does not exist in the child; glibc notices by a generation of forks. */
TEST(once__interrupted_by_fork_runs_again_in_the_child,
     "fork while another thread is in the routine: the child runs its "
     "own") {
    pthread_t t = thread_start(do_slow, NULL);
    await(&in_routine, 1);
    run_in_child(in_child, NULL);
    atomic_store(&release, 1);
    thread_join(t);
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(once__done_stays_done_in_the_child, "a routine that ran before fork does not run in the child") {
    OK(pthread_once(&once, count_call));
    run_in_child(in_child, NULL);
}
