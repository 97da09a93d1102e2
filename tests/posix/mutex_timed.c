/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutex lock with deadline: pthread_mutex_timedlock and pthread_mutex_clocklock, both clocks.
 * Source: POSIX.1-2017 pthread_mutex_timedlock, POSIX.1-2024 pthread_mutex_clocklock. A bad nsec is EINVAL only when
 * the thread would have blocked: glibc uses POSIX's permission not to look at the deadline of a lock that is free.
 */
#include "topic.h"

#include <signal.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER; /* locked by the main thread of most tests */

static const clockid_t both_clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
#define EACH_CLOCK(i) (int i = 0; i < 2; i++)

/* The same call through one of the two functions: number 0 is timedlock, 1 and 2 are clocklock. */
static int lock_until(int variant, pthread_mutex_t *m, const struct timespec *end) {
    return variant == 0 ? pthread_mutex_timedlock(m, end) : pthread_mutex_clocklock(m, both_clocks[variant - 1], end);
}
static clockid_t clock_of(int variant) {
    return variant == 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

struct attempt {
    pthread_mutex_t *mutex;
    int variant;
    const struct timespec *end;
};
static void *do_attempt(void *argument) {
    const struct attempt *a = argument;
    int rc = lock_until(a->variant, a->mutex, a->end);
    if (rc == 0)
        OK(pthread_mutex_unlock(a->mutex));
    return (void *)(long)rc;
}
/* What another thread's timed lock of `m` returns. */
static int attempt(int variant, pthread_mutex_t *m, const struct timespec *end) {
    struct attempt a = {m, variant, end};
    return (int)(long)thread_join(thread_start(do_attempt, &a));
}

static void past_deadline_on_free(int variant) {
    OK(lock_until(variant, &held, &time_epoch));
    CHECK_RC(pthread_mutex_trylock(&held), EBUSY);
    OK(pthread_mutex_unlock(&held));
}
TEST(mutex_timedlock__free_with_past_deadline_is_acquired, "timedlock of a free mutex ignores a past deadline") {
    past_deadline_on_free(0);
}
TEST(mutex_clocklock__free_with_past_deadline_is_acquired, "clocklock of a free mutex ignores a past deadline") {
    past_deadline_on_free(1);
    past_deadline_on_free(2);
}

static void past_deadline_on_held(int variant) {
    OK(pthread_mutex_lock(&held));
    CHECK_RC(attempt(variant, &held, &time_epoch), ETIMEDOUT);
    CHECK_RC(attempt(variant, &held, &time_seconds_negative), ETIMEDOUT);
    OK(pthread_mutex_unlock(&held));
}
TEST(mutex_timedlock__past_deadline_returns_ETIMEDOUT,
     "timedlock of a held mutex, deadline passed or before the epoch") {
    past_deadline_on_held(0);
}
TEST(mutex_clocklock__past_deadline_returns_ETIMEDOUT, "clocklock of a held mutex, deadline passed, both clocks") {
    past_deadline_on_held(1);
    past_deadline_on_held(2);
}

static void bad_nsec_on_held(int variant) {
    OK(pthread_mutex_lock(&held));
    CHECK_RC(attempt(variant, &held, &time_nsec_too_big), EINVAL);
    CHECK_RC(attempt(variant, &held, &time_nsec_negative), EINVAL);
    struct timespec later = time_in_ms(clock_of(variant), LONG_MS);
    later.tv_nsec = 1000000000;
    CHECK_RC(attempt(variant, &held, &later), EINVAL);
    OK(pthread_mutex_unlock(&held));
    OK(pthread_mutex_trylock(&held));
}
TEST(mutex_timedlock__invalid_nsec_returns_EINVAL, "timedlock of a held mutex, nsec -1 and 10^9: EINVAL") {
    bad_nsec_on_held(0);
}
TEST(mutex_clocklock__invalid_nsec_returns_EINVAL, "clocklock of a held mutex, nsec -1 and 10^9, both clocks: EINVAL") {
    bad_nsec_on_held(1);
    OK(pthread_mutex_unlock(&held));
    bad_nsec_on_held(2);
}
TEST(mutex_timedlock__invalid_nsec_is_not_looked_at_on_free, "timed lock of a free mutex with a bad nsec: 0 (glibc)") {
    for (int variant = 0; variant < 3; variant++) {
        OK(lock_until(variant, &held, &time_nsec_too_big));
        OK(pthread_mutex_unlock(&held));
    }
}

static void times_out(int variant) {
    clockid_t clock = clock_of(variant);
    OK(pthread_mutex_lock(&held));
    struct timespec start = time_now(clock), end = time_in_ms(clock, SHORT_MS);
    CHECK_RC(attempt(variant, &held, &end), ETIMEDOUT);
    CHECK(time_since_ms(clock, start) >= SHORT_MS - 1);
    OK(pthread_mutex_unlock(&held));
}
TEST(mutex_timedlock__waits_until_the_deadline, "timedlock of a held mutex: ETIMEDOUT, not before the deadline") {
    times_out(0);
}
TEST(mutex_clocklock__realtime_waits_until_the_deadline, "clocklock REALTIME: ETIMEDOUT, not before the deadline") {
    times_out(1);
}
TEST(mutex_clocklock__monotonic_waits_until_the_deadline, "clocklock MONOTONIC: ETIMEDOUT, not before the deadline") {
    times_out(2);
}

static void acquires_in_time(int variant) {
    struct timespec end = time_in_ms(clock_of(variant), LONG_MS);
    struct attempt a = {&held, variant, &end};
    OK(pthread_mutex_lock(&held));
    pthread_t other = thread_start(do_attempt, &a);
    let_threads_block();
    OK(pthread_mutex_unlock(&held));
    OK((int)(long)thread_join(other));
    OK(pthread_mutex_trylock(&held));
    OK(pthread_mutex_unlock(&held));
}
TEST(mutex_timedlock__gets_a_mutex_released_in_time, "timedlock blocks, and returns 0 once the owner unlocks") {
    acquires_in_time(0);
}
TEST(mutex_clocklock__gets_a_mutex_released_in_time, "clocklock blocks, and returns 0 once the owner unlocks") {
    acquires_in_time(1);
    acquires_in_time(2);
}

/* glibc supports these two clocks only, and looks at the clock first. */
TEST(mutex_clocklock__other_clock_returns_EINVAL, "clocklock with CPU-time, boot-time and unknown clocks: EINVAL") {
    const clockid_t others[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME, 12345, -1};
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_RC(pthread_mutex_clocklock(&held, others[i], &end), EINVAL);
    OK(pthread_mutex_trylock(&held));
}

TEST(mutex_timedlock__errorcheck_relock_returns_EDEADLK, "timed relock of an errorcheck mutex: EDEADLK at once") {
    pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    for (int variant = 0; variant < 3; variant++) {
        struct timespec end = time_in_ms(clock_of(variant), LONG_MS);
        CHECK_RC(lock_until(variant, &m, &end), EDEADLK);
    }
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_timedlock__recursive_relock_counts, "timed relock of a recursive mutex adds a level, past deadline or not") {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    for (int variant = 0; variant < 3; variant++)
        OK(lock_until(variant, &m, &time_epoch));
    for (int i = 0; i < 4; i++) {
        CHECK_RC(attempt(0, &m, &time_epoch), ETIMEDOUT);
        OK(pthread_mutex_unlock(&m));
    }
    OK(attempt(0, &m, &time_epoch));
}
TEST(mutex_timedlock__all_types_time_out, "each type held by another thread: ETIMEDOUT, and 0 after unlock") {
    pthread_mutex_t m[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                           PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
    for (int i = 0; i < 4; i++) {
        OK(pthread_mutex_lock(&m[i]));
        struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
        CHECK_RC(attempt(0, &m[i], &end), ETIMEDOUT);
        OK(pthread_mutex_unlock(&m[i]));
        OK(attempt(0, &m[i], &end));
    }
}

TEST(mutex_timedlock__timed_out_waiter_is_withdrawn, "a waiter that timed out does not swallow a later unlock") {
    for
        EACH_CLOCK(i) {
            OK(pthread_mutex_lock(&held));
            struct timespec soon = time_in_ms(both_clocks[i], SHORT_MS), late = time_in_ms(both_clocks[i], LONG_MS);
            struct attempt first = {&held, i + 1, &soon}, second = {&held, i + 1, &late};
            pthread_t a = thread_start(do_attempt, &first), b = thread_start(do_attempt, &second);
            CHECK_RC((int)(long)thread_join(a), ETIMEDOUT);
            OK(pthread_mutex_unlock(&held));
            OK((int)(long)thread_join(b));
        }
}
TEST(mutex_timedlock__never_returns_EINTR, "a timed locker hit by 20 signals goes on waiting and times out") {
    signal_counter(SIGUSR1, false);
    OK(pthread_mutex_lock(&held));
    for (int variant = 0; variant < 3; variant++) {
        struct timespec end = time_in_ms(clock_of(variant), 10 * SHORT_MS);
        struct attempt a = {&held, variant, &end};
        pthread_t other = thread_start(do_attempt, &a);
        let_threads_block();
        for (int i = 0; i < 20; i++) /* the thread may be gone by the last ones, so they are not waited for */
            OK(pthread_kill(other, SIGUSR1));
        CHECK_RC((int)(long)thread_join(other), ETIMEDOUT);
    }
    CHECK(atomic_load(&signals_seen) > 0);
}
static void *attempt_alone(void *argument) {
    static atomic_int inside;
    const struct attempt *a = argument;
    int rc = lock_until(a->variant, a->mutex, a->end);
    if (rc == 0) {
        CHECK_INT(atomic_fetch_add(&inside, 1), 0);
        let_others_in(0);
        atomic_fetch_sub(&inside, 1);
        OK(pthread_mutex_unlock(a->mutex));
    }
    return (void *)(long)rc;
}
TEST(mutex_timedlock__many_short_deadlines, "8 threads lock with deadlines of 0-2 ms: every 0 excludes, all end free") {
    enum { N = 8 };
    struct timespec none = time_epoch;
    struct attempt a = {&held, 0, &none};
    for (int round = 0; round < 50; round++) {
        pthread_t threads[N];
        struct timespec end = time_in_ms(CLOCK_REALTIME, round % 3);
        none = end;
        for (int i = 0; i < N; i++)
            threads[i] = thread_start(attempt_alone, &a);
        for (int i = 0; i < N; i++) {
            int rc = (int)(long)thread_join(threads[i]);
            CHECK(rc == 0 || rc == ETIMEDOUT);
        }
    }
    OK(pthread_mutex_trylock(&held));
}
