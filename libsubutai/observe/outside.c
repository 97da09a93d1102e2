/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that may wait for the outside (abi/outside.c): a call in which its thread slept is an event, any other call is
 * work.
 *
 * Most of these calls return at once, thousands of times as often as they wait. Such a call costs two readings of the
 * clock, and no system call: the preemption mark (preempt.h) says that the thread has stayed on its core. A thread that
 * has left its core slept, or others had the core. The kernel counts the two apart (getrusage: voluntary switches), so
 * it is asked then; and before a call, if the thread may have slept since it was asked last. That is at most twice for
 * each time that the thread has left its core.
 *
 * The event is the wait alone: what the call took less its CPU time, which is work, before the wait. The time from the
 * wake-up until the thread has a core again is in it, too.
 *
 * A handler that interrupts a wait and makes events cuts the wait: the part until then is an event before the handler's
 * (event.c), and the rest is one when the call ends. A thread that a handler takes out of the call by siglongjmp has
 * the wait when it makes its next event.
 *
 * These calls begin no trace and no record: a thread is known from its creation, or from its first event, on.
 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "abi/outside.h"
#include "observe/number.h"

/* A sleeping thread is switched out and in, which takes longer. Less is the difference between two clocks. */
enum { LEAST_NS = 1000 };

static uint64_t sleeps(void) {
    struct rusage usage = {0};
    sbt_syscall3(SYS_getrusage, RUSAGE_THREAD, &usage, 0);
    return (uint64_t)usage.ru_nvcsw;
}

static void put(struct rec_thread *t, const void *site, uint64_t at_ns, uint64_t took_ns) {
    struct rec_call c = {.thread = t};
    struct sbt_trace_event event = {.op = SBT_TRACE_OUTSIDE_WAIT,
                                    .object = SBT_TRACE_NONE,
                                    .other = SBT_TRACE_NONE,
                                    .site = rec_site_number(&c, site),
                                    .work_ns = rec_work_of(t->carried_ns, rec.overhead_ns, &t->owed_ns),
                                    .at_ns = rec_above_zero(at_ns, rec.start_ns),
                                    .took_ns = took_ns};
    t->carried_ns = 0;
    t->last_site = event.site % 64;
    rec_put(t, &event);
    rec_encode_full(t);
}

/* Of the core's time in a call, without the two readings of the clock. */
static inline uint64_t program_ns(uint64_t ns) {
    return rec_above_zero(ns, 2 * (uint64_t)rec.reading_ns);
}

SBT_NOINLINE void rec_outside_waited(struct rec_thread *t, const void *site, uint64_t now_ns) {
    uint64_t took = rec_above_zero(now_ns, t->end_ns), before = t->cpu_ns, n = t->n_sleeps;
    t->end_ns = rec_read_cpu(t);
    uint64_t cpu = rec_used_between(before, t->cpu_ns, rec.cpu_reading_ns), off = rec_above_zero(took, cpu);
    t->carried_ns += program_ns(took - off);
    if (off < LEAST_NS)
        return;
    t->n_sleeps = sleeps();
    t->off_core = false;
    if (t->n_sleeps != n)
        put(t, site, now_ns - off, off);
    rec_no_work(t);
}

static inline uint64_t n_events(const struct rec_thread *t) {
    return t->encoder.n_events + t->n_batch;
}

/*
 * A call that a handler has left by siglongjmp is over with the first event that is not below it, and with it its wait,
 * if there has been no event since.
 */
SBT_NOINLINE bool rec_outside_is_cut(struct rec_thread *t, uint64_t now_ns) {
    bool left = rec_is_left(t, t->outside_at, rec_here());
    /* If calls are seen no more, neither is the end of this one, and the kernel is not asked. */
    bool is_cut = abi_outside_is_seen() && (!left || n_events(t) == t->outside_n_events);
    if (is_cut)
        rec_outside_waited(t, t->outside, now_ns);
    if (left || !is_cut)
        t->outside = NULL;
    return is_cut;
}

static void begin(struct abi_outside_seen *seen) {
    if (rec.profile)
        return;
    struct rec_thread *t = SBT_LIKELY(rec_self != NULL) ? rec_self : rec_thread_self();
    if (SBT_UNLIKELY(t == NULL || t->generation != sbt_fork_generation() || rec_is_busy(t)) || !rec_busy_begin(t))
        return;
    uint64_t now = rec_now_ns(), gap = rec_above_zero(now, t->end_ns);
    if (SBT_LIKELY(rec_stayed(t, gap))) {
        t->cpu_ns += gap;
        t->carried_ns += gap;
        t->end_ns = now;
    } else if (t->outside == NULL || !rec_outside_is_cut(t, now)) {
        uint64_t before = t->cpu_ns;
        now = rec_read_cpu(t);
        uint64_t work = rec_used_between(before, t->cpu_ns, rec.cpu_reading_ns);
        t->carried_ns += work < gap ? work : gap;
        t->end_ns = now;
    }
    if (SBT_UNLIKELY(t->off_core)) {
        t->n_sleeps = sleeps();
        t->off_core = false;
        rec_no_work(t);
    }
    seen->thread = t;
    seen->outer = t->outside;
    seen->outer_at = t->outside_at;
    t->outside = seen->site;
    t->outside_at = rec_here();
    t->outside_n_events = n_events(t);
    rec_busy_end(t);
}

static void end(struct abi_outside_seen *seen) {
    struct rec_thread *t = seen->thread;
    if (t->generation != sbt_fork_generation() || rec_is_busy(t) || !rec_busy_begin(t))
        return;
    t->outside = seen->outer;
    t->outside_at = seen->outer_at;
    uint64_t now = rec_now_ns(), took = rec_above_zero(now, t->end_ns);
    if (SBT_LIKELY(rec_stayed(t, took))) {
        t->cpu_ns += took;
        t->carried_ns += program_ns(took);
        t->end_ns = now;
    } else {
        rec_outside_waited(t, seen->site, now);
    }
    rec_busy_end(t);
}

__attribute__((constructor)) static void observe(void) {
    static const struct abi_outside_observer observer = {begin, end};
    abi_outside_observer = &observer;
    abi_outside_see(true);
}
