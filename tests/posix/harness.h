/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Harness of the POSIX conformance suite. A test is a function with a name that states the requirement and a line that
 * says what is checked; it registers itself and runs in a forked process of its own under Check, with a time limit.
 *
 *     TEST(mutex_trylock__held_by_other_returns_EBUSY, "trylock of a mutex that another thread holds") {
 *         ...
 *         CHECK_RC(pthread_mutex_trylock(&m), EBUSY);
 *     }
 *
 * Invariants: a failed check ends the process it happens in (the test, or a child that the test forked), from any
 * thread of it; a test that neither fails nor skips has passed; the whole process group is killed when the time is
 * over. The programs are ordinary consumers of libpthread: they know nothing of Subutai, and plain glibc is the oracle.
 */
#ifndef TESTS_POSIX_HARNESS_H
#define TESTS_POSIX_HARNESS_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct posix_test {
    TTest check;
    const char *what;
};

#define TEST(test, text)                                                                                               \
    static void test(void);                                                                                            \
    static void test##_run(int loop) {                                                                                 \
        (void)loop;                                                                                                    \
        tcase_fn_start(#test, __FILE__, __LINE__);                                                                     \
        test();                                                                                                        \
    }                                                                                                                  \
    static const struct posix_test test##_entry = {{#test, test##_run, __FILE__, __LINE__}, text};                     \
    static const struct posix_test *const test##_ref __attribute__((section("posix_tests"), used)) = &test##_entry;    \
    static void test(void)

/* Fails with a printf message; usable in every thread and in forked children. Does not return. */
void test_fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL("%s is false", #condition);                                                                           \
    } while (0)
#define CHECK_INT(expression, wanted)                                                                                  \
    do {                                                                                                               \
        long long check_got = (long long)(expression), check_want = (long long)(wanted);                               \
        if (check_got != check_want)                                                                                   \
            FAIL("%s is %lld, not %lld (%s)", #expression, check_got, check_want, #wanted);                            \
    } while (0)
/* For functions that return an errno value. */
#define CHECK_RC(expression, wanted)                                                                                   \
    do {                                                                                                               \
        int check_got = (expression), check_want = (wanted);                                                           \
        if (check_got != check_want)                                                                                   \
            FAIL("%s returned %s, not %s", #expression, test_errno_name(check_got), test_errno_name(check_want));      \
    } while (0)
#define OK(expression) CHECK_RC(expression, 0)
/* For functions that return -1 and set errno. */
#define CHECK_ERRNO(expression, wanted)                                                                                \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long check_got = (long)(expression);                                                                           \
        int check_errno = errno;                                                                                       \
        if (check_got != -1 || check_errno != (wanted))                                                                \
            FAIL("%s returned %ld with errno %s, not -1 with %s", #expression, check_got,                              \
                 test_errno_name(check_errno), #wanted);                                                               \
    } while (0)
#define SYS(expression)                                                                                                \
    do {                                                                                                               \
        if ((expression) == -1)                                                                                        \
            FAIL("%s failed: %s", #expression, test_errno_name(errno));                                                \
    } while (0)

const char *test_errno_name(int number);

/* Reports the running test as skipped, with the reason, and ends it. */
void test_skip(const char *reason) __attribute__((noreturn));
#define SKIP_IF(condition, reason)                                                                                     \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            test_skip(reason);                                                                                         \
    } while (0)

/* What this machine cannot do; each is found by trying, so that emulators need no list. */
bool no_robust_list(void);      /* kernel does not walk robust lists (qemu-user) */
bool no_priority_inherit(void); /* no PI futexes */
bool no_realtime(void);         /* SCHED_FIFO refused */

/* --- threads ------------------------------------------------------------------------------------------------------ */
pthread_t thread_start(void *(*routine)(void *), void *argument);
void *thread_join(pthread_t thread); /* returns the thread's value */
void thread_join_cancelled(pthread_t thread);
/*
 * Gives other threads time to reach the state they should block in. Only ever used so that "it has not happened" means
 * something: a test must be right however long the others take.
 */
void settle(void);
void sleep_ms(long ms);
/* The caller and the threads it creates from now on: who is woken does not run until somebody else waits. */
void stay_on_one_cpu(void);
/* Waits until *counter reaches `value`; the test's time limit bounds it. */
void await(const atomic_int *counter, int value);

/* --- processes ---------------------------------------------------------------------------------------------------- */
void *shared_memory(size_t size); /* zeroed, shared with children */
pid_t child_start(void (*routine)(void *), void *argument);
void child_join(pid_t child);                               /* fails unless it exited with 0 */
void run_in_child(void (*routine)(void *), void *argument); /* start and join */

/* --- time --------------------------------------------------------------------------------------------------------- */
struct timespec time_now(clockid_t clock);
struct timespec time_in(clockid_t clock, long ms); /* absolute, ms from now (may be negative) */
long time_since_ms(clockid_t clock, struct timespec start);
/* Another round, after `done`? As many as go into two seconds, since a round may need turns of a busy kernel's, but
 * `least` at least and `most` at most. One caller at a time, who begins with done == 0. */
bool another_round(int done, int least, int most);
/* Absolute times that no clock accepts, or that have passed by in every clock. */
extern const struct timespec time_nsec_too_big, time_nsec_negative, time_seconds_negative, time_epoch;
#define SHORT_MS 60   /* a deadline that is waited for */
#define LONG_MS 60000 /* a deadline that must not be reached */

/* --- signals ------------------------------------------------------------------------------------------------------ */
extern atomic_int signals_seen;
void signal_counter(int signo, bool restart); /* installs a handler that counts into signals_seen */
/* Sends `signo` to the thread and waits for the handler, `times` times. */
void signal_thread(pthread_t thread, int signo, int times);

#endif
