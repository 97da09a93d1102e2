/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many heavy fences the visitors of an own lock make (switch/own_lock.c). The test is the clock and the fence. */
#include <string.h>

#include "core/thread.h"
#include "lib/suite.h"
#include "os/clock.h"
#include "os/fence.h"
#include "switch/own_lock.h"

#define US UINT64_C(1000)

_Thread_local struct sbt_thread sbt_self;
uint32_t sbt_n_cpus;
bool sbt_fence_asymmetric = true;

static uint64_t now;
static unsigned n_fences;
static bool refuses; /* the kernel, as a filter of system calls has it */
static struct sbt_own_lock lock;

void sbt_clock_read(clockid_t clock, struct timespec *at) {
    (void)clock;
    *at = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
}

bool sbt_fence_heavy(void) {
    n_fences++;
    return !refuses;
}

void sbt_lock_take_slow(struct sbt_lock *g) {
    (void)g;
    ck_abort_msg("one thread, and it does not nest");
}

void sbt_lock_wake(struct sbt_lock *g) {
    (void)g;
}

static unsigned fences_of(uint32_t n_cpus, unsigned n_visits, unsigned n_entries_between, uint64_t ns_between) {
    memset(&lock, 0, sizeof lock);
    sbt_n_cpus = n_cpus;
    n_fences = 0;
    for (unsigned i = 0; i < n_visits; i++) {
        for (unsigned k = 0; k < n_entries_between; k++) {
            sbt_own_lock_enter(&lock);
            sbt_own_lock_leave(&lock);
            now += ns_between / n_entries_between;
        }
        sbt_own_lock_visit(&lock);
        sbt_own_lock_depart(&lock);
    }
    return n_fences;
}

TEST(visits_that_are_seldom_take_a_fence_each) {
    ck_assert_uint_eq(fences_of(2, 100, 5000, 5000 * US), 100);
    ck_assert_uint_eq(fences_of(64, 100, 5000, 100000 * US), 100);
}

TEST(visits_that_soon_follow_each_other_take_few) {
    ck_assert_uint_le(fences_of(2, 1000, 5000, 500 * US), 10);
}

TEST(many_cpus_are_not_interrupted_as_often) {
    ck_assert_uint_le(fences_of(64, 1000, 5000, 1600 * US), 10);
}

/* Of the locks of all CPUs: each is visited after a rest of a millisecond for each CPU at the earliest. */
TEST(all_locks_together_take_a_thousand_in_a_second) {
    static const uint32_t cpus[] = {2, 16, 64};
    for (unsigned i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        uint64_t began = now;
        unsigned n = fences_of(cpus[i], 2000, 40000, 4000 * US);
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_le(n * cpus[i], (now - began) / 1000000 + cpus[i]);
    }
}

TEST(a_lock_that_is_hardly_entered_is_not_owned_again) {
    ck_assert_uint_le(fences_of(2, 1000, 10, 5000 * US), 2);
}

/* Last: it is for good. */
TEST(a_fence_that_the_kernel_refuses_is_the_last, "the lock is not owned any more") {
    refuses = true;
    ck_assert_uint_eq(fences_of(2, 100, 5000, 5000 * US), 1);
}
