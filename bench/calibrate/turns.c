/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that share a CPU: yields, switches, the tick and the slice.
 *
 * yield_switch: two threads on one CPU do nothing but yield. A yield need not switch, so the kernel's count of switches
 * divides what is left of the time when the yields that did not switch are taken off.
 *
 * slice: two threads on one CPU look at the clock all the time. A gap in which the other thread has moved on ends a
 * run; a gap in which it has not was an interrupt, or the hypervisor's.
 */
#include "calibrate.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#define GAP_NS 20000 /* a look takes some 50 ns */
enum { YIELDS_A_SAMPLE = 500 };

static void yields(uint64_t n) {
    for (; n > 0; n--)
        sched_yield();
}

static int cpu; /* of both threads */
static atomic_bool over, there;
static struct { _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t n; /* yields or looks of the other thread */ } other;

static void *yielder(void *unused) {
    pin_to(cpu);
    while (!atomic_load_explicit(&over, memory_order_relaxed)) { /* carries no data */
        atomic_fetch_add_explicit(&other.n, 1, memory_order_relaxed);
        atomic_store_explicit(&there, true, memory_order_relaxed);
        sched_yield();
    }
    return unused;
}

static uint64_t n_switches(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        fail("getrusage: %s", strerror(errno));
    return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

static pthread_t start(void *run(void *)) {
    pthread_t thread;
    atomic_store(&over, false);
    atomic_store(&there, false);
    must(pthread_create(&thread, NULL, run, NULL), "pthread_create");
    while (!atomic_load(&there))
        sched_yield();
    return thread;
}

static void end(pthread_t thread) {
    atomic_store(&over, true);
    must(pthread_join(thread, NULL), "pthread_join");
}

static void measure_switches(double seconds) {
    struct samples *yield = samples_new("yield_ns"), *yield_switch = samples_new("yield_switch_ns");
    struct samples *change = samples_new("switch_ns");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds / 3 * 1e9);
    while (samples_wanted(yield, end_ns)) {
        uint64_t begin = now_ns();
        yields(YIELDS_A_SAMPLE);
        samples_add(yield, (double)(now_ns() - begin) / YIELDS_A_SAMPLE);
    }
    double alone_ns = samples_median(yield);
    pthread_t thread = start(yielder);
    end_ns = now_ns() + (uint64_t)(seconds * 2 / 3 * 1e9);
    /* A kernel that never switched at a yield would give no samples for ever. */
    for (uint64_t last_ns = end_ns + 5000000000u; samples_wanted(yield_switch, end_ns);) {
        uint64_t switches = n_switches(), theirs = atomic_load(&other.n), begin = now_ns();
        yields(YIELDS_A_SAMPLE);
        double took = (double)(now_ns() - begin);
        /* To each switch away from this thread belongs one back to it. */
        double n = 2 * (double)(n_switches() - switches), n_yields = YIELDS_A_SAMPLE;
        n_yields += (double)(atomic_load(&other.n) - theirs);
        double one = n > 0 ? (took - (n_yields > n ? n_yields - n : 0) * alone_ns) / n : 0;
        if (one > alone_ns) {
            samples_add(yield_switch, one);
            samples_add(change, one - alone_ns);
        } else if (begin > last_ns) {
            fail("sched_yield does not switch to another thread of the same CPU");
        }
    }
    end(thread);
}

/* Period of the coarse clock, which moves at each tick. */
static uint64_t coarse_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void measure_tick(double seconds) {
    struct samples *tick = samples_new("tick_ns");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), before = coarse_ns(), now;
    while ((now = coarse_ns()) == before)
        ;
    while (samples_wanted(tick, end_ns)) {
        before = now;
        while ((now = coarse_ns()) == before)
            ;
        samples_add(tick, (double)(now - before));
    }
}

static void *looker(void *unused) {
    pin_to(cpu);
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&other.n, 1, memory_order_relaxed);
        atomic_store_explicit(&there, true, memory_order_relaxed);
    }
    return unused;
}

static void measure_slice(double seconds) {
    struct samples *slice = samples_new("slice_ns");
    pthread_t thread = start(looker);
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), from = 0, last = now_ns();
    uint64_t theirs = atomic_load_explicit(&other.n, memory_order_relaxed);
    while (samples_wanted(slice, end_ns)) {
        uint64_t now = now_ns();
        if (now - last > GAP_NS) {
            uint64_t seen = atomic_load_explicit(&other.n, memory_order_relaxed);
            if (seen != theirs) {
                if (from != 0) /* the first run began before this loop */
                    samples_add(slice, (double)(last - from));
                from = now;
                theirs = seen;
            }
        }
        last = now;
    }
    end(thread);
}

void measure_turns(double seconds) {
    cpu = cpus_usable()->cpu[0];
    pin_to(cpu);
    measure_switches(seconds / 4);
    measure_tick(seconds / 4);
    measure_slice(seconds / 2);
}
