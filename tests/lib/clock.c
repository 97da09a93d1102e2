/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In signed nanoseconds: the monotonic clock starts with the machine, so that a time ago may be before its zero. */
#include "clock.h"

#include "checks.h"

struct timespec time_now(clockid_t clock) {
    struct timespec now = {0, 0};
    if (clock_gettime(clock, &now) != 0) /* no check of the test's that it would count */
        FAIL("the time of clock %d: %s", (int)clock, check_errno_name(errno));
    return now;
}

int64_t time_to_ns(const struct timespec *time) {
    return time->tv_sec * NS_PER_S + time->tv_nsec;
}

struct timespec time_of_ns(int64_t ns) {
    int64_t seconds = ns / NS_PER_S - (ns % NS_PER_S < 0);
    return (struct timespec){(time_t)seconds, (long)(ns - seconds * NS_PER_S)};
}

int64_t now_ns(clockid_t clock) {
    struct timespec now = time_now(clock);
    return time_to_ns(&now);
}

struct timespec time_in_ns(clockid_t clock, int64_t ns) {
    return time_of_ns(now_ns(clock) + ns);
}

struct timespec time_in_us(clockid_t clock, int64_t us) {
    return time_in_ns(clock, us * 1000);
}

struct timespec time_in_ms(clockid_t clock, int64_t ms) {
    return time_in_ns(clock, ms * 1000000);
}

bool time_is_past(clockid_t clock, const struct timespec *time) {
    return now_ns(clock) >= time_to_ns(time);
}

long time_since_ms(clockid_t clock, struct timespec start) {
    return (long)((now_ns(clock) - time_to_ns(&start)) / 1000000);
}

void sleep_ns(int64_t ns) {
    struct timespec left = time_of_ns(ns);
    int r;
    do
        r = nanosleep(&left, &left);
    while (r != 0 && errno == EINTR);
    if (r != 0)
        FAIL("asleep for %lld ns: %s", (long long)ns, check_errno_name(errno));
}

void sleep_us(int64_t us) {
    sleep_ns(us * 1000);
}

void sleep_ms(int64_t ms) {
    sleep_ns(ms * 1000000);
}
