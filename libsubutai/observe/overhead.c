/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What recording costs an event, measured at start-up. event.c subtracts it from the program's work.
 */
#include <sys/syscall.h>

#include "observe/record.h"

enum { MOST_OVERHEAD_NS = 2000 };        /* a longer time was not the recorder's: the machine was busy elsewhere */
enum { N_CALIBRATED = REC_N_BATCH - 2 }; /* events of a round: so few are not encoded yet */

/* The time between the thread's events, of which its batch is full, but for the first; the mean. */
static uint64_t mean_between(const struct rec_thread *t) {
    const struct sbt_trace_event *first = &t->batch[0], *last = &t->batch[N_CALIBRATED - 1];
    uint64_t ns = last->at_ns - first->at_ns;
    for (const struct sbt_trace_event *event = first; event < last; event++)
        ns -= event->took_ns < ns ? event->took_ns : ns;
    return (ns + N_CALIBRATED / 2) / (N_CALIBRATED - 1);
}

static uint64_t cost_of_reading(void) {
    uint64_t start = rec_now_ns();
    for (int i = 0; i < N_CALIBRATED; i++)
        rec_now_ns();
    return (rec_now_ns() - start) / N_CALIBRATED;
}

/*
 * A thread reads its CPU time in the kernel, which counts that too: some before the reading, the rest until the next.
 * So between two readings one of them is counted. 0 where the kernel counts in ticks.
 */
static uint64_t cost_of_cpu_reading(struct rec_thread *t) {
    t->end_ns = rec_read_cpu(t);
    uint64_t before = t->cpu_ns, between = rec_now_ns() - t->end_ns;
    rec_read_cpu(t);
    return rec_above_zero(t->cpu_ns - before, between);
}

static uint32_t least_of(uint32_t least, uint64_t ns) {
    return ns < least ? (uint32_t)ns : least;
}

/* What observing functions do; a call of each is a call and a return too. The object is a node, and its own site. */
static SBT_NOINLINE int observed_lock(struct rec_node *object) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, object, object);
    uint8_t held = __atomic_exchange_n(&object->lock, 1, __ATOMIC_ACQUIRE);
    c.event.order = rec_acquired(c.node);
    rec_leave(&c, held);
    return held;
}

static SBT_NOINLINE void observed_unlock(struct rec_node *object) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, object, object);
    __atomic_store_n(&object->lock, 0, __ATOMIC_RELEASE);
    rec_leave(&c, 0);
}

/*
 * Measure what an event costs outside of what it measures itself, on a record that no other thread knows: the calls are
 * no part of the trace.
 */
void rec_calibrate(void) {
    enum { N_ROUNDS = 16 }; /* the shortest round counts: preemption only adds */
    struct rec_thread *scratch = rec_map(sizeof *scratch), *self = rec_self;
    struct rec_node object = {.type = SBT_TRACE_MUTEX};
    uintptr_t at = (uintptr_t)&object;
    uint32_t overhead = MOST_OVERHEAD_NS, reading = MOST_OVERHEAD_NS, cpu_reading = MOST_OVERHEAD_NS;
    if (scratch == NULL)
        return;
    scratch->generation = sbt_fork_generation();
    scratch->mark = rec_preempt_place();
    rec_preempt_arm(scratch->mark);
    REC_CACHE(&scratch->objects[REC_CACHE_PLACE(at)], at, node, &object);
    REC_CACHE(&scratch->sites[REC_CACHE_PLACE(at)], at, number, 0);
    rec_self = scratch;
    for (int round = 0; round < N_ROUNDS; round++) {
        scratch->n_batch = 0;
        for (int i = 0; i < N_CALIBRATED / 2; i++) {
            observed_lock(&object);
            observed_unlock(&object);
        }
        overhead = least_of(overhead, mean_between(scratch));
        reading = least_of(reading, cost_of_reading());
        cpu_reading = least_of(cpu_reading, cost_of_cpu_reading(scratch));
        rec_preempt_arm(scratch->mark);
    }
    rec_self = self;
    rec.overhead_ns = overhead;
    rec.reading_ns = reading;
    rec.cpu_reading_ns = cpu_reading;
    sbt_syscall3(SYS_munmap, scratch, sizeof *scratch, 0);
}
