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
 * sleeps in the kernel, and not by the clock, but for a bound: the thread may have lost its core for a moment.
 *
 * CLOCK_MONOTONIC does not go back between threads: a time that is kept for a thread and older than what any thread has
 * been shown is not shown again. Threads that read it at once may so have another schedule in each run. The time of day
 * may go back, by what a thread keeps: libraries read that twice, and a program must reckon with it being set.
 *
 * Whole microseconds are shown, since gettimeofday has no more. A new reading is no less than the kernel's time. No
 * wait ends before its deadline has passed in the kernel's time: if logical time is ahead, the thread sleeps off the
 * rest while it has the turn. If its deadline was made from a time that was kept, the wait is shorter by that time's
 * age, as if the thread had lost its core behind the reading.
 *
 * Two readings in a row may show two times all the same: what the machine takes from the thread in between may count as
 * its CPU time. So a deadline that is a whole number of milliseconds behind the first time, and not behind the last, is
 * taken to be made from the first.
 *
 * A library may wait in parts, each for what the clock says is left (Boost's timed waits), and a wait ends later than
 * its deadline, by another time in each run. So a thread that reads a clock as soon as its time is over is shown the
 * deadline, as if it had been woken at once.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "engine/det/det.h"
#include "os/arch.h"
#include "os/futex.h"

#define NS_IN_SECOND 1000000000
#define NS_IN_MILLI 1000000
#define DET_READINGS 1000 /* of clocks */
#define DET_LOOKS 100     /* for what the outside does: each is a system call */
/* For so long readings show the same time: of CPU time, and of the kernel's time. */
#define DET_SAME_NS 200000
#define DET_SAME_KERNEL_NS 100000000
/* Further away than that, a deadline never comes. */
#define SECONDS_NEVER ((int64_t)1 << 33)

static int64_t ns_of(const struct timespec *t) {
    return (int64_t)t->tv_sec * NS_IN_SECOND + t->tv_nsec;
}

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

/*
 * A look that does not wait is no operation. But a loop of looks may wait for another thread, which waits for the turn:
 * the thread leaves the round now and then. As often in each run, if each look finds the same. With --serial, where
 * other threads are runnable, it passes the turn: what they give it finds at the same look in each run.
 */
bool det_looks(void) {
    if (det_self.looked_since_ns != det_self.last_ns) {
        det_self.looked_since_ns = det_self.last_ns;
        det_self.n_looks = 0;
    }
    if (++det_self.n_looks < DET_LOOKS)
        return false;
    if (!det_is_serial)
        return true;
    det_take(DET_YIELD);
    bool is_alone = det_is_alone();
    det_pass();
    return is_alone;
}

/* What the calling kernel thread has done so far; false: the kernel does not say (a filter of system calls). */
static bool effort_now(struct det_effort *effort) {
    struct timespec cpu;
    struct rusage u;
    if (sbt_syscall3(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &cpu, 0) != 0 ||
        sbt_syscall3(SYS_getrusage, RUSAGE_THREAD, &u, 0) != 0) /* its CPU time may be counted in ticks */
        return false;
    *effort = (struct det_effort){.cpu_ns = ns_of(&cpu), .n_sleeps = u.ru_nvcsw};
    return true;
}

/* The latest time of CLOCK_MONOTONIC that a thread has been shown. */
static int64_t shown_ns;

static void note_shown(int64_t ns) {
    int64_t seen = __atomic_load_n(&shown_ns, __ATOMIC_RELAXED);
    while (seen < ns && !__atomic_compare_exchange_n(&shown_ns, &seen, ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Does the reading still hold? The kernel's time is `now_ns`: it is earlier if the clock has been set back. */
static bool is_same(const struct det_reading *r, clockid_t clock, int64_t now_ns, const struct det_effort *effort) {
    return r->ns == det_self.last_ns + 1 && effort->cpu_ns - r->effort.cpu_ns < DET_SAME_NS &&
           effort->n_sleeps == r->effort.n_sleeps && now_ns - r->at_ns < DET_SAME_KERNEL_NS &&
           now_ns - r->at_ns > -DET_SAME_NS &&
           (clock == CLOCK_REALTIME || r->at_ns >= __atomic_load_n(&shown_ns, __ATOMIC_RELAXED));
}

/* A time that the clock has shown, or would have, since the thread's last operation; it shows another one now. */
static void keep_earlier(unsigned clock, int64_t at_ns) {
    struct det_earlier *e = &det_self.earlier[clock];
    const uint64_t moment = det_self.last_ns + 1;
    const uint32_t n = e->ns == moment ? e->n : 0; /* a handler may interrupt this */
    e->ns = moment;
    if (n >= DET_EARLIER)
        return;
    e->at_ns[n] = at_ns;
    e->n = n + 1;
}

/* A handler that interrupts this finds no reading, or the old or new one. */
static void keep(unsigned clock, int64_t at_ns, const struct det_effort *effort) {
    struct det_reading *r = &det_self.reading[clock];
    if (r->ns == det_self.last_ns + 1)
        keep_earlier(clock, r->at_ns);
    r->ns = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    r->at_ns = at_ns;
    r->effort = *effort;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    r->ns = det_self.last_ns + 1;
}

static int64_t whole_us(int64_t ns) {
    return (ns + 999) / 1000 * 1000;
}

/* The deadlines lie as far behind the readings as the wait's: of the clocks that were read where that one was. */
void det_clock_is_due(const struct det_wait *wait, uint64_t before_ns) {
    const struct det_reading *r = &det_self.reading[which(wait->deadline->clock)];
    int64_t wait_ns = wait->ns != 0 ? (int64_t)wait->ns : ns_of(&wait->deadline->at) - r->at_ns;
    uint64_t read_ns = wait->ns != 0 ? before_ns + 1 : r->ns;
    struct det_effort effort;
    det_self.due.ns = 0;
    if (wait_ns < 0 || read_ns == 0 || !effort_now(&effort))
        return;
    for (unsigned i = 0; i < 2; i++)
        det_self.due.at_ns[i] = det_self.reading[i].ns == read_ns ? whole_us(det_self.reading[i].at_ns + wait_ns) : 0;
    det_self.due.cpu_ns = effort.cpu_ns;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.due.ns = det_round->turn.now + 1;
}

/* What the clock shows, once, behind a wait of which the time is over; `now_ns` is the kernel's. */
static int64_t due_or_now(clockid_t clock, int64_t now_ns, const struct det_effort *effort) {
    int64_t at_ns = det_self.due.at_ns[which(clock)];
    if (det_self.due.ns != det_self.last_ns + 1 || at_ns == 0 || effort->n_sleeps < 0)
        return now_ns;
    det_self.due.at_ns[which(clock)] = 0;
    bool shows = at_ns <= now_ns && now_ns - at_ns < DET_SAME_KERNEL_NS &&
                 effort->cpu_ns - det_self.due.cpu_ns < DET_SAME_NS &&
                 (clock == CLOCK_REALTIME || at_ns >= __atomic_load_n(&shown_ns, __ATOMIC_RELAXED));
    if (!shows)
        keep_earlier(which(clock), at_ns);
    return shows ? at_ns : now_ns;
}

void det_clock_read(clockid_t clock, struct timespec *now) {
    if (SBT_UNLIKELY(det_is_serial))
        yield_in_loop();
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return;
    struct det_reading *r = &det_self.reading[which(clock)];
    struct det_effort effort = {0, -1}; /* as no later one */
    int64_t at_ns = whole_us(ns_of(now));
    if (effort_now(&effort) && is_same(r, clock, at_ns, &effort)) {
        at_ns = r->at_ns;
    } else {
        at_ns = due_or_now(clock, at_ns, &effort);
        keep(which(clock), at_ns, &effort);
    }
    if (clock == CLOCK_MONOTONIC)
        note_shown(at_ns);
    *now = (struct timespec){at_ns / NS_IN_SECOND, at_ns % NS_IN_SECOND};
}

/*
 * Of a wait for so long, by the last readings at that logical time, plus 1: how much later these are than the one that
 * the wait was made from.
 */
static int64_t stood_still_ns(int64_t wait_ns, uint64_t moment) {
    if (wait_ns % NS_IN_MILLI == 0)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct det_earlier *e = &det_self.earlier[i];
        for (uint32_t n = 0; det_self.reading[i].ns == moment && e->ns == moment && n < e->n; n++) {
            int64_t later_ns = det_self.reading[i].at_ns - e->at_ns[n];
            if (later_ns > 0 && later_ns < DET_SAME_KERNEL_NS && (wait_ns + later_ns) % NS_IN_MILLI == 0)
                return later_ns;
        }
    }
    return 0;
}

uint64_t det_logical_in(uint64_t ns) {
    return det_round->turn.now + ns + (uint64_t)stood_still_ns((int64_t)ns, det_self.last_ns + 1);
}

uint64_t det_logical(const struct sbt_deadline *deadline) {
    const struct det_reading *r = &det_self.reading[which(deadline->clock)];
    struct timespec at = {r->at_ns / NS_IN_SECOND, r->at_ns % NS_IN_SECOND};
    uint64_t from = r->ns, now = det_round->turn.now;
    if (from == 0) {
        sbt_clock_read(deadline->clock, &at);
        from = now;
    }
    int64_t seconds = (int64_t)deadline->at.tv_sec - at.tv_sec;
    if (seconds > SECONDS_NEVER)
        return TURN_NEVER;
    int64_t ns = seconds < -SECONDS_NEVER ? -1 : seconds * NS_IN_SECOND + deadline->at.tv_nsec - at.tv_nsec;
    if (r->ns != 0)
        ns += stood_still_ns(ns, r->ns);
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
        .deadline = until != NULL ? until : &in, .ns = ns, .op = DET_SLEEP, .can_cancel = true, .can_interrupt = true};
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
