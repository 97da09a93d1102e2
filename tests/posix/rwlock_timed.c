/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-write locks with deadline: timedrdlock, timedwrlock, clockrdlock, clockwrlock.
 * Source: POSIX.1-2017 pthread_rwlock_timedrdlock, _timedwrlock, POSIX.1-2024 _clockrdlock, _clockwrlock. Unlike the
 * mutex calls, glibc's look at nsec before anything else, which POSIX allows: a bad one is EINVAL on a free lock too.
 */
#include "topic.h"

#include <signal.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static const struct way {
    clockid_t clock;
    bool write, clocked;
} ways[] = {{CLOCK_REALTIME, false, false}, {CLOCK_REALTIME, true, false},  {CLOCK_REALTIME, false, true},
            {CLOCK_REALTIME, true, true},   {CLOCK_MONOTONIC, false, true}, {CLOCK_MONOTONIC, true, true}};
#define EACH_WAY(w) (const struct way *w = ways; w < ways + sizeof ways / sizeof *ways; w++)

static int lock_until(const struct way *w, const struct timespec *end) {
    if (w->clocked)
        return w->write ? pthread_rwlock_clockwrlock(&rw, w->clock, end)
                        : pthread_rwlock_clockrdlock(&rw, w->clock, end);
    return w->write ? pthread_rwlock_timedwrlock(&rw, end) : pthread_rwlock_timedrdlock(&rw, end);
}
struct attempt {
    const struct way *way;
    struct timespec end;
};
static void *do_attempt(void *argument) {
    const struct attempt *a = argument;
    int rc = lock_until(a->way, &a->end);
    if (rc == 0)
        OK(pthread_rwlock_unlock(&rw));
    return (void *)(long)rc;
}
static int elsewhere(const struct way *w, struct timespec end) {
    struct attempt a = {w, end};
    return (int)(long)thread_join(thread_start(do_attempt, &a));
}
static void check_free(void) {
    OK(pthread_rwlock_trywrlock(&rw));
    OK(pthread_rwlock_unlock(&rw));
}

TEST(rwlock_timedlock__free_with_past_deadline_is_acquired,
     "all 4 functions, both clocks: a free lock is taken whatever "
     "the deadline") {
    for
        EACH_WAY(w) {
            OK(lock_until(w, &time_epoch));
            CHECK_RC(elsewhere(&ways[1], time_epoch), ETIMEDOUT);
            OK(pthread_rwlock_unlock(&rw));
            OK(lock_until(w, &time_seconds_negative));
            OK(pthread_rwlock_unlock(&rw));
        }
    check_free();
}
TEST(rwlock_timedrdlock__shares_with_readers_past_deadline,
     "a read lock beside another reader ignores a past deadline") {
    OK(pthread_rwlock_rdlock(&rw));
    for
        EACH_WAY(w)
    CHECK_RC(elsewhere(w, time_epoch), w->write ? ETIMEDOUT : 0);
    OK(pthread_rwlock_unlock(&rw));
}
TEST(rwlock_timedlock__past_deadline_returns_ETIMEDOUT, "all 4 functions, both clocks: lock held for writing, deadline "
                                                        "passed") {
    OK(pthread_rwlock_wrlock(&rw));
    for
        EACH_WAY(w) {
            CHECK_RC(elsewhere(w, time_in_ms(w->clock, -10)), ETIMEDOUT);
            CHECK_RC(elsewhere(w, time_epoch), ETIMEDOUT);
            CHECK_RC(elsewhere(w, time_seconds_negative), ETIMEDOUT);
        }
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedlock__invalid_nsec_returns_EINVAL, "all 4 functions, both clocks: lock held for writing, nsec -1 and "
                                                    "10^9") {
    OK(pthread_rwlock_wrlock(&rw));
    for
        EACH_WAY(w) {
            CHECK_RC(elsewhere(w, time_nsec_too_big), EINVAL);
            CHECK_RC(elsewhere(w, time_nsec_negative), EINVAL);
        }
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedlock__invalid_nsec_on_free_returns_EINVAL,
     "all 4 functions, both clocks: free lock, bad nsec (glibc)") {
    for
        EACH_WAY(w) {
            CHECK_RC(lock_until(w, &time_nsec_too_big), EINVAL);
            CHECK_RC(lock_until(w, &time_nsec_negative), EINVAL);
            check_free();
        }
}
TEST(rwlock_clocklock__other_clock_returns_EINVAL,
     "clockrdlock and clockwrlock with CPU-time, boot-time, unknown clocks") {
    const clockid_t others[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME, 12345, -1};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
        CHECK_RC(pthread_rwlock_clockrdlock(&rw, others[i], &end), EINVAL);
        CHECK_RC(pthread_rwlock_clockwrlock(&rw, others[i], &end), EINVAL);
        check_free();
    }
}
static void times_out(bool write, bool clocked, clockid_t clock) {
    const struct way w = {clock, write, clocked};
    OK(pthread_rwlock_wrlock(&rw));
    struct timespec start = time_now(clock);
    CHECK_RC(elsewhere(&w, time_in_ms(clock, SHORT_MS)), ETIMEDOUT);
    CHECK(time_since_ms(clock, start) >= SHORT_MS - 1);
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedrdlock__waits_until_the_deadline, "timedrdlock: ETIMEDOUT, not before the deadline") {
    times_out(false, false, CLOCK_REALTIME);
}
TEST(rwlock_timedwrlock__waits_until_the_deadline, "timedwrlock: ETIMEDOUT, not before the deadline") {
    times_out(true, false, CLOCK_REALTIME);
}
TEST(rwlock_clockrdlock__waits_until_the_deadline, "clockrdlock, both clocks: ETIMEDOUT, not before the deadline") {
    times_out(false, true, CLOCK_REALTIME);
    times_out(false, true, CLOCK_MONOTONIC);
}
TEST(rwlock_clockwrlock__waits_until_the_deadline, "clockwrlock, both clocks: ETIMEDOUT, not before the deadline") {
    times_out(true, true, CLOCK_REALTIME);
    times_out(true, true, CLOCK_MONOTONIC);
}
TEST(rwlock_timedwrlock__own_read_lock_times_out, "a reader that asks for writing waits for itself: ETIMEDOUT") {
    OK(pthread_rwlock_rdlock(&rw));
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_rwlock_timedwrlock(&rw, &end), ETIMEDOUT);
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedlock__own_write_lock_returns_EDEADLK, "all 4 functions by the writer itself: EDEADLK at once") {
    OK(pthread_rwlock_wrlock(&rw));
    for
        EACH_WAY(w) {
            struct timespec end = time_in_ms(w->clock, LONG_MS);
            CHECK_RC(lock_until(w, &end), EDEADLK);
        }
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedlock__gets_a_lock_released_in_time, "all 4 functions, both clocks: 0 once the writer leaves") {
    for
        EACH_WAY(w) {
            struct attempt a = {w, time_in_ms(w->clock, LONG_MS)};
            OK(pthread_rwlock_wrlock(&rw));
            pthread_t other = thread_start(do_attempt, &a);
            let_threads_block();
            OK(pthread_rwlock_unlock(&rw));
            OK((int)(long)thread_join(other));
        }
    check_free();
}
TEST(rwlock_timedwrlock__gets_a_lock_released_by_readers, "timedwrlock: 0 once the last reader leaves") {
    struct attempt a = {&ways[1], time_in_ms(CLOCK_REALTIME, LONG_MS)};
    OK(pthread_rwlock_rdlock(&rw));
    pthread_t other = thread_start(do_attempt, &a);
    let_threads_block();
    OK(pthread_rwlock_unlock(&rw));
    OK((int)(long)thread_join(other));
}
/* A writer that gives up must let in the readers that its preference kept out, although the lock never changed hands.
 */
static void *read_blocking(void *unused) {
    (void)unused;
    OK(pthread_rwlock_rdlock(&rw));
    OK(pthread_rwlock_unlock(&rw));
    return NULL;
}
TEST(rwlock_timedwrlock__timed_out_writer_lets_readers_in, "PREFER_WRITER_NONRECURSIVE: readers blocked by a waiting "
                                                           "writer enter when it times out") {
    pthread_rwlockattr_t attr;
    pthread_t readers[4];
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    OK(pthread_rwlock_init(&rw, &attr));
    OK(pthread_rwlock_rdlock(&rw));
    struct attempt a = {&ways[1], time_in_ms(CLOCK_REALTIME, 5 * SHORT_MS)};
    pthread_t writer = thread_start(do_attempt, &a);
    let_threads_block();
    for (int i = 0; i < 4; i++)
        readers[i] = thread_start(read_blocking, NULL);
    CHECK_RC((int)(long)thread_join(writer), ETIMEDOUT);
    for (int i = 0; i < 4; i++)
        thread_join(readers[i]);
    OK(pthread_rwlock_unlock(&rw));
    check_free();
}
TEST(rwlock_timedlock__timed_out_waiter_is_withdrawn,
     "after a time-out the next unlock goes to the waiter that is left") {
    for
        EACH_WAY(w) {
            struct attempt brief = {w, time_in_ms(w->clock, SHORT_MS)}, patient = {w, time_in_ms(w->clock, LONG_MS)};
            OK(pthread_rwlock_wrlock(&rw));
            pthread_t first = thread_start(do_attempt, &brief), second = thread_start(do_attempt, &patient);
            CHECK_RC((int)(long)thread_join(first), ETIMEDOUT);
            OK(pthread_rwlock_unlock(&rw));
            OK((int)(long)thread_join(second));
        }
    check_free();
}
TEST(rwlock_timedlock__never_returns_EINTR, "all 4 functions: waiters hit by signals time out, nothing else") {
    signal_counter(SIGUSR1, false);
    OK(pthread_rwlock_wrlock(&rw));
    for
        EACH_WAY(w) {
            struct attempt a = {w, time_in_ms(w->clock, 3 * SHORT_MS)};
            pthread_t other = thread_start(do_attempt, &a);
            let_threads_block();
            for (int i = 0; i < 20; i++)
                OK(pthread_kill(other, SIGUSR1));
            CHECK_RC((int)(long)thread_join(other), ETIMEDOUT);
        }
    CHECK(atomic_load(&signals_seen) > 0);
}
static void sleep_past_deadline(int signo) {
    (void)signo;
    sleep_ms(2 * SHORT_MS);
}
TEST(rwlock_timedrdlock__handler_sleeps_past_the_deadline, "and so does the writer, which unlocks meanwhile: neither "
                                                           "sleeps for ever") {
    struct sigaction action = {.sa_handler = sleep_past_deadline};
    SYS(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_rwlock_wrlock(&rw));
    struct attempt a = {&ways[0], time_in_ms(CLOCK_REALTIME, SHORT_MS)};
    pthread_t other = thread_start(do_attempt, &a);
    sleep_ms(SHORT_MS / 2);
    OK(pthread_kill(other, SIGUSR1));
    sleep_ms(SHORT_MS);
    OK(pthread_rwlock_unlock(&rw));
    int rc = (int)(long)thread_join(other);
    CHECK(rc == 0 || rc == ETIMEDOUT);
    check_free();
}
