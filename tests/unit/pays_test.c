/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When `--wait auto` begins and ends with switching (switch/pays.c). The test is the program and the clock: it makes so
 * much progress in a millisecond at home, and so much by switching.
 */
#include "lib/suite.h"
#include "switch/pays.h"

enum { US = 1000, MS = 1000 * US };
#define SECOND UINT64_C(1000000000)

static struct sbt_pays pays;
static uint64_t now_ns, progress, n_switches, switched_ns;
static unsigned at_home, by_switching; /* progress in a millisecond */
static unsigned switches_per_ms = 200; /* while the threads are switched */
static bool often, costly, crowded, never_idle;
static uint32_t lacks; /* thousandths of the CPUs' time */

static void program(unsigned home, unsigned switched) {
    pays = (struct sbt_pays){0};
    now_ns = 5 * SECOND;
    progress = n_switches = switched_ns = 0;
    at_home = home;
    by_switching = switched;
    switches_per_ms = 200;
    often = true;
    costly = never_idle = false;
    crowded = true;
    lacks = 0;
}

static bool step(void) {
    struct sbt_pays_seen seen = {now_ns, progress, n_switches, 2, crowded, often, costly, false, 0, never_idle, lacks};
    return sbt_pays_step(&pays, &seen);
}

/* The monitor looks once a millisecond. */
static void go_on(uint64_t ns) {
    for (uint64_t end = now_ns + ns; now_ns < end; now_ns += MS) {
        bool switches = step();
        progress += switches ? by_switching : at_home;
        n_switches += switches ? switches_per_ms : 0;
        switched_ns += switches ? MS : 0;
    }
}

static bool is_at_rest(void) {
    return pays.phase == SBT_PAYS_REST && !pays.switches;
}

static bool is_switched(void) {
    return pays.phase == SBT_PAYS_SWITCHED && pays.switches;
}

TEST(nothing_is_tried_without_a_sign) {
    program(100, 1000);
    often = false;
    go_on(10 * SECOND);
    ck_assert(is_at_rest());
    ck_assert_uint_eq(switched_ns, 0);
}

/* A window at home, the time to settle, and a window of switching. */
TEST(a_clear_gain_is_taken_after_a_pair_of_windows) {
    program(100, 200);
    go_on(20 * MS);
    ck_assert(is_switched());
}

/* 96 operations take 20 ms at home, and 500 would take longer than a window lasts. */
TEST(a_gain_by_a_multiple_cuts_windows_short) {
    program(5, 100);
    go_on(32 * MS);
    ck_assert(is_switched());
    ck_assert_uint_ge(switched_ns, 7 * MS);
}

/* So it is when switching goes on: with 96 operations at home, the most that 30 may be, it would still be a multiple.
 */
TEST(a_multiple_cuts_later_windows_short) {
    program(5, 100);
    go_on(2 * SECOND);
    ck_assert(is_switched());
    ck_assert_uint_ge(switched_ns, 2 * SECOND - 24 * MS - 3 * 9 * MS); /* the beginning, and three trials */
}

/* Where switching gets ten times as much done, a later trial waits adaptively for 2 ms to settle, and 2 to look. */
TEST(ten_times_as_much_ends_later_windows_soon) {
    program(1000, 10500);
    go_on(2 * SECOND);
    ck_assert(is_switched());
    ck_assert_uint_ge(switched_ns, 2 * SECOND - 7 * MS - 3 * 5 * MS); /* the beginning, and three trials */
    program(1000, 9500);
    go_on(2 * SECOND);
    ck_assert(is_switched());
    ck_assert_uint_lt(switched_ns, 2 * SECOND - 6 * MS - 3 * 7 * MS);
}

/* After 6 ms 96 operations would not be so few: the window lasts for 17. */
TEST(later_windows_last_until_little_progress_is_enough) {
    program(5, 100);
    go_on(40 * MS);
    ck_assert(is_switched());
    go_on(pays.next_ns - now_ns);
    by_switching = 17;
    go_on(31 * MS + 2 * MS + 14 * MS); /* 500 operations, the time to settle, and 70 at home */
    ck_assert(sbt_pays_is_in_trial(&pays));
    ck_assert(!pays.switches);
    go_on(7 * MS);
    ck_assert(is_switched());
}

/* Anything less begins the trial anew, with whole windows: the program of 24 operations in a millisecond. */
TEST(a_small_gain_is_not_taken_in_a_hurry) {
    program(24, 48);
    go_on(16 * MS);
    ck_assert(sbt_pays_is_in_trial(&pays));
    go_on(24 * MS + 24 * MS);
    ck_assert(is_switched());
    program(24, 12);
    go_on(16 * MS);
    ck_assert(sbt_pays_is_in_trial(&pays));
    go_on(24 * MS + 52 * MS);
    ck_assert(is_at_rest());
    ck_assert_uint_le(switched_ns, 10 * MS + 52 * MS);
}

TEST(a_small_gain_takes_three_pairs) {
    program(100, 120);
    go_on(30 * MS);
    ck_assert(sbt_pays_is_in_trial(&pays));
    go_on(30 * MS);
    ck_assert(is_switched());
}

TEST(a_gain_that_may_be_chance_is_left) {
    program(100, 104);
    go_on(70 * MS);
    ck_assert(is_at_rest());
}

TEST(a_clear_loss_ends_the_trial) {
    program(100, 50);
    go_on(20 * MS);
    ck_assert(is_at_rest());
    ck_assert_uint_le(switched_ns, 12 * MS); /* 2 to settle, 10 until there is progress enough */
}

/* The gap doubles: after trials at 0, 0.25, 0.75, 1.75, ... s ten seconds have seen six of them. */
TEST(trials_in_vain_grow_rare) {
    program(100, 50);
    go_on(10 * SECOND);
    ck_assert(is_at_rest());
    ck_assert_uint_eq(switched_ns, 6 * 12 * MS);
    ck_assert_uint_le(pays.gap_ns, 64 * SECOND);
    go_on(1000 * SECOND);
    ck_assert_uint_eq(pays.gap_ns, 64 * SECOND);
}

/* While it pays trials grow rare too, and a program that has changed its work gets out of it. */
TEST(it_ends_when_it_pays_no_more) {
    program(100, 200);
    go_on(3 * SECOND);
    ck_assert(is_switched());
    ck_assert_uint_ge(switched_ns, 3 * SECOND - 80 * MS);
    by_switching = 90;
    go_on(5 * SECOND);
    ck_assert(is_at_rest());
    by_switching = 200;
    go_on(5 * SECOND);
    ck_assert(is_switched());
}

/* What was better stays while it is as good. */
TEST(it_goes_on_while_it_is_as_good) {
    program(100, 200);
    go_on(1 * SECOND);
    by_switching = 99;
    go_on(10 * SECOND);
    ck_assert(pays.switches || sbt_pays_is_in_trial(&pays));
    ck_assert(pays.holds);
}

/* Not more threads than CPUs: the kernel may find a CPU for each of them, only later. */
TEST(few_threads_need_a_clear_gain) {
    program(100, 139);
    crowded = false;
    go_on(3 * SECOND);
    ck_assert(is_at_rest());
    program(100, 141);
    crowded = false;
    go_on(20 * MS);
    ck_assert(is_switched());
    by_switching = 121;
    go_on(3 * SECOND);
    ck_assert(pays.switches || sbt_pays_is_in_trial(&pays));
    ck_assert(pays.holds);
    by_switching = 119;
    go_on(5 * SECOND);
    ck_assert(is_at_rest());
}

TEST(few_switches_end_it) {
    program(100, 200);
    go_on(50 * MS);
    ck_assert(is_switched());
    switches_per_ms = 9; /* of 10 that are often, on two CPUs */
    often = false;
    go_on(250 * MS);
    ck_assert(is_at_rest());
}

/* As many for the CPU time that it gets. */
TEST(few_switches_do_not_if_it_gets_little_cpu_time) {
    program(100, 200);
    go_on(50 * MS);
    lacks = 900;
    switches_per_ms = 2;
    often = false;
    go_on(150 * MS);
    ck_assert(is_switched());
    switches_per_ms = 0;
    go_on(250 * MS);
    ck_assert(is_at_rest());
}

TEST(enough_switches_do_not) {
    program(100, 200);
    go_on(50 * MS);
    switches_per_ms = 11;
    go_on(150 * MS);
    ck_assert(is_switched());
}

TEST(few_switches_do_not_if_the_caller_has_another_rule) {
    program(100, 200);
    never_idle = true;
    go_on(50 * MS);
    switches_per_ms = 0;
    often = false;
    go_on(150 * MS);
    ck_assert(is_switched());
}

/* Sleeps on carriers: at once, also in the midst of a trial, and that counts as a trial in vain. */
TEST(costly_sleeps_end_it) {
    program(100, 200);
    go_on(50 * MS);
    costly = true;
    ck_assert(!step());
    ck_assert(is_at_rest());
    costly = false;
    ck_assert_uint_eq(pays.next_ns, now_ns + 500 * MS);
    now_ns = pays.next_ns;
    while (!step()) {
        progress += at_home;
        now_ns += MS;
    }
    ck_assert(sbt_pays_is_in_trial(&pays));
    costly = true;
    ck_assert(!step());
    ck_assert(is_at_rest());
    ck_assert_uint_eq(pays.next_ns, now_ns + 1000 * MS);
}

/* A program that does nothing in a window says nothing. */
TEST(too_little_progress_is_no_answer) {
    program(1, 3);
    go_on(600 * MS);
    ck_assert(is_at_rest());
    program(0, 0);
    go_on(600 * MS);
    ck_assert(is_at_rest());
}

/* Beside programs that compute: windows of 100 ms, and less progress is enough for a difference that is no chance. */
TEST(with_little_cpu_time_a_large_gain_shows_in_little_progress) {
    program(0, 3);
    lacks = 900;
    go_on(260 * MS);
    ck_assert(is_switched());
    at_home = 0;
    by_switching = 1;
    now_ns = pays.next_ns;
    go_on(260 * MS);
    ck_assert(is_switched());
    program(3, 0);
    lacks = 900;
    go_on(260 * MS);
    ck_assert(is_at_rest());
}

TEST(with_little_cpu_time_a_small_gain_may_be_chance) {
    program(0, 0);
    lacks = 900;
    for (int i = 0; i < 400; i++) { /* 25 operations in a window at home, 50 by switching */
        by_switching = i % 2;
        at_home = i % 4 == 0;
        go_on(MS);
    }
    ck_assert(sbt_pays_is_in_trial(&pays));
    by_switching = at_home = 0;
    go_on(500 * MS);
    ck_assert(is_at_rest());
}

/* It takes all windows, and the answer is what it was. */
TEST(with_little_cpu_time_no_answer_changes_nothing) {
    program(100, 200);
    go_on(100 * MS);
    ck_assert(is_switched());
    lacks = 900;
    at_home = by_switching = 0;
    now_ns = pays.next_ns;
    go_on(300 * MS);
    ck_assert(sbt_pays_is_in_trial(&pays));
    go_on(600 * MS);
    ck_assert(is_switched());
    lacks = 0;
    now_ns = pays.next_ns;
    go_on(110 * MS);
    ck_assert(is_at_rest());
}

/* Windows wait for progress, 50 ms at most. */
TEST(windows_are_long_where_progress_is_slow) {
    program(30, 60);
    go_on(25 * MS);
    ck_assert(sbt_pays_is_in_trial(&pays));
    go_on(30 * MS);
    ck_assert(is_switched());
}

TEST(no_progress_at_home_is_a_gain) {
    program(0, 100);
    go_on(70 * MS);
    ck_assert(is_switched());
}

TEST(by_turns_it_changes_at_each_look) {
    program(100, 100);
    for (int i = 0; i < 10; i++) {
        struct sbt_pays_seen seen = {now_ns, progress, n_switches, 2, false, false, false, true, 0, false, 0};
        ck_assert_int_eq(sbt_pays_step(&pays, &seen), i % 2 == 0);
    }
}

/* 1024 waits at 5000 a second on each CPU. */
TEST(a_crowd_is_known_when_it_has_told_or_had_the_time_to) {
    ck_assert(!sbt_pays_knows_crowd(2, 15, 2));
    ck_assert(sbt_pays_knows_crowd(3, 3, 2));
    ck_assert(sbt_pays_knows_crowd(2, 16, 2));
    ck_assert(!sbt_pays_knows_crowd(32, 32, 64)); /* no more than these can have told yet */
    ck_assert(sbt_pays_knows_crowd(65, 65, 64));
    ck_assert(sbt_pays_knows_crowd(32, 512, 64));
}

TEST(often_is_a_rate_for_each_cpu) {
    ck_assert(sbt_pays_is_often(1024, 204800000, 1));
    ck_assert(!sbt_pays_is_often(1024, 204800001, 1));
    ck_assert(sbt_pays_is_often(1024, 102400000, 2));
    ck_assert(!sbt_pays_is_often(1024, 102400001, 2));
    ck_assert(sbt_pays_is_often(512, 1600000, 64));
    ck_assert(!sbt_pays_is_often(512, 1600001, 64));
}
