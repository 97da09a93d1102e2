/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Deadlines in a time that is not the kernel's (os/program_time.c): a clock_gettime of this test's shows it. */
#include "os/program_time.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "lib/suite.h"
#include "os/real.h"

#define SECOND INT64_C(1000000000)
#define YEAR_S INT64_C(31557600)
#define LAST INT64_MAX

const bool sbt_real_is_linked = true;

/* How far the program's CLOCK_REALTIME is ahead of the kernel's. */
static int64_t ahead_s, ahead_ns;
static bool refuses;

static int show(clockid_t clock, struct timespec *now) {
    long r = syscall(SYS_clock_gettime, clock, now);
    if (clock != CLOCK_REALTIME)
        return (int)r;
    now->tv_sec += ahead_s;
    now->tv_nsec += ahead_ns;
    if (now->tv_nsec >= SECOND || now->tv_nsec < 0) {
        int64_t carry = now->tv_nsec < 0 ? -1 : 1;
        now->tv_sec += carry;
        now->tv_nsec -= carry * SECOND;
    }
    return refuses ? -1 : (int)r;
}

struct sbt_real sbt_real = {.clock_gettime = show};

static int64_t kernel_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static void is_in_range(const struct sbt_deadline *d) {
    ck_assert_int_ge(d->at.tv_nsec, 0);
    ck_assert_int_lt(d->at.tv_nsec, SECOND);
}

/* A deadline so far from the program's now is as far from the kernel's now, to 5 s: the machine may be busy. */
static void keeps_distance(int64_t distance_ns) {
    struct timespec at;
    show(CLOCK_REALTIME, &at);
    int64_t ns = at.tv_sec * SECOND + at.tv_nsec + distance_ns;
    at = (struct timespec){ns / SECOND, ns % SECOND};
    int64_t before = kernel_ns();
    struct sbt_deadline d = sbt_program_time_deadline(CLOCK_REALTIME, &at);
    is_in_range(&d);
    ck_assert_int_eq(d.clock, CLOCK_REALTIME);
    int64_t found = d.at.tv_sec * SECOND + d.at.tv_nsec - before;
    ck_assert_int_ge(found, distance_ns - 5 * SECOND);
    ck_assert_int_le(found, distance_ns + 5 * SECOND);
}

TEST(a_deadline_keeps_its_distance_from_now) {
    const int64_t ahead[][2] = {{0, 0},         {10 * YEAR_S, 0}, {-10 * YEAR_S, 0},
                                {0, 999999999}, {-1, 1},          {3600, 500000000}};
    const int64_t distance[] = {0, 1, SECOND - 1, SECOND / 2, 100 * SECOND, -1, -3600 * SECOND};
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++)
        for (size_t k = 0; k < sizeof distance / sizeof *distance; k++) {
            ahead_s = ahead[i][0];
            ahead_ns = ahead[i][1];
            keeps_distance(distance[k]);
        }
}

/* Nanoseconds may be carried into the seconds, and the seconds may have no room: never a time that has passed. */
TEST(the_last_deadline_there_is_stays_far_away) {
    const int64_t ahead[][2] = {{0, 0}, {5 * YEAR_S, 1}, {-5 * YEAR_S, 0}, {0, 999999999}, {-1, 1}};
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        ahead_s = ahead[i][0];
        ahead_ns = ahead[i][1];
        struct timespec at = {LAST, SECOND - 1};
        struct sbt_deadline d = sbt_program_time_deadline(CLOCK_REALTIME, &at);
        is_in_range(&d);
        ck_assert_int_gt(d.at.tv_sec, LAST - 6 * YEAR_S);
    }
}

TEST(another_clock_is_the_kernels) {
    struct timespec at = {12345, 678};
    ahead_s = YEAR_S;
    struct sbt_deadline d = sbt_program_time_deadline(CLOCK_MONOTONIC, &at);
    ck_assert_int_eq(d.clock, CLOCK_MONOTONIC);
    /* only what goes by between the two readings of the clock */
    ck_assert_int_ge(d.at.tv_sec, 12345);
    ck_assert_int_le(d.at.tv_sec, 12345 + 5);
}

TEST(what_is_no_deadline_stays_as_it_is) {
    const struct timespec bad[] = {{5, -1}, {5, SECOND}};
    ahead_s = YEAR_S;
    for (int i = 0; i < 2; i++) {
        struct sbt_deadline d = sbt_program_time_deadline(CLOCK_REALTIME, &bad[i]);
        ck_assert_int_eq(sbt_deadline_check(&d), EINVAL);
        ck_assert_int_eq(d.at.tv_sec, 5);
    }
    struct timespec at = {7, 8};
    struct sbt_deadline d = sbt_program_time_deadline(CLOCK_TAI, &at);
    ck_assert_int_eq(sbt_deadline_check(&d), EINVAL);
    refuses = true;
    d = sbt_program_time_deadline(CLOCK_REALTIME, &at);
    ck_assert(d.at.tv_sec == 7 && d.at.tv_nsec == 8);
}
