/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that share a CPU: yields, switches, sleeps and wake-ups, the tick and the slice.
 *
 * yield_switch: two threads on one CPU do nothing but yield. A yield need not switch, so the kernel's count of switches
 * divides what is left of the time when the yields that did not switch are taken off. Time is the process's CPU time,
 * here and for hand-overs: in wall time a switch would cost what another process computes meanwhile. What a yield
 * without a switch costs is measured alone. Where other processes keep the CPU busy, each yield switches to one of
 * them, and none is measured without: of the least then, which holds a switch too, a yield is taken to be the half.
 *
 * sleep, wake_busy: two threads on one CPU hand a word to each other. To hand it over, a thread changes it, wakes the
 * other thread and sleeps, and the CPU changes to the other thread: so what hand-overs cost is one wake-up, one sleep
 * and one switch. The CPU is never idle, and no other CPU takes part. The wake-up is
 * measured by itself, by time stamps in other rounds. What is left, without the switch, is the sleep. The threads'
 * policy is SCHED_BATCH: otherwise a woken thread preempts its waker, which then finds the word changed and does not
 * sleep. If a wake-up finds no sleeper all the same, the sample does not count.
 *
 * slice: two threads on one CPU look at the clock all the time. A gap in which the other thread has moved on ends a
 * run; a gap in which it has not was an interrupt, or the hypervisor's.
 */
#include "calibrate.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GAP_NS 20000     /* a look takes some 50 ns */
#define LONG_NS 20000000 /* for a sample: on a busy CPU each switch takes others' slices, and a few must do */
enum { YIELDS_A_SAMPLE = 500, YIELDS_A_LOOK = 10, HAND_OVERS_A_SAMPLE = 100 };

/* How many they were. */
static int yields(void) {
    uint64_t last_ns = now_ns() + LONG_NS;
    int n = 0;
    do {
        for (int i = 0; i < YIELDS_A_LOOK; i++, n++)
            sched_yield();
    } while (n < YIELDS_A_SAMPLE && now_ns() < last_ns);
    return n;
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

/* Of both threads: other processes on this CPU take none of it. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a yield without a switch costs. */
static double measure_yields(double seconds) {
    struct samples *yield = samples_new("yield_ns");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), switches = n_switches(), n_yields = 0;
    double least_ns = 1e9;
    while (samples_wanted(yield, end_ns)) {
        uint64_t begin = cpu_ns();
        int n = yields();
        double one_ns = (double)(cpu_ns() - begin) / n;
        samples_add(yield, one_ns);
        least_ns = one_ns < least_ns ? one_ns : least_ns;
        n_yields += (uint64_t)n;
    }
    return n_switches() - switches < n_yields / 2 ? samples_median(yield) : least_ns / 2;
}

/* The median of what a switch costs. */
static double measure_switches(double seconds) {
    double alone_ns = measure_yields(seconds / 3);
    struct samples *yield_switch = samples_new("yield_switch_ns"), *change = samples_new("switch_ns");
    pthread_t thread = start(yielder);
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 2 / 3 * 1e9);
    /* A kernel that never switched at a yield would give no samples for ever. */
    for (uint64_t hopeless = hopeless_cpu_ns(seconds); samples_wanted(yield_switch, end_ns);) {
        uint64_t switches = n_switches(), theirs = atomic_load(&other.n), begin = cpu_ns();
        double n_yields = yields(), took = (double)(cpu_ns() - begin);
        /* To each switch away from this thread belongs one back to it. */
        double n = 2 * (double)(n_switches() - switches);
        n_yields += (double)(atomic_load(&other.n) - theirs);
        double one = n > 0 ? (took - (n_yields > n ? n_yields - n : 0) * alone_ns) / n : 0;
        if (one > alone_ns) {
            samples_add(yield_switch, one);
            samples_add(change, one - alone_ns);
        } else if (is_hopeless(hopeless)) {
            fail("sched_yield does not switch to another thread of the same CPU");
        }
    }
    end(thread);
    return samples_median(change);
}

/* ---- hand-overs ---- */

static struct {
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t word; /* odd: the other thread's turn */
    uint64_t n_vain; /* wake-ups that found no sleeper; of both threads, which take turns */
} turn;

static void hand_over(uint32_t to) {
    atomic_store(&turn.word, to);
    if (syscall(SYS_futex, &turn.word, FUTEX_WAKE_PRIVATE, 1, NULL) == 0)
        turn.n_vain++;
}

static void await_turn(uint32_t now) {
    while (atomic_load(&turn.word) == now)
        if (syscall(SYS_futex, &turn.word, FUTEX_WAIT_PRIVATE, now, NULL) != 0 && errno != EAGAIN && errno != EINTR)
            fail("FUTEX_WAIT: %s", strerror(errno));
}

static void set_policy(int policy) {
    struct sched_param priority = {.sched_priority = 0};
    if (sched_setscheduler(0, policy, &priority) != 0) /* 0: the calling thread */
        fail("sched_setscheduler: %s", strerror(errno));
}

static void *partner(void *unused) {
    pin_to(cpu);
    set_policy(SCHED_BATCH);
    atomic_store(&there, true);
    for (uint32_t now = 0;; now += 2) {
        await_turn(now);
        if (atomic_load_explicit(&over, memory_order_relaxed)) /* the word orders it */
            return unused;
        hand_over(now + 2);
    }
}

static void measure_hand_overs(double seconds, double switch_ns) {
    struct samples *wake = samples_new("wake_busy_ns"), *sleep = samples_new("sleep_ns");
    double clock_ns = clock_cost_ns();
    uint32_t now = 0;
    atomic_store(&turn.word, 0);
    set_policy(SCHED_BATCH);
    pthread_t thread = start(partner);
    uint64_t end_ns = now_ns() + (uint64_t)(seconds / 2 * 1e9);
    for (uint64_t hopeless = hopeless_cpu_ns(seconds); samples_wanted(wake, end_ns); now += 2) {
        uint64_t vain = turn.n_vain, begin = now_ns();
        hand_over(now + 1);
        double took = (double)(now_ns() - begin) - clock_ns;
        bool alone = atomic_load(&turn.word) == now + 1; /* the other thread has not run meanwhile */
        await_turn(now + 1);
        if (turn.n_vain == vain && alone)
            samples_add(wake, took);
        else if (is_hopeless(hopeless))
            fail("no thread sleeps that shares a CPU with its waker");
    }
    double parts_ns = samples_median(wake) + switch_ns;
    end_ns = now_ns() + (uint64_t)(seconds / 2 * 1e9);
    for (uint64_t hopeless = hopeless_cpu_ns(seconds); samples_wanted(sleep, end_ns);) {
        uint64_t vain = turn.n_vain, begin = cpu_ns(), last_ns = now_ns() + LONG_NS;
        int n = 0;
        do {
            hand_over(now + 1);
            await_turn(now + 1);
            n += 2;
            now += 2;
        } while (n < HAND_OVERS_A_SAMPLE && now_ns() < last_ns);
        double one = (double)(cpu_ns() - begin) / n - parts_ns;
        if (turn.n_vain == vain && one > 0)
            samples_add(sleep, one);
        else if (is_hopeless(hopeless))
            fail("threads that share a CPU do not sleep in turn");
    }
    atomic_store(&over, true);
    hand_over(now + 1);
    must(pthread_join(thread, NULL), "pthread_join");
    set_policy(SCHED_OTHER);
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
    double switch_ns = measure_switches(seconds / 4);
    measure_hand_overs(seconds / 4, switch_ns);
    measure_tick(seconds / 8);
    measure_slice(seconds * 3 / 8);
}
