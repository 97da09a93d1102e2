/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks at the CPUs that may be used (core/cpus.c). The test is the kernel, the clock, the threads and other programs.
 */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/cpus.h"
#include "core/handlers.h"
#include "core/log.h"
#include "core/sites.h"
#include "core/thread.h"
#include "cpus_kernel.h"
#include "lib/suite.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/quota.h"

enum { CPUS = 2, TID = 4711 };
#define MS UINT64_C(1000000)

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

static uint64_t now_ns = 5000 * MS, used_us = 1000000;
static long n_preempted;
static unsigned n_looks;
static bool others,
    forbids; /* what libraries that spin are told; a look is interrupted by a handler that forbids looks */

/* As many CPUs as the machine has; and the process has been preempted as often as beside equals. */
long cpus_syscall(long number, long argument, void *memory) {
    (void)argument;
    if (number == SYS_sched_getaffinity) {
        cpu_set_t *cpus = memory;
        for (size_t i = 0; i < CPUS; i++)
            CPU_SET(i, cpus);
        return sizeof *cpus;
    }
    ck_assert_int_eq(number, SYS_getrusage);
    struct rusage *usage = memory;
    memset(usage, 0, sizeof *usage);
    usage->ru_utime = (struct timeval){(time_t)(used_us / 1000000), (suseconds_t)(used_us % 1000000)};
    usage->ru_nivcsw = n_preempted;
    return 0;
}

void sbt_clock_read(clockid_t clock, struct timespec *at) {
    (void)clock;
    *at = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
}

void sbt_handlers_deliver(void) {}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
}

uint32_t sbt_thread_tid(void) {
    return TID;
}

bool sbt_proc_any_thread(bool (*is)(uint32_t tid, void *argument), void *argument) {
    return is(TID, argument);
}

uint32_t sbt_proc_n_runnable(void) {
    return 1 << 20; /* more than CPUs */
}

void sbt_quota_find(struct sbt_quota *mounts, const char *root) {
    (void)mounts, (void)root;
}

static uint32_t quota = SBT_QUOTA_NONE;

uint32_t sbt_quota_cpus(const struct sbt_quota *mounts, const char *root, int *files) {
    (void)mounts, (void)root;
    *files = quota != SBT_QUOTA_NONE;
    return quota;
}

void sbt_sites_crowd(int n_more) {
    (void)n_more;
}

uint32_t sbt_sites_n_threads(void) {
    n_looks++;
    if (forbids)
        sbt_cpus_forbid();
    return CPUS;
}

void sbt_sites_beside(bool yes) {
    others = yes;
}

/* After 100 ms, in which the process has had half of the CPUs. */
static void look(void) {
    now_ns += 100 * MS;
    used_us += 100000 * CPUS / 2;
    n_preempted += 4 * CPUS;
    sbt_cpus_look();
}

static void look_until_others_are_found(void) {
    for (int i = 0; i < 10 && !others; i++)
        look();
    ck_assert(others);
}

TEST(a_forked_child_finds_other_programs_anew) {
    sbt_cpus_start();
    look_until_others_are_found();
    look();
    ck_assert_msg(others, "it is as before");
    sbt_cpus_fork_child();
    look();
    ck_assert(!others);
    look_until_others_are_found();
}

TEST(a_handler_in_a_look_forbids_looks, "the thread does not wait for its own look") {
    sbt_cpus_start();
    look();
    ck_assert_uint_eq(n_looks, 1);
    forbids = true;
    look();
    ck_assert_uint_eq(n_looks, 2);
    look();
    ck_assert_uint_eq(n_looks, 2);
}

TEST(a_quota_leaves_the_number_that_may_be_used_at_once) {
    quota = 1;
    sbt_cpus_start();
    look();
    ck_assert_uint_eq(sbt_usable_cpus(), 1);
    ck_assert_uint_eq(sbt_n_cpus_at_once, CPUS);
    ck_assert(sbt_has_quota());
    quota = CPUS;
    for (int i = 0; i < 10; i++) /* the quota is read by one look in ten */
        look();
    ck_assert_uint_eq(sbt_usable_cpus(), CPUS);
    ck_assert(!sbt_has_quota());
}
