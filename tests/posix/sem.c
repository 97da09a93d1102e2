/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unnamed semaphores. Named ones: sem_named.c; cancellation: cancel.c.
 * Source: POSIX.1-2017 sem_init, sem_wait, sem_trywait, sem_timedwait, sem_post, sem_getvalue, sem_destroy,
 * POSIX.1-2024 sem_clockwait, signal(7) for SA_RESTART. Errors come as -1 and errno.
 */
#include "topic.h"

#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static sem_t sem;
static atomic_int passed, inside;

static void check_value(int wanted) {
    int value = -1;
    SYS(sem_getvalue(&sem, &value));
    CHECK_INT(value, wanted);
}
static void *wait_once(void *unused) {
    (void)unused;
    SYS(sem_wait(&sem));
    atomic_fetch_add(&passed, 1);
    return NULL;
}

/* --- init, getvalue, destroy -------------------------------------------------------------------------------------- */
TEST(sem_init__sets_the_value, "initial values 0, 1, 5 and SEM_VALUE_MAX over memory full of ones") {
    const unsigned values[] = {0, 1, 5, SEM_VALUE_MAX};
    for (int i = 0; i < 4; i++) {
        memset(&sem, 0xff, sizeof sem);
        CHECK_INT(sem_init(&sem, 0, values[i]), 0);
        check_value((int)values[i]);
        CHECK_INT(sem_destroy(&sem), 0);
    }
}
TEST(sem_init__value_beyond_max_returns_EINVAL, "SEM_VALUE_MAX + 1 and UINT_MAX: EINVAL") {
    CHECK_ERRNO(sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
    CHECK_ERRNO(sem_init(&sem, 0, UINT_MAX), EINVAL);
}
TEST(sem_getvalue__follows_post_and_wait, "each post adds one, each wait and trywait takes one") {
    SYS(sem_init(&sem, 0, 3));
    SYS(sem_post(&sem));
    check_value(4);
    SYS(sem_wait(&sem));
    SYS(sem_trywait(&sem));
    check_value(2);
}
TEST(sem_getvalue__with_waiters_is_zero,
     "with 3 threads blocked the value is 0 (glibc; POSIX allows a negative count)") {
    pthread_t threads[3];
    SYS(sem_init(&sem, 0, 0));
    for (int i = 0; i < 3; i++)
        threads[i] = thread_start(wait_once, NULL);
    let_threads_block();
    check_value(0);
    for (int i = 0; i < 3; i++)
        SYS(sem_post(&sem));
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    check_value(0);
}
TEST(sem_destroy__then_init_again, "destroy returns 0 and the object may be initialised again") {
    for (unsigned i = 0; i < 3; i++) {
        SYS(sem_init(&sem, 0, i));
        SYS(sem_post(&sem));
        check_value((int)i + 1);
        CHECK_INT(sem_destroy(&sem), 0);
    }
}

/* --- post and wait ------------------------------------------------------------------------------------------------ */
TEST(sem_wait__takes_a_token_without_blocking, "5 waits on a value of 5 return 0") {
    SYS(sem_init(&sem, 0, 5));
    for (int i = 0; i < 5; i++)
        CHECK_INT(sem_wait(&sem), 0);
    check_value(0);
}
TEST(sem_wait__blocks_at_zero_until_post, "a waiter at 0 stays in until another thread posts") {
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_once, NULL);
    let_threads_block();
    CHECK_INT(atomic_load(&passed), 0);
    SYS(sem_post(&sem));
    thread_join(t);
    check_value(0);
}
TEST(sem_post__wakes_one_waiter_each, "10 waiters: after k posts exactly k have passed") {
    pthread_t threads[10];
    SYS(sem_init(&sem, 0, 0));
    for (int i = 0; i < 10; i++)
        threads[i] = thread_start(wait_once, NULL);
    for (int k = 1; k <= 10; k++) {
        SYS(sem_post(&sem));
        await(&passed, k);
        CHECK_INT(atomic_load(&passed), k);
    }
    for (int i = 0; i < 10; i++)
        thread_join(threads[i]);
    check_value(0);
}
TEST(sem_post__beyond_max_returns_EOVERFLOW, "post at SEM_VALUE_MAX: EOVERFLOW, value unchanged") {
    SYS(sem_init(&sem, 0, SEM_VALUE_MAX));
    CHECK_ERRNO(sem_post(&sem), EOVERFLOW);
    check_value(SEM_VALUE_MAX);
    SYS(sem_wait(&sem));
    SYS(sem_post(&sem));
}
TEST(sem_trywait__takes_a_token, "trywait on 2: 0, 0, then EAGAIN and the value stays 0") {
    SYS(sem_init(&sem, 0, 2));
    CHECK_INT(sem_trywait(&sem), 0);
    CHECK_INT(sem_trywait(&sem), 0);
    CHECK_ERRNO(sem_trywait(&sem), EAGAIN);
    check_value(0);
}
TEST(sem_wait__leaves_errno_alone, "successful operations do not touch errno") {
    SYS(sem_init(&sem, 0, 2));
    errno = 4711;
    CHECK_INT(sem_wait(&sem), 0);
    CHECK_INT(sem_post(&sem), 0);
    CHECK_INT(sem_trywait(&sem), 0);
    CHECK_INT(sem_timedwait(&sem, &time_epoch), 0);
    CHECK_INT(errno, 4711);
}
static long plain;
static atomic_int absent;
static void *enter_often(void *unused) {
    (void)unused;
    begin_together(&absent);
    for (int i = 0; i < 4000; i++) {
        while ((i % 4 == 0 ? sem_trywait(&sem) : sem_wait(&sem)) != 0)
            CHECK_INT(errno, EAGAIN);
        CHECK_INT(atomic_fetch_add(&inside, 1), 0);
        plain++;
        let_others_in(i);
        CHECK_INT(atomic_fetch_sub(&inside, 1), 1);
        SYS(sem_post(&sem));
    }
    return NULL;
}
TEST(sem_wait__binary_excludes, "a semaphore of 1 as lock: 8 threads, 4000 sections each, one inside, no update lost") {
    pthread_t threads[8];
    SYS(sem_init(&sem, 0, 1));
    atomic_store(&absent, 8);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(enter_often, NULL);
    for (int i = 0; i < 8; i++)
        thread_join(threads[i]);
    CHECK_INT(plain, 32000);
    check_value(1);
}
static void *at_most_three(void *unused) {
    (void)unused;
    begin_together(&absent);
    for (int i = 0; i < 2000; i++) {
        SYS(sem_wait(&sem));
        CHECK(atomic_fetch_add(&inside, 1) < 3);
        let_others_in(i);
        atomic_fetch_sub(&inside, 1);
        SYS(sem_post(&sem));
    }
    return NULL;
}
TEST(sem_wait__counting_admits_at_most_n, "a semaphore of 3, 8 threads: never more than 3 inside") {
    pthread_t threads[8];
    SYS(sem_init(&sem, 0, 3));
    atomic_store(&absent, 8);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(at_most_three, NULL);
    for (int i = 0; i < 8; i++)
        thread_join(threads[i]);
    check_value(3);
}
static sem_t ping, pong;
static int strokes; /* plain: each side writes it in its turn */
static void *answer(void *unused) {
    (void)unused;
    for (int i = 0; i < 5000; i++) {
        SYS(sem_wait(&ping));
        CHECK_INT(strokes++, 2 * i + 1);
        SYS(sem_post(&pong));
    }
    return NULL;
}
TEST(sem_post__ping_pong, "5000 round trips between two threads over two semaphores") {
    SYS(sem_init(&ping, 0, 0));
    SYS(sem_init(&pong, 0, 0));
    pthread_t t = thread_start(answer, NULL);
    for (int i = 0; i < 5000; i++) {
        CHECK_INT(strokes++, 2 * i);
        SYS(sem_post(&ping));
        SYS(sem_wait(&pong));
    }
    thread_join(t);
}
/* glibc bug 12674: the woken waiter may destroy the semaphore while the poster is still inside sem_post. */
static void *post_heap(void *argument) {
    SYS(sem_post(argument));
    return NULL;
}
TEST(sem_destroy__right_after_wait,
     "1000 rounds: the waiter destroys and overwrites the semaphore as soon as it passed") {
    for (int i = 0; i < 1000; i++) {
        sem_t *heap = malloc(sizeof *heap);
        CHECK(heap != NULL);
        SYS(sem_init(heap, 0, 0));
        pthread_t t = thread_start(post_heap, heap);
        SYS(sem_wait(heap));
        SYS(sem_destroy(heap));
        memset(heap, 0xa5, sizeof *heap);
        free(heap);
        thread_join(t);
    }
}

/* --- deadlines ---------------------------------------------------------------------------------------------------- */
static const struct way {
    clockid_t clock;
    bool clocked;
} ways[] = {{CLOCK_REALTIME, false}, {CLOCK_REALTIME, true}, {CLOCK_MONOTONIC, true}};
#define EACH_WAY(w) (const struct way *w = ways; w < ways + 3; w++)

static int wait_until(const struct way *w, const struct timespec *end) {
    return w->clocked ? sem_clockwait(&sem, w->clock, end) : sem_timedwait(&sem, end);
}
TEST(sem_timedwait__available_ignores_past_deadline, "a token is taken although the deadline has passed") {
    SYS(sem_init(&sem, 0, 6));
    for
        EACH_WAY(w) {
            CHECK_INT(wait_until(w, &time_epoch), 0);
            CHECK_INT(wait_until(w, &time_seconds_negative), 0);
        }
    check_value(0);
}
TEST(sem_timedwait__past_deadline_returns_ETIMEDOUT, "value 0 and a deadline passed or before the epoch: ETIMEDOUT") {
    SYS(sem_init(&sem, 0, 0));
    for
        EACH_WAY(w) {
            struct timespec end = time_in_ms(w->clock, -10);
            CHECK_ERRNO(wait_until(w, &end), ETIMEDOUT);
            CHECK_ERRNO(wait_until(w, &time_epoch), ETIMEDOUT);
            CHECK_ERRNO(wait_until(w, &time_seconds_negative), ETIMEDOUT);
        }
    check_value(0);
}
TEST(sem_timedwait__invalid_nsec_returns_EINVAL, "value 0, nsec -1 and 10^9: EINVAL") {
    SYS(sem_init(&sem, 0, 0));
    for
        EACH_WAY(w) {
            CHECK_ERRNO(wait_until(w, &time_nsec_too_big), EINVAL);
            CHECK_ERRNO(wait_until(w, &time_nsec_negative), EINVAL);
        }
}
/* POSIX need not check when no blocking is needed; glibc does, and takes no token. */
TEST(sem_timedwait__invalid_nsec_with_token_returns_EINVAL, "value 1, bad nsec: EINVAL and the token stays (glibc)") {
    SYS(sem_init(&sem, 0, 1));
    for
        EACH_WAY(w)
    CHECK_ERRNO(wait_until(w, &time_nsec_too_big), EINVAL);
    check_value(1);
}
TEST(sem_clockwait__other_clock_returns_EINVAL, "CPU-time, boot-time and unknown clocks: EINVAL and the token stays") {
    const clockid_t others[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME, 12345, -1};
    SYS(sem_init(&sem, 0, 1));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
        CHECK_ERRNO(sem_clockwait(&sem, others[i], &end), EINVAL);
    }
    check_value(1);
}
static void times_out(const struct way *w) {
    SYS(sem_init(&sem, 0, 0));
    struct timespec start = time_now(w->clock), end = time_in_ms(w->clock, SHORT_MS);
    CHECK_ERRNO(wait_until(w, &end), ETIMEDOUT);
    CHECK(time_since_ms(w->clock, start) >= SHORT_MS - 1);
    check_value(0);
}
TEST(sem_timedwait__waits_until_the_deadline, "timedwait at 0: ETIMEDOUT, not before the deadline") {
    times_out(&ways[0]);
}
TEST(sem_clockwait__realtime_waits_until_the_deadline, "clockwait REALTIME at 0: ETIMEDOUT, not before the deadline") {
    times_out(&ways[1]);
}
TEST(sem_clockwait__monotonic_waits_until_the_deadline,
     "clockwait MONOTONIC at 0: ETIMEDOUT, not before the deadline") {
    times_out(&ways[2]);
}
static void *wait_long(void *argument) {
    const struct way *w = argument;
    struct timespec end = time_in_ms(w->clock, LONG_MS);
    SYS(wait_until(w, &end));
    atomic_fetch_add(&passed, 1);
    return NULL;
}
TEST(sem_timedwait__is_woken_by_post, "timedwait and clockwait on both clocks return 0 after a post") {
    SYS(sem_init(&sem, 0, 0));
    for
        EACH_WAY(w) {
            pthread_t t = thread_start(wait_long, (void *)w);
            let_threads_block();
            SYS(sem_post(&sem));
            thread_join(t);
        }
    CHECK_INT(atomic_load(&passed), 3);
    check_value(0);
}
static void *wait_short(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_ERRNO(sem_timedwait(&sem, &end), ETIMEDOUT);
    return NULL;
}
TEST(sem_timedwait__timed_out_waiter_is_withdrawn, "after a time-out the one post goes to the waiter that is left") {
    SYS(sem_init(&sem, 0, 0));
    pthread_t brief = thread_start(wait_short, NULL), patient = thread_start(wait_once, NULL);
    thread_join(brief);
    SYS(sem_post(&sem));
    thread_join(patient);
    check_value(0);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */
static atomic_int waits_begun;
/* Which wait the thread makes: 0 sem_wait, 1.. ways[n - 1]; its value is the errno, or 0. */
static void *wait_for_signal(void *argument) {
    long which = (long)argument;
    struct timespec end = time_in_ms(which == 0 ? CLOCK_REALTIME : ways[which - 1].clock, LONG_MS);
    atomic_fetch_add(&waits_begun, 1);
    int rc = which == 0 ? sem_wait(&sem) : wait_until(&ways[which - 1], &end);
    int error = rc == 0 ? 0 : errno;
    atomic_fetch_add(&passed, 1);
    return (void *)(long)error;
}
static void interrupted_without_restart(long which) {
    signal_counter(SIGUSR1, false);
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_for_signal, (void *)which);
    await(&waits_begun, 1);
    /* A signal that comes before the wait proper is counted and missed, so it is sent until it hits. */
    while (atomic_load(&passed) == 0) {
        OK(pthread_kill(t, SIGUSR1));
        sleep_ms(2);
    }
    CHECK_RC((int)(long)thread_join(t), EINTR);
    check_value(0);
}
TEST(sem_wait__handler_without_restart_returns_EINTR, "sem_wait and a handler without SA_RESTART: EINTR") {
    interrupted_without_restart(0);
}
TEST(sem_timedwait__handler_without_restart_returns_EINTR, "sem_timedwait and a handler without SA_RESTART: EINTR") {
    interrupted_without_restart(1);
}
TEST(sem_clockwait__handler_without_restart_returns_EINTR, "sem_clockwait and a handler without SA_RESTART: EINTR") {
    interrupted_without_restart(3);
}
TEST(sem_wait__handler_with_restart_goes_on_waiting, "sem_wait hit by 20 signals with SA_RESTART goes on and gets its "
                                                     "token") {
    signal_counter(SIGUSR1, true);
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_for_signal, (void *)0L);
    await(&waits_begun, 1);
    let_threads_block();
    signal_thread(t, SIGUSR1, 20);
    CHECK_INT(atomic_load(&passed), 0);
    SYS(sem_post(&sem));
    OK((int)(long)thread_join(t));
    check_value(0);
}
TEST(sem_wait__blocked_signal_does_not_interrupt, "a signal that the waiter blocks does not end its wait") {
    sigset_t set;
    signal_counter(SIGUSR1, false);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_for_signal, (void *)0L);
    await(&waits_begun, 1);
    OK(pthread_kill(t, SIGUSR1));
    let_threads_block();
    CHECK_INT(atomic_load(&passed), 0);
    SYS(sem_post(&sem));
    OK((int)(long)thread_join(t));
    CHECK_INT(atomic_load(&signals_seen), 0);
}
static volatile pid_t forked; /* 0 in the child */

/* The child's handler posts, which lets the wait go on that it has interrupted there. */
static void fork_and_post_in_the_child(int signo) {
    int saved = errno;
    (void)signo;
    forked = fork();
    if (forked == 0 && sem_post(&sem) != 0)
        _exit(2);
    errno = saved;
    atomic_fetch_add(&signals_seen, 1);
}
static void *wait_and_be_forked(void *unused) {
    forked = -1;
    atomic_store(&waits_begun, 1);
    SYS(sem_wait(&sem));
    if (forked == 0)
        _exit(0);
    return unused;
}
TEST(sem_wait__its_handler_forks_and_posts_in_the_child, "the child's wait ends with that post, the parent's goes on") {
    struct sigaction action = {.sa_handler = fork_and_post_in_the_child, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_and_be_forked, NULL);
    await(&waits_begun, 1);
    let_threads_block();
    signal_thread(t, SIGUSR1, 1);
    child_join(forked);
    check_value(0);
    SYS(sem_post(&sem));
    thread_join(t);
    check_value(0);
}
static void post_in_handler(int signo) {
    (void)signo;
    int saved = errno;
    if (sem_post(&sem) != 0)
        abort();
    errno = saved;
}
TEST(sem_post__in_a_handler_wakes_another_thread, "200 signals to one thread post 200 tokens to another") {
    struct sigaction action = {.sa_handler = post_in_handler};
    SYS(sigaction(SIGUSR1, &action, NULL));
    SYS(sem_init(&sem, 0, 0));
    for (int i = 0; i < 200; i++) {
        pthread_t t = thread_start(wait_once, NULL);
        SYS(raise(SIGUSR1));
        thread_join(t);
    }
    check_value(0);
}
/* The handler's thread is itself inside sem_wait on the same semaphore: EINTR or the token, but it must not hang. */
TEST(sem_post__in_a_handler_of_the_waiter_itself,
     "100 waiters hit by a handler that posts: each gets the token, at once "
     "or after EINTR") {
    struct sigaction action = {.sa_handler = post_in_handler};
    SYS(sigaction(SIGUSR1, &action, NULL));
    SYS(sem_init(&sem, 0, 0));
    for (int i = 0; i < 100; i++) {
        pthread_t t = thread_start(wait_for_signal, (void *)0L);
        await(&waits_begun, i + 1);
        if (i % 10 == 0)
            let_threads_block();
        OK(pthread_kill(t, SIGUSR1));
        int error = (int)(long)thread_join(t);
        if (error != 0) {
            CHECK_RC(error, EINTR);
            CHECK_INT(sem_trywait(&sem), 0);
        }
        check_value(0);
    }
}
