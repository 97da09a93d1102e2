/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of many tests. A test is a function with a name that states the requirement, and if the name does not say
 * all, a line about what is checked; it registers itself and runs in a forked process of its own under Check, with a
 * time limit.
 *
 *     TEST(mutex_trylock__held_by_other_returns_EBUSY, "trylock of a mutex that another thread holds") {
 *         ...
 *         CHECK_RC(pthread_mutex_trylock(&m), EBUSY);
 *     }
 *
 * Invariants: a failed check ends the process it happens in (the test, or a child that the test forked), from any
 * thread of it; a test that neither fails nor skips has passed; the whole process group is killed when the time is
 * over. The assertions of Check work in the test's first process alone.
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>

#include "checks.h"

struct suite_test {
    TTest check;
    const char *what;
    int (*n)(void); /* times: once if NULL */
};

#define TEST(test, ...)                                                                                                \
    static void test(void);                                                                                            \
    static void test##_run(int loop) {                                                                                 \
        (void)loop;                                                                                                    \
        tcase_fn_start(#test, __FILE__, __LINE__);                                                                     \
        test();                                                                                                        \
    }                                                                                                                  \
    SUITE_REGISTER(test, NULL, "" __VA_ARGS__)                                                                         \
    static void test(void)

/* `n` tests, which are given the numbers from 0. */
#define TEST_EACH(test, times, ...)                                                                                    \
    static void test(int number);                                                                                      \
    static void test##_run(int loop) {                                                                                 \
        tcase_fn_start(#test, __FILE__, __LINE__);                                                                     \
        test(loop);                                                                                                    \
    }                                                                                                                  \
    static int test##_n(void) {                                                                                        \
        return (int)(times);                                                                                           \
    }                                                                                                                  \
    SUITE_REGISTER(test, test##_n, "" __VA_ARGS__)                                                                     \
    static void test(int number)

#define SUITE_REGISTER(test, n, text)                                                                                  \
    static const struct suite_test test##_entry = {{#test, test##_run, __FILE__, __LINE__}, text, n};                  \
    static const struct suite_test *const test##_ref __attribute__((section("suite_tests"), used)) = &test##_entry;

/* Reports the running test as skipped, with the reason, and ends it. */
void test_skip(const char *reason) __attribute__((noreturn));
#define SKIP_IF(condition, reason)                                                                                     \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            test_skip(reason);                                                                                         \
    } while (0)

#endif
