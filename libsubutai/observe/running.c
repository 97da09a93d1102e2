/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of threads that still run when the trace ends: detached threads that compute, or that wait for ever. Without
 * one, such a thread would have lived until its last call, and its share in sections would be wrong.
 *
 * The trace is closing, and the thread has no event under way: it touches nothing of its record any more (event.c). So
 * the thread that ends the trace puts the event, with the CPU time that the kernel has counted until now. The thread
 * may end at this moment; then the kernel has no clock for it, and it has no such event.
 */
#include <sys/syscall.h>

#include "observe/openmp.h"
#include "observe/record.h"

/*
 * False: the thread is gone. The kernel's name of a thread's CPU clock is the complement of its number, then 4: of one
 * thread, and 2: the time that the scheduler counts.
 */
static bool read_cpu(const struct rec_thread *t, uint64_t *ns) {
    struct timespec now;
    long clock = (long)(~(int)t->tid * 8) | 4 | 2;
    if (sbt_syscall3(SYS_clock_gettime, clock, (long)&now, 0) != 0)
        return false;
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return true;
}

/*
 * If the region that an OpenMP thread has worked in is over, that is an event, and the thread waits for the next
 * region. The result is whether it is so.
 */
static bool put_arrival(struct rec_thread *t) {
    uint64_t before_ns = t->encoder.clock_ns;
    uint32_t n_before = t->encoder.n_events, sequence = t->encoder.sequence;
    rec_put_arrival(t);
    rec_encode(t);
    return before_ns != t->encoder.clock_ns || n_before != t->encoder.n_events || sequence != t->encoder.sequence;
}

/* SLEEPS: of the time of a call that sleeps, what is less than this part may be the processor's. */
enum { SLEEPS = 8 };

/*
 * A call that the thread is not in any more, or not directly:
 *  - A handler has left it by siglongjmp, and there was no event that would have told (event.c). Then the thread has
 *    worked since. Where threads wait actively that cannot be told.
 *  - Below it on the stack the thread waits for the outside. A handler does, or the thread after such a handler.
 */
static bool is_left(const struct rec_thread *t, uint64_t gap_ns, uint64_t used_ns) {
    unsigned op = t->in_call - 1u;
    bool sleeps = op != SBT_TRACE_SPIN_LOCK && op != SBT_TRACE_BARRIER_WAIT && op != SBT_TRACE_FUTEX_WAIT;
    bool is_outer = t->outside != NULL && t->outside_at < t->call_at;
    return t->in_call != 0 && (is_outer || (sleeps && used_ns > gap_ns / SLEEPS));
}

/*
 * How long the thread has waited: in a call of the recorder's until the end, and in one that waits for the outside for
 * the time without a core.
 */
static uint64_t waited_ns(const struct rec_thread *t, uint64_t gap_ns, uint64_t used_ns) {
    if (t->in_call != 0)
        return gap_ns;
    return t->outside != NULL ? gap_ns - used_ns : 0;
}

static unsigned operation(const struct rec_thread *t, bool region_is_over) {
    if (region_is_over)
        return SBT_TRACE_FUTEX_WAIT;
    return t->in_call != 0 ? t->in_call - 1u : SBT_TRACE_OUTSIDE_WAIT;
}

void rec_put_running(struct rec_thread *t, uint64_t now_ns) {
    rec_encode(t);
    bool region_is_over = t->has_arrived && put_arrival(t);
    uint64_t cpu_ns, gap_ns = rec_above_zero(now_ns, t->end_ns);
    if (!read_cpu(t, &cpu_ns))
        return;
    uint64_t used_ns = rec_above_zero(cpu_ns, t->cpu_ns);
    used_ns = used_ns < gap_ns ? used_ns : gap_ns;
    if (is_left(t, gap_ns, used_ns)) {
        t->carried_ns += t->call_work_ns;
        t->in_call = 0;
    }
    uint64_t took_ns = waited_ns(t, gap_ns, used_ns), work_ns = t->carried_ns;
    if (!region_is_over) /* which had the work before the call */
        work_ns += t->in_call != 0 ? t->call_work_ns : used_ns;
    uint64_t at_ns = rec_above_zero(t->end_ns + gap_ns - took_ns, rec.start_ns), clock_ns = t->encoder.clock_ns;
    if (at_ns < clock_ns) { /* the arrival ended later than its call began */
        took_ns = rec_above_zero(took_ns, clock_ns - at_ns);
        at_ns = clock_ns;
    }
    struct sbt_trace_event end = {.op = SBT_TRACE_THREAD_END,
                                  .object = SBT_TRACE_NONE,
                                  .other = SBT_TRACE_NONE,
                                  .site = SBT_TRACE_NONE,
                                  .size =
                                      took_ns != 0 ? SBT_TRACE_WAITS + operation(t, region_is_over) : SBT_TRACE_RUNS,
                                  .work_ns = work_ns,
                                  .at_ns = at_ns,
                                  .took_ns = took_ns};
    if (t->in_call != 0 && !region_is_over && took_ns != 0) {
        end.type = t->call_waits.type;
        end.object = t->call_waits.object;
        end.other = t->in_call - 1u == SBT_TRACE_THREAD_JOIN ? t->call_waits.other : SBT_TRACE_NONE;
        end.site = t->call_waits.site;
    }
    if (region_is_over && took_ns != 0) {
        end.type = SBT_TRACE_FUTEX;
        end.object = rec_number_of(t, SBT_TRACE_FUTEX, (uintptr_t)rec_openmp_regions());
        end.site = t->arrival.site;
    }
    t->at_end = true;
    rec_put(t, &end);
}
