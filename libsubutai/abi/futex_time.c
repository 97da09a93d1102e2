/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "abi/futex_time.h"

#include <linux/futex.h>

#include "os/mapped.h"

#define SECONDS_MOST ((time_t)1 << 40) /* a deadline further away never comes, and the sum does not overflow */
#define SECONDS_NEVER ((time_t)1 << 32)

#define SOON_NS 100000

static uint64_t ns_of(const struct timespec *time) {
    uint64_t ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
    return time->tv_sec >= SECONDS_NEVER ? SECONDS_NEVER * 1000000000ull : ns != 0 ? ns : 1;
}

bool abi_futex_read_until(struct abi_futex_until *until, int op, const struct timespec *timeout) {
    struct sbt_deadline *d = &until->deadline;
    struct timespec at;
    if (!sbt_mapped_readable(timeout, sizeof *timeout))
        return false;
    at = *timeout;
    if (at.tv_sec < 0 || at.tv_nsec < 0 || at.tv_nsec >= 1000000000)
        return false;
    if (at.tv_sec > SECONDS_MOST)
        at.tv_sec = SECONDS_MOST;
    until->in_ns = (op & FUTEX_CMD_MASK) == FUTEX_WAIT ? ns_of(&at) : 0;
    d->clock = (op & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT) {
        struct timespec now;
        sbt_clock_read(CLOCK_MONOTONIC, &now);
        at.tv_sec += now.tv_sec;
        at.tv_nsec += now.tv_nsec;
        if (at.tv_nsec >= 1000000000) {
            at.tv_nsec -= 1000000000;
            at.tv_sec++;
        }
    }
    d->at = at;
    return true;
}

bool abi_futex_is_soon(const struct sbt_deadline *deadline) {
    struct timespec now;
    sbt_clock_read(deadline->clock, &now);
    time_t s = deadline->at.tv_sec - now.tv_sec;
    return s < 0 || (s <= 1 && (int64_t)s * 1000000000 + deadline->at.tv_nsec - now.tv_nsec < SOON_NS);
}
