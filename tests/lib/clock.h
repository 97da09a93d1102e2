/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clocks, deadlines and sleeps of the tests. */
#ifndef TESTS_LIB_CLOCK_H
#define TESTS_LIB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NS_PER_S 1000000000ll

int64_t now_ns(clockid_t clock);
struct timespec time_now(clockid_t clock);
struct timespec time_of_ns(int64_t ns);
int64_t time_to_ns(const struct timespec *time);

/* Deadlines: so far from now, or, if negative, ago. */
struct timespec time_in_ns(clockid_t clock, int64_t ns);
struct timespec time_in_us(clockid_t clock, int64_t us);
struct timespec time_in_ms(clockid_t clock, int64_t ms);
bool time_is_past(clockid_t clock, const struct timespec *time);
long time_since_ms(clockid_t clock, struct timespec start);

/* All of it, whatever signals arrive. */
void sleep_ns(int64_t ns);
void sleep_us(int64_t us);
void sleep_ms(int64_t ms);

#ifdef __cplusplus
}
#endif

#endif
