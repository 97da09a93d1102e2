/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's calls: nothing, futexes, and sleeping and waking across CPUs.
 *
 * A round of sleep and wake: (1) the sleeper, on the second CPU, says that it will sleep, and calls FUTEX_WAIT. (2) The
 * waker, on the first, lets the second CPU alone for the round's pause. (3) It changes the word and calls FUTEX_WAKE,
 * between two time stamps. The call says whether a thread slept; if not, the round does not count. (4) The sleeper
 * takes a time stamp when its call returns. The latency runs from the waker's first stamp to that.
 *
 * "Busy": a third thread computes on the second CPU. "Remote": the same, and the sleeper is of SCHED_BATCH, so that it
 * takes nothing from that thread, and no interrupt is sent. When the round's call is over that thread yields once, so
 * that rounds follow each other as fast as in a program. What sleeping and waking cost on a busy CPU is not measured
 * here, because the waker's CPU sends the other one an interrupt, which on a virtual machine is most of the time:
 * turns.c.
 */
#include "calibrate.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_PAUSE_NS 20000   /* the CPU has just become idle */
#define DEEP_PAUSE_NS 2000000 /* it has had time for what the kernel and the hypervisor do with idle CPUs */
#define BUSY_PAUSE_NS 500000  /* the sleeper has not had its share of the CPU for a while */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL);
}

static _Alignas(CALIBRATE_LINE) _Atomic uint32_t unused_word;

static void call_nothing(uint64_t n) {
    for (; n > 0; n--)
        syscall(SYS_getppid);
}

static void wake_nobody(uint64_t n) {
    for (; n > 0; n--)
        if (futex(&unused_word, FUTEX_WAKE, 1) != 0)
            fail("FUTEX_WAKE: %s", strerror(errno));
}

static void wait_changed(uint64_t n) {
    for (; n > 0; n--)
        if (futex(&unused_word, FUTEX_WAIT, 1) == 0 || errno != EAGAIN)
            fail("FUTEX_WAIT: %s", strerror(errno));
}

static struct {
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t word;     /* the round; the sleeper waits until it changes */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t sleeping; /* the round in which the sleeper calls FUTEX_WAIT */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t woken;    /* the round in which it has returned; orders what follows */
    uint64_t woken_ns;                                  /* when it returned */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t yield;    /* the round in which the thread that computes yields */
    _Alignas(CALIBRATE_LINE) atomic_bool over, busy;
} shared;
static int pair[2];

static void *sleeper(void *unused) {
    pin_to(pair[1]);
    for (uint32_t round = 1; !atomic_load(&shared.over); round++) {
        atomic_store(&shared.sleeping, round);
        while (atomic_load(&shared.word) < round)
            if (futex(&shared.word, FUTEX_WAIT, round - 1) != 0 && errno != EAGAIN && errno != EINTR)
                fail("FUTEX_WAIT: %s", strerror(errno));
        shared.woken_ns = now_ns();
        atomic_store(&shared.woken, round);
    }
    return unused;
}

static void *hog(void *unused) {
    pin_to(pair[1]);
    uint32_t yielded = 0;
    while (atomic_load_explicit(&shared.busy, memory_order_relaxed)) {              /* carries no data */
        uint32_t yield = atomic_load_explicit(&shared.yield, memory_order_relaxed); /* neither */
        if (yield != yielded)
            sched_yield();
        yielded = yield;
    }
    return unused;
}

static void await(_Atomic uint32_t *word, uint32_t value) {
    while (atomic_load(word) < value)
        look_again();
}

static uint32_t n_rounds;

/* Rounds with that pause; `wake` or `latency` may be NULL. */
static void rounds(struct samples *wake, struct samples *latency, uint64_t pause_ns, double seconds) {
    double clock_ns = clock_cost_ns();
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    /* A sleeper that never slept would make rounds without samples for ever. */
    for (uint64_t hopeless = hopeless_cpu_ns(seconds); samples_wanted(latency != NULL ? latency : wake, end_ns);) {
        uint32_t round = ++n_rounds;
        await(&shared.sleeping, round);
        for (uint64_t from = now_ns(); now_ns() - from < pause_ns;)
            look_again();
        uint64_t begin = now_ns();
        atomic_store(&shared.word, round);
        long n = futex(&shared.word, FUTEX_WAKE, 1);
        uint64_t done = now_ns();
        if (n < 0)
            fail("FUTEX_WAKE: %s", strerror(errno));
        if (latency == NULL)
            atomic_store_explicit(&shared.yield, round, memory_order_relaxed); /* see above */
        await(&shared.woken, round);
        if (n == 1) {
            if (wake != NULL)
                samples_add(wake, (double)(done - begin) - clock_ns);
            if (latency != NULL)
                samples_add(latency, (double)(shared.woken_ns - begin) - clock_ns);
        } else if (is_hopeless(hopeless)) {
            fail("no thread sleeps %ju ns after its FUTEX_WAIT", (uintmax_t)pause_ns);
        }
    }
}

static void sleep_and_wake(double seconds) {
    struct samples *wake_remote = samples_new("wake_remote_ns");
    struct samples *latency_busy = samples_new("latency_busy_ns");
    struct samples *wake_idle = samples_new("wake_idle_ns"), *latency_idle = samples_new("latency_idle_ns");
    struct samples *wake_deep = samples_new("wake_deep_ns"), *latency_deep = samples_new("latency_deep_ns");
    pthread_t thread, computing;
    must(pthread_create(&thread, NULL, sleeper, NULL), "pthread_create");
    rounds(wake_idle, latency_idle, IDLE_PAUSE_NS, seconds / 4);
    rounds(wake_deep, latency_deep, DEEP_PAUSE_NS, seconds / 4);
    atomic_store(&shared.busy, true);
    must(pthread_create(&computing, NULL, hog, NULL), "pthread_create");
    rounds(NULL, latency_busy, BUSY_PAUSE_NS, seconds / 4);
    must(pthread_setschedparam(thread, SCHED_BATCH, &(struct sched_param){0}), "pthread_setschedparam");
    rounds(wake_remote, NULL, IDLE_PAUSE_NS, seconds / 4);
    atomic_store(&shared.busy, false);
    must(pthread_join(computing, NULL), "pthread_join");
    atomic_store(&shared.over, true);
    atomic_store(&shared.word, n_rounds + 1);
    futex(&shared.word, FUTEX_WAKE, 1);
    must(pthread_join(thread, NULL), "pthread_join");
}

void measure_kernel(double seconds) {
    cpus_pair(pair);
    pin_to(pair[0]);
    samples_of_batches("call_ns", seconds * 0.1, call_nothing);
    samples_of_batches("wake_nobody_ns", seconds * 0.1, wake_nobody);
    samples_of_batches("wait_changed_ns", seconds * 0.1, wait_changed);
    sleep_and_wake(seconds * 0.7);
}
