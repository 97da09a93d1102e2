/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time: absolute deadlines as POSIX gives them, and a monotonic count of nanoseconds. Nothing here blocks.
 *
 * It is the kernel's time, read in the kernel's vDSO and not by clock_gettime. Another preloaded library may define
 * that function: then it may not be ready for a call, and it may show another time than the kernel uses to end a wait.
 */
#ifndef SBT_OS_CLOCK_H
#define SBT_OS_CLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* An absolute deadline. Functions take a pointer; NULL waits for ever. */
struct sbt_deadline {
    clockid_t clock; /* CLOCK_REALTIME or CLOCK_MONOTONIC */
    struct timespec at;
};

/* Once, by start/: find the vDSO's function. Without it each reading is a system call. */
void sbt_clock_start(void);

/* Read a clock that the kernel always has: CLOCK_REALTIME, CLOCK_MONOTONIC. */
void sbt_clock_read(clockid_t clock, struct timespec *now);

/* Nanoseconds of CLOCK_MONOTONIC. A vDSO call: tens of ns, so for slow paths only. */
static inline uint64_t sbt_now_ns(void) {
    struct timespec t;
    sbt_clock_read(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The deadline `ns` from now. */
static inline struct sbt_deadline sbt_deadline_in(uint64_t ns) {
    const uint64_t second = 1000000000, at = sbt_now_ns() + ns;
    return (struct sbt_deadline){CLOCK_MONOTONIC, {(time_t)(at / second), (long)(at % second)}};
}

/* 0; or EINVAL for a clock that waits do not support, or for nanoseconds out of range. */
static inline int sbt_deadline_check(const struct sbt_deadline *d) {
    if (d == NULL)
        return 0;
    if (d->clock != CLOCK_REALTIME && d->clock != CLOCK_MONOTONIC)
        return EINVAL;
    return d->at.tv_nsec < 0 || d->at.tv_nsec >= 1000000000 ? EINVAL : 0;
}

/* Has the deadline passed? */
static inline bool sbt_deadline_passed(const struct sbt_deadline *d) {
    struct timespec now;
    sbt_clock_read(d->clock, &now);
    return now.tv_sec > d->at.tv_sec || (now.tv_sec == d->at.tv_sec && now.tv_nsec >= d->at.tv_nsec);
}

#endif
