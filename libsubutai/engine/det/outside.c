/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Logical time and the program's clocks.
 *
 * A program makes a deadline from a reading of a clock. What it added to the reading is the same in each run; the
 * reading is not. So each thread remembers its last reading of each clock and the logical time then: the deadline is as
 * far from that logical time as from the reading. A thread that has read no clock is taken to have read it now.
 *
 * A library may read a clock again, for how far away a deadline is, and wait for so long by that or another clock. How
 * much time lies between the two readings is another in each run. So readings that follow each other at once, without
 * an operation in between, show the same time. What has come in between is known by the thread's CPU time and its
 * sleeps in the kernel, and not by the clock: it may have lost its core for a moment, or the machine may have stood
 * still.
 *
 * Whole microseconds are shown, since gettimeofday has no more, and never less than the kernel's time: no wait is over
 * before its deadline.
 *
 * The program's clocks show the kernel's time, and no wait ends before its deadline has passed there. If logical time
 * is ahead, the thread sleeps off the rest while it has the turn.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "engine/det/det.h"
#include "os/arch.h"
#include "os/futex.h"

#define NS_IN_SECOND 1000000000
#define DET_READINGS 1000 /* of clocks */
#define DET_SAME_US 200   /* of CPU time: for so long readings show the same time */
/* Further away than that, a deadline never comes. */
#define SECONDS_NEVER ((int64_t)1 << 33)

static unsigned which(clockid_t clock) {
    return clock == CLOCK_REALTIME ? 0 : 1;
}

/*
 * With --serial a thread that loops until another one has written a variable, or a time is over, would keep that other
 * one from running. Without an operation in between so many readings are such a loop.
 */
static void yield_in_loop(void) {
    if (det_self.read_since_ns != det_self.last_ns) {
        det_self.read_since_ns = det_self.last_ns;
        det_self.n_readings = 0;
    }
    if (++det_self.n_readings < DET_READINGS)
        return;
    det_take(DET_YIELD);
    det_pass();
}

/* What the calling kernel thread has done so far. */
static struct det_effort effort_now(void) {
    struct rusage u;
    sbt_syscall3(SYS_getrusage, RUSAGE_THREAD, &u, 0);
    uint64_t cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
                      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    return (struct det_effort){.cpu_us = cpu_us, .n_sleeps = (uint64_t)u.ru_nvcsw};
}

static void round_up(struct timespec *t) {
    t->tv_nsec = (t->tv_nsec + 999) / 1000 * 1000;
    if (t->tv_nsec == NS_IN_SECOND)
        *t = (struct timespec){t->tv_sec + 1, 0};
}

void det_clock_read(clockid_t clock, struct timespec *now) {
    if (SBT_UNLIKELY(det_is_serial))
        yield_in_loop();
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return;
    struct det_reading *r = &det_self.reading[which(clock)];
    const struct det_effort effort = effort_now();
    if (r->ns == det_self.last_ns + 1 && effort.cpu_us - r->effort.cpu_us < DET_SAME_US &&
        effort.n_sleeps == r->effort.n_sleeps) {
        *now = r->at;
        return;
    }
    round_up(now);
    *r = (struct det_reading){.at = *now, .ns = det_self.last_ns + 1, .effort = effort};
}

uint64_t det_logical(const struct sbt_deadline *deadline) {
    struct timespec at = det_self.reading[which(deadline->clock)].at;
    uint64_t from = det_self.reading[which(deadline->clock)].ns, now = det_round->turn.now;
    if (from == 0) {
        sbt_clock_read(deadline->clock, &at);
        from = now;
    }
    int64_t seconds = (int64_t)deadline->at.tv_sec - at.tv_sec;
    if (seconds > SECONDS_NEVER)
        return TURN_NEVER;
    int64_t ns = seconds < -SECONDS_NEVER ? -1 : seconds * NS_IN_SECOND + deadline->at.tv_nsec - at.tv_nsec;
    return ns < 0 || from + (uint64_t)ns < now ? now : from + (uint64_t)ns;
}

void det_sleep_off(const struct sbt_deadline *deadline) {
    uint32_t word = 0;
    __atomic_store_n(&det_round->sleeps_off, 1, __ATOMIC_RELAXED);
    while (!sbt_deadline_passed(deadline))
        sbt_futex_wait(&word, 0, deadline);
    __atomic_store_n(&det_round->sleeps_off, 0, __ATOMIC_RELAXED);
}

int det_sleep(uint64_t ns, const struct sbt_deadline *until) {
    if (until == NULL && ns == 0)
        ns = 1; /* 0 is for deadlines that a clock was read for */
    struct sbt_deadline in = sbt_deadline_in(until == NULL ? ns : 0);
    const struct det_wait wait = {
        .deadline = until != NULL ? until : &in, .ns = ns, .can_cancel = true, .can_interrupt = true};
    enum turn_reason reason;
    for (;;) {
        det_take_cancelable(DET_SLEEP);
        do
            reason = det_block(&det_self, &wait);
        while (reason == TURN_WOKEN);
        det_pass();
        if (reason != TURN_CANCELLED)
            break;
        pthread_testcancel();
        det_cancel_has_acted();
    }
    return reason == TURN_TIMED_OUT ? 0 : EINTR;
}
