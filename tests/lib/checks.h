/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checks of the tests in C and C++. A check that fails says where, and what it found:
 *
 *     FILE:LINE: EXPRESSION is 3, not 4 (WANTED)
 *
 * What happens then is decided by the program, which is linked with one check_failed:
 *
 *     ends.c             the process ends with status 1: programs that check themselves, and all that bring no other
 * one suite.c            the running test fails and ends stress/torture.c   the failure is counted, and the torture
 * goes on
 *
 * A check may stand in any thread, in a forked child and in a signal handler. The unit tests, each a process of one
 * thread, use the assertions of Check as well, which compare more types.
 */
#ifndef TESTS_LIB_CHECKS_H
#define TESTS_LIB_CHECKS_H

#include <errno.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The test cannot go on: nothing behind this runs, in any program. */
#define FAIL(...) check_end(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        checks_of_thread++;                                                                                            \
        if (!(condition))                                                                                              \
            check_fail(__FILE__, __LINE__, "%s is false", #condition);                                                 \
    } while (0)
#define CHECK_INT(expression, wanted)                                                                                  \
    do {                                                                                                               \
        long long check_got = (long long)(expression), check_want = (long long)(wanted);                               \
        checks_of_thread++;                                                                                            \
        if (check_got != check_want)                                                                                   \
            check_fail(__FILE__, __LINE__, "%s is %lld, not %lld (%s)", #expression, check_got, check_want, #wanted);  \
    } while (0)
/* For functions that return an errno value. */
#define CHECK_RC(expression, wanted)                                                                                   \
    do {                                                                                                               \
        int check_got = (expression), check_want = (wanted);                                                           \
        checks_of_thread++;                                                                                            \
        if (check_got != check_want)                                                                                   \
            check_fail(__FILE__, __LINE__, "%s returned %s, not %s", #expression, check_errno_name(check_got),         \
                       check_errno_name(check_want));                                                                  \
    } while (0)
#define OK(expression) CHECK_RC(expression, 0)
/* For functions that return -1 and set errno: that they fail like that. */
#define CHECK_ERRNO(expression, wanted)                                                                                \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long check_got = (long)(expression);                                                                           \
        int check_errno = errno;                                                                                       \
        checks_of_thread++;                                                                                            \
        if (check_got != -1 || check_errno != (wanted))                                                                \
            check_fail(__FILE__, __LINE__, "%s returned %ld with errno %s, not -1 with %s", #expression, check_got,    \
                       check_errno_name(check_errno), #wanted);                                                        \
    } while (0)
/* That they do not; OK_ERRNO, that they return 0. */
#define SYS(expression)                                                                                                \
    do {                                                                                                               \
        checks_of_thread++;                                                                                            \
        if ((expression) == -1)                                                                                        \
            check_fail(__FILE__, __LINE__, "%s failed: %s", #expression, check_errno_name(errno));                     \
    } while (0)
#define OK_ERRNO(expression)                                                                                           \
    do {                                                                                                               \
        long check_got = (long)(expression);                                                                           \
        checks_of_thread++;                                                                                            \
        if (check_got != 0)                                                                                            \
            check_fail(__FILE__, __LINE__, "%s returned %ld with errno %s, not 0", #expression, check_got,             \
                       check_errno_name(errno));                                                                       \
    } while (0)

/* Fail with a printf message, as a check does, and as FAIL. */
void check_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void check_end(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
/* What that leads to in this program; see above. */
void check_failed(const char *file, int line, const char *text);

const char *check_errno_name(int number);

extern __thread uint64_t checks_of_thread; /* that this thread has made */

#ifdef __cplusplus
}
#endif

#endif
