/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's affinity is its own. So the process has the CPUs of all its threads together:
 *  1. A look reads the affinity of the thread that looks. CPUs that are new in it are the process's at once.
 *  2. If it has fewer CPUs than the process, either this thread is limited, as in programs that bind each thread to a
 *     CPU, or all are. A whole look, one in WHOLE_EVERY, finds out: it reads the affinities of all threads.
 *  3. A whole look also reads the quota; if no group of the process has a file with one, only the first look does.
 *  4. If there are threads of a library that spins before it sleeps (core/sites.h), each look finds out whether others
 *     want the CPUs (core/beside.h). It reads a file if they may.
 *
 * Files are opened for some microseconds in a thread of the program, as the C library itself does to count the
 * processors. Therefore they are read seldom.
 */
#include "core/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/beside.h"
#include "core/handlers.h"
#include "core/log.h"
#include "core/sites.h"
#include "core/thread.h"
#include "decimal.h"
#include "os/arch.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/quota.h"

#define LOOK_EVERY_NS 100000000u
#define WHOLE_EVERY 10
#define THREADS_MOST 1024 /* of which the affinities are read; a program with more keeps the CPUs that it had */
#define NEVER UINT64_MAX

uint32_t sbt_n_cpus = 1, sbt_n_cpus_at_once = 1;
cpu_set_t sbt_cpus;

static struct {
    uint64_t next_ns; /* no look before that time; atomic, relaxed: it decides nothing else */
    uint32_t looking; /* the id of the thread that looks; all below is its own, and passes on with this word */
    uint32_t n_looks;
    bool knows_mounts;
    int files;
    uint32_t quota;
    struct sbt_beside beside;
    cpu_set_t cpus; /* of all threads; empty: not known */
    struct sbt_quota mounts;
} state = {.quota = SBT_QUOTA_NONE};

static uint64_t read_ns(clockid_t clock) {
    struct timespec t = {0, 0};
    sbt_clock_read(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* False: the thread has ended, or the kernel does not say. */
static bool read_affinity(uint32_t tid, cpu_set_t *cpus) {
    memset(cpus, 0, sizeof *cpus);
    return sbt_syscall3(SYS_sched_getaffinity, tid, sizeof *cpus, cpus) > 0;
}

void sbt_cpus_start(void) {
    if (!read_affinity(0, &sbt_cpus))
        return;
    state.cpus = sbt_cpus;
    sbt_n_cpus = sbt_n_cpus_at_once = (uint32_t)CPU_COUNT(&sbt_cpus);
}

bool sbt_cpus_are_as_at_start(void) {
    cpu_set_t cpus;
    return read_affinity(0, &cpus) && CPU_EQUAL(&cpus, &sbt_cpus);
}

struct all {
    cpu_set_t cpus;
    int left;
};

/* True: too many threads. A thread that has ended counts for nothing. */
static bool add_affinity(uint32_t tid, void *argument) {
    struct all *all = argument;
    cpu_set_t cpus;
    if (all->left-- == 0)
        return true;
    if (read_affinity(tid, &cpus))
        CPU_OR(&all->cpus, &all->cpus, &cpus);
    return false;
}

static void look_at_affinity(bool whole) {
    struct all all = {.left = THREADS_MOST};
    if (!read_affinity(0, &all.cpus) || CPU_EQUAL(&all.cpus, &state.cpus))
        return;
    CPU_OR(&state.cpus, &state.cpus, &all.cpus);
    if (whole && !sbt_proc_any_thread(add_affinity, &all))
        state.cpus = all.cpus;
}

static void look_at_quota(void) {
    if (!state.knows_mounts)
        sbt_quota_find(&state.mounts, "");
    else if (state.files == 0)
        return;
    state.knows_mounts = true;
    int files;
    const uint32_t quota = sbt_quota_cpus(&state.mounts, "", &files);
    if (files < 0)
        return;
    state.files = files;
    state.quota = quota;
}

/* Nothing is known where the kernel does not say. */
static void read_usage(struct sbt_beside_seen *seen) {
    struct rusage usage;
    if (sbt_syscall3(SYS_getrusage, RUSAGE_SELF, &usage, 0) != 0)
        return;
    seen->used_ns = 1000 * (1000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                            (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
    seen->n_preempted = (uint64_t)usage.ru_nivcsw;
}

static void look_at_machine(void) {
    struct sbt_beside_seen seen = {.n_spin = sbt_sites_n_threads(), .n_cpus = sbt_usable_cpus()};
    if (seen.n_spin > 0) {
        seen.now_ns = read_ns(CLOCK_MONOTONIC);
        read_usage(&seen);
    }
    if (sbt_beside_asks(&state.beside, &seen)) {
        seen.n_runnable = sbt_proc_n_runnable();
        seen.n_cpus_most = sbt_cpus_most();
    }
    const bool was = state.beside.answer;
    if (sbt_beside_step(&state.beside, &seen) != was)
        sbt_log(3,
                was ? "the CPUs are this program's again" : "other programs want the CPUs: libgomp spins for a moment",
                NULL);
    sbt_sites_beside(state.beside.answer);
}

static void look(void) {
    const bool whole = state.n_looks++ % WHOLE_EVERY == 0;
    look_at_affinity(whole);
    if (whole)
        look_at_quota();
    look_at_machine();
    uint32_t n = (uint32_t)CPU_COUNT(&state.cpus);
    if (n != 0)
        __atomic_store_n(&sbt_n_cpus_at_once, n, __ATOMIC_RELAXED);
    n = n < state.quota ? n : state.quota;
    if (n == 0 || (n == sbt_usable_cpus() && state.n_looks > 1))
        return;
    __atomic_store_n(&sbt_n_cpus, n, __ATOMIC_RELAXED);
    sbt_sites_crowd(0);
    char digits[DECIMAL_SIZE];
    sbt_log(2, "CPUs that may be used: ", decimal_of(digits, n), NULL);
}

void sbt_cpus_look(void) {
    uint64_t next = __atomic_load_n(&state.next_ns, __ATOMIC_RELAXED);
    const uint64_t now = read_ns(CLOCK_MONOTONIC_COARSE);
    if (SBT_LIKELY(now < next))
        return;
    uint32_t none = 0;
    sbt_handlers_hold();
    if (__atomic_compare_exchange_n(&state.looking, &none, sbt_thread_tid(), false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) { /* pairs with the release below */
        if (__atomic_compare_exchange_n(&state.next_ns, &next, now + LOOK_EVERY_NS, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            look();
        __atomic_store_n(&state.looking, 0, __ATOMIC_RELEASE);
    }
    sbt_handlers_release();
}

uint32_t sbt_cpus_most(void) {
    const bool may_look = __atomic_load_n(&state.next_ns, __ATOMIC_RELAXED) != NEVER;
    const long n = may_look ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return n > (long)sbt_usable_cpus() ? (uint32_t)n : sbt_usable_cpus();
}

void sbt_cpus_forbid(void) {
    uint32_t looks;
    __atomic_store_n(&state.next_ns, NEVER, __ATOMIC_RELAXED);
    /* A look is some microseconds. The caller's own goes on when this has returned: it is in a handler. */
    while ((looks = __atomic_load_n(&state.looking, __ATOMIC_ACQUIRE)) != 0 && looks != sbt_thread_tid())
        sbt_cpu_relax();
}

void sbt_cpus_fork_child(void) {
    state.looking = 0;
    state.beside = (struct sbt_beside){.answer = false}; /* the child has none of those threads */
}
