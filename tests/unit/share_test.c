/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What share of the CPUs' time a process gets, and the sign that its threads wait often for that time (switch/share.c).
 * The test is the threads, the clocks, the machine and the monitor.
 */
#include <string.h>

#include "core/cpus.h"
#include "core/sites.h"
#include "lib/suite.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/proc.h"
#include "switch/pays.h"
#include "switch/share.h"
#include "switch/state.h"

enum { US = 1000, MS = 1000 * US, CPUS = 2 };
#define SECOND UINT64_C(1000000000)

union sbt_switch_memory sbt_switch_memory;
_Thread_local struct sbt_thread sbt_self;
uint32_t sbt_n_cpus = CPUS;

static uint64_t now_ns, used_ns;
static uint32_t n_runnable, n_of_teams;
static bool forbidden, are_many; /* a filter of system calls; more threads than CPUs wait */
static unsigned n_asked, n_woken;
static struct sbt_share share;

void sbt_clock_read(clockid_t clock, struct timespec *now) {
    uint64_t ns = clock == CLOCK_PROCESS_CPUTIME_ID ? used_ns : now_ns;
    n_asked += clock == CLOCK_PROCESS_CPUTIME_ID;
    *now = (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
}

uint32_t sbt_proc_n_runnable(void) {
    n_asked++;
    return n_runnable;
}

uint32_t sbt_cpus_most(void) {
    return CPUS;
}

uint32_t sbt_sites_n_threads(void) {
    return n_of_teams;
}

bool sbt_fence_is_forbidden(void) {
    return forbidden;
}

void sbt_runq_wake_monitor(void) {
    n_woken++;
}

/* A process that has run for a while, on a machine that has. */
static void begin(void) {
    memset(&sbt_switch_memory, 0, sizeof sbt_switch_memory);
    SBT_SWITCH->all_pinned = 1;
    share = (struct sbt_share){0};
    sbt_self.told_round = 0;
    now_ns = 10000 * SECOND;
    used_ns = 10 * MS;
    n_runnable = 12;
    n_of_teams = 0;
    forbidden = false;
    are_many = true;
    n_asked = n_woken = 0;
}

/* SBT_PAYS_WAITS of them. */
static void wait_for(uint64_t each_ns, uint64_t each_used_ns) {
    for (unsigned i = 0; i < SBT_PAYS_WAITS; i += SBT_SWITCH_WAITS_TOLD) {
        now_ns += SBT_SWITCH_WAITS_TOLD * each_ns;
        used_ns += SBT_SWITCH_WAITS_TOLD * each_used_ns;
        if (are_many)
            sbt_self.told_round = 0; /* another thread */
        sbt_switch_note_waits(false);
    }
}

static bool sees_sign(void) {
    return sbt_share_sees_sign(&share, now_ns);
}

static void starve(void) {
    wait_for(1000 * US, 100 * US);
}

/* The monitor's next reading, at which the process has had so much of the time. */
static uint32_t lacks_with(unsigned hundredths) {
    sbt_share_lacks(&share, now_ns);
    now_ns += 60 * MS;
    used_ns += (uint64_t)hundredths * CPUS * 60 * MS / 100;
    return sbt_share_lacks(&share, now_ns);
}

TEST(waits_are_often_for_little_cpu_time) {
    begin();
    starve();
    sees_sign();
    starve();
    ck_assert(sees_sign());
    ck_assert(!sees_sign());
    ck_assert_uint_ge(sbt_share_lacks(&share, now_ns), 940);
    ck_assert_uint_le(sbt_share_lacks(&share, now_ns), 950);
}

/* Of all the time before it, in which the process may have slept or not have been there. */
TEST(the_first_reading_says_nothing) {
    begin();
    starve();
    ck_assert_uint_eq(n_woken, 0);
    ck_assert_uint_eq(sbt_share_lacks(&share, now_ns), 0);
    now_ns += 20 * MS;
    ck_assert_uint_eq(sbt_share_lacks(&share, now_ns), 0);
}

/* Of the clock's time it says something: waits are counted from the program's first thread on. */
TEST(the_first_waits_are_often) {
    begin();
    sbt_share_begin();
    wait_for(10 * US, 10 * US);
    ck_assert(sees_sign());
    begin();
    sbt_share_begin();
    now_ns += SECOND;
    wait_for(10 * US, 10 * US);
    ck_assert_uint_eq(n_woken, 0);
    wait_for(10 * US, 10 * US);
    ck_assert(sees_sign());
}

TEST(seldom_waits_are_no_sign, "however little the process gets: it computes between them") {
    begin();
    for (int i = 0; i < 10; i++)
        wait_for(1000 * US, 300 * US);
    ck_assert_uint_eq(n_woken, 0);
}

TEST(half_of_the_time_is_enough) {
    begin();
    for (int i = 0; i < 10; i++)
        wait_for(150 * US, 160 * US);
    ck_assert_uint_eq(n_woken, 0);
    ck_assert_uint_eq(lacks_with(55), 0);
    ck_assert_uint_ne(lacks_with(45), 0);
}

TEST(few_threads_give_no_sign) {
    begin();
    are_many = false;
    for (int i = 0; i < 10; i++)
        starve();
    ck_assert_uint_eq(n_woken, 0);
}

TEST(few_threads_of_a_team_give_a_sign, "they tell only of waits that became sleeps") {
    begin();
    are_many = false;
    n_of_teams = 2;
    for (int i = 0; i < 2; i++)
        starve();
    ck_assert(sees_sign());
}

TEST(often_by_the_clock_is_a_sign_without_a_reading, "and what was read long ago does not count") {
    begin();
    ck_assert_uint_eq(lacks_with(50), 0);
    now_ns += 100 * SECOND;
    for (int i = 0; i < 2; i++)
        wait_for(50 * US, 50 * US);
    ck_assert(sees_sign());
    ck_assert_uint_eq(sbt_share_lacks(&share, now_ns), 0);
}

TEST(nobody_else_wants_the_time, "a program with little to do wakes the monitor seldom, and more seldom each time") {
    begin();
    n_runnable = CPUS;
    for (int i = 0; i < 100; i++) {
        starve();
        ck_assert(!sees_sign());
    }
    ck_assert_uint_ge(n_woken, 5);
    ck_assert_uint_le(n_woken, 20);
    ck_assert_uint_eq(lacks_with(10), 0);
    n_runnable = 12;
    bool seen = false;
    for (int i = 0; !seen && i < 12; i++) {
        starve();
        seen = sees_sign();
    }
    ck_assert(seen);
    starve();
    ck_assert(sees_sign());
}

TEST(lacks_are_less_than_all, "so that a program that does not switch at all is idle") {
    begin();
    ck_assert_uint_eq(lacks_with(0), 999);
    ck_assert_uint_ge(lacks_with(10), 895);
    ck_assert_uint_le(lacks_with(10), 905);
}

TEST(no_time_between_two_readings, "is no share") {
    begin();
    for (int i = 0; i < 10; i++)
        wait_for(0, 0);
    sees_sign();
    ck_assert_uint_eq(sbt_share_lacks(&share, now_ns), 0);
}

TEST(the_kernel_does_not_say, "what was used, or what is runnable") {
    begin();
    used_ns = 0;
    for (int i = 0; i < 10; i++)
        wait_for(1000 * US, 0);
    ck_assert_uint_eq(n_woken, 0);
    ck_assert_uint_eq(lacks_with(0), 0);
    begin();
    n_runnable = 0;
    for (int i = 0; i < 3; i++)
        starve();
    ck_assert(!sees_sign());
    ck_assert_uint_eq(lacks_with(10), 0);
}

TEST(a_filter_of_system_calls, "may kill for a call that the program does not make") {
    begin();
    for (int i = 0; i < 2; i++)
        starve();
    forbidden = true;
    n_asked = n_woken = 0;
    ck_assert(!sees_sign());
    for (int i = 0; i < 3; i++)
        starve();
    ck_assert(!sees_sign());
    ck_assert_uint_eq(lacks_with(10), 0);
    ck_assert_uint_eq(n_asked, 0);
    ck_assert_uint_eq(n_woken, 0);
}

/* 64 threads that meet at barriers: each has its own thread-local variables, which the test keeps for it. */
TEST(threads_in_step_do_not_tell_at_once) {
    static struct sbt_thread thread[64];
    uint64_t before = 0;
    begin();
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 64; i++) {
            sbt_self = thread[i];
            sbt_progress();
            sbt_switch_about_to_wait();
            thread[i] = sbt_self;
        }
        if (round >= 64)
            ck_assert_uint_eq(SBT_SWITCH->progress - before, 64);
        before = SBT_SWITCH->progress;
    }
    ck_assert_uint_ge(before, 64 * (1000 - SBT_SWITCH_PROGRESS_TOLD));
}
