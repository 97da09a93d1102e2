/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Condition waits with deadline: pthread_cond_timedwait with both condattr clocks, pthread_cond_clockwait.
 * Source: POSIX.1-2017 pthread_cond_timedwait, POSIX.1-2024 pthread_cond_clockwait. The mutex is error-checking, so
 * that each test can tell from its unlock whether the call left it held.
 */
#include "topic.h"

#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond;
static int waiting, tickets;

/* Each way to wait with a deadline; a test runs through all of them. */
static const struct way {
    const char *name;
    clockid_t attr_clock, wait_clock;
    bool clockwait;
} ways[] = {
    {"timedwait on REALTIME", CLOCK_REALTIME, CLOCK_REALTIME, false},
    {"timedwait on MONOTONIC", CLOCK_MONOTONIC, CLOCK_MONOTONIC, false},
    {"clockwait REALTIME", CLOCK_REALTIME, CLOCK_REALTIME, true},
    {"clockwait MONOTONIC", CLOCK_REALTIME, CLOCK_MONOTONIC, true},
    {"clockwait REALTIME, attribute MONOTONIC", CLOCK_MONOTONIC, CLOCK_REALTIME, true},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void init_cond(const struct way *way) {
    pthread_condattr_t attr;
    OK(pthread_condattr_init(&attr));
    OK(pthread_condattr_setclock(&attr, way->attr_clock));
    OK(pthread_cond_init(&cond, &attr));
    OK(pthread_condattr_destroy(&attr));
}
static int wait_until(const struct way *way, const struct timespec *end) {
    return way->clockwait ? pthread_cond_clockwait(&cond, &mutex, way->wait_clock, end)
                          : pthread_cond_timedwait(&cond, &mutex, end);
}
/* Waits with the mutex held before and after; checks that it still is. */
static int checked_wait(const struct way *way, const struct timespec *end) {
    OK(pthread_mutex_lock(&mutex));
    int rc = wait_until(way, end);
    OK(pthread_mutex_unlock(&mutex));
    return rc;
}

TEST(cond_timedwait__past_deadline_returns_ETIMEDOUT,
     "deadline passed or before the epoch, each clock: ETIMEDOUT, mutex "
     "held") {
    for (int i = 0; i < N_WAYS; i++) {
        init_cond(&ways[i]);
        struct timespec end = time_in_ms(ways[i].wait_clock, -10);
        CHECK_RC(checked_wait(&ways[i], &end), ETIMEDOUT);
        CHECK_RC(checked_wait(&ways[i], &time_epoch), ETIMEDOUT);
        CHECK_RC(checked_wait(&ways[i], &time_seconds_negative), ETIMEDOUT);
        OK(pthread_cond_destroy(&cond));
    }
}
TEST(cond_timedwait__invalid_nsec_returns_EINVAL, "nsec -1 and 10^9, each clock: EINVAL, mutex held") {
    for (int i = 0; i < N_WAYS; i++) {
        init_cond(&ways[i]);
        struct timespec end = time_in_ms(ways[i].wait_clock, LONG_MS);
        end.tv_nsec = 1000000000;
        CHECK_RC(checked_wait(&ways[i], &end), EINVAL);
        CHECK_RC(checked_wait(&ways[i], &time_nsec_negative), EINVAL);
    }
}
TEST(cond_clockwait__other_clock_returns_EINVAL, "CPU-time, boot-time and unknown clocks: EINVAL, mutex held") {
    const clockid_t others[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME, 12345, -1};
    init_cond(&ways[0]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
        OK(pthread_mutex_lock(&mutex));
        CHECK_RC(pthread_cond_clockwait(&cond, &mutex, others[i], &end), EINVAL);
        OK(pthread_mutex_unlock(&mutex));
    }
}
static void times_out(const struct way *way) {
    init_cond(way);
    struct timespec start = time_now(way->wait_clock), end = time_in_ms(way->wait_clock, SHORT_MS);
    CHECK_RC(checked_wait(way, &end), ETIMEDOUT);
    long ms = time_since_ms(way->wait_clock, start);
    if (ms < SHORT_MS - 1)
        FAIL("%s of %d ms took %ld ms", way->name, SHORT_MS, ms);
}
TEST(cond_timedwait__realtime_waits_until_the_deadline, "default clock: ETIMEDOUT, not before the deadline") {
    times_out(&ways[0]);
}
TEST(cond_timedwait__monotonic_attr_waits_until_the_deadline,
     "condattr MONOTONIC: ETIMEDOUT, not before the deadline") {
    times_out(&ways[1]);
}
TEST(cond_clockwait__realtime_waits_until_the_deadline, "clockwait REALTIME: ETIMEDOUT, not before the deadline") {
    times_out(&ways[2]);
}
TEST(cond_clockwait__monotonic_waits_until_the_deadline, "clockwait MONOTONIC: ETIMEDOUT, not before the deadline") {
    times_out(&ways[3]);
}
TEST(cond_clockwait__overrides_the_attribute_clock, "clockwait REALTIME on a MONOTONIC condition uses REALTIME") {
    times_out(&ways[4]);
}

static void *wait_for_ticket(void *argument) {
    const struct way *way = argument;
    struct timespec end = time_in_ms(way->wait_clock, LONG_MS);
    int rc = 0;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (tickets == 0 && rc == 0)
        rc = wait_until(way, &end);
    tickets -= rc == 0;
    waiting--;
    OK(pthread_mutex_unlock(&mutex));
    return (void *)(long)rc;
}
static void await_waiting(int wanted) {
    for (;;) {
        OK(pthread_mutex_lock(&mutex));
        int now = waiting;
        OK(pthread_mutex_unlock(&mutex));
        if (now == wanted)
            return;
        sleep_ms(1);
    }
}
static void wake(bool broadcast) {
    enum { N = 8 };
    for (int i = 0; i < N_WAYS; i++) {
        pthread_t threads[N];
        init_cond(&ways[i]);
        for (int k = 0; k < N; k++)
            threads[k] = thread_start(wait_for_ticket, (void *)&ways[i]);
        await_waiting(N);
        OK(pthread_mutex_lock(&mutex));
        tickets = N;
        for (int k = 0; k < (broadcast ? 1 : N); k++)
            OK(broadcast ? pthread_cond_broadcast(&cond) : pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        for (int k = 0; k < N; k++)
            OK((int)(long)thread_join(threads[k]));
        CHECK_INT(tickets, 0);
        OK(pthread_cond_destroy(&cond));
    }
}
TEST(cond_timedwait__is_woken_by_signal, "8 timed waiters and 8 signals, each clock: all return 0") {
    wake(false);
}
TEST(cond_timedwait__is_woken_by_broadcast, "8 timed waiters and a broadcast, each clock: all return 0") {
    wake(true);
}

static void *wait_short(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    int rc = 0;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (rc == 0)
        rc = pthread_cond_timedwait(&cond, &mutex, &end);
    waiting--;
    OK(pthread_mutex_unlock(&mutex));
    return (void *)(long)rc;
}
/* A thread in wait_short, and the mutex held. On a busy machine it may be over before it is seen: then another one. */
static pthread_t catch_short_wait(void) {
    for (;;) {
        pthread_t t = thread_start(wait_short, NULL);
        for (int rc = EBUSY; rc == EBUSY; sleep_ms(1)) {
            OK(pthread_mutex_lock(&mutex));
            if (waiting == 1)
                return t;
            OK(pthread_mutex_unlock(&mutex));
            rc = pthread_tryjoin_np(t, NULL);
        }
    }
}
TEST(cond_timedwait__timed_out_waiter_is_withdrawn, "after a time-out the one signal goes to the waiter that is left") {
    init_cond(&ways[0]);
    pthread_t brief = catch_short_wait();
    OK(pthread_mutex_unlock(&mutex));
    pthread_t patient = thread_start(wait_for_ticket, (void *)&ways[0]);
    CHECK_RC((int)(long)thread_join(brief), ETIMEDOUT);
    await_waiting(1);
    OK(pthread_mutex_lock(&mutex));
    tickets = 1;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    OK((int)(long)thread_join(patient));
}
TEST(cond_timedwait__reacquires_before_returning_ETIMEDOUT, "a waiter that timed out waits for the mutex's owner") {
    init_cond(&ways[0]);
    pthread_t t = catch_short_wait();
    sleep_ms(2 * SHORT_MS);
    CHECK_INT(waiting, 1);
    CHECK_RC(pthread_tryjoin_np(t, NULL), EBUSY);
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC((int)(long)thread_join(t), ETIMEDOUT);
}
TEST(cond_timedwait__never_returns_EINTR, "timed waiters hit by signals return 0 or ETIMEDOUT only") {
    signal_counter(SIGUSR1, false);
    init_cond(&ways[0]);
    pthread_t t = catch_short_wait();
    for (int i = 0; i < 20; i++)
        OK(pthread_kill(t, SIGUSR1));
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC((int)(long)thread_join(t), ETIMEDOUT);
    CHECK(atomic_load(&signals_seen) > 0);
}

static atomic_int outcomes[2];
static void *race_deadline(void *argument) {
    const struct timespec *end = argument;
    int rc = 0;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (tickets == 0 && rc == 0)
        rc = pthread_cond_timedwait(&cond, &mutex, end);
    CHECK(rc == 0 || rc == ETIMEDOUT);
    atomic_fetch_add(&outcomes[rc != 0], 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(cond_timedwait__signal_and_deadline_race,
     "300 broadcasts at the moment of 4 waiters' deadline: every wait ends with "
     "0 or ETIMEDOUT and the mutex held") {
    init_cond(&ways[0]);
    for (int round = 0; round < 300; round++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, 1);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(race_deadline, &end);
        while (time_since_ms(CLOCK_REALTIME, end) < 0)
            ;
        OK(pthread_mutex_lock(&mutex));
        tickets = 4;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < 4; i++)
            thread_join(threads[i]);
        tickets = 0;
    }
    CHECK_INT(atomic_load(&outcomes[0]) + atomic_load(&outcomes[1]), 1200);
}
