/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether other programs keep threads that spin from the CPUs (core/beside.c), by cases computed by hand. */
#include "core/beside.h"

#include "lib/suite.h"

#define MS UINT64_C(1000000)

static struct sbt_beside beside;
static struct sbt_beside_seen seen;

/* Two threads that spin on two CPUs, and two of other programs; the first look knows no CPU time of before. */
static void begin(void) {
    beside = (struct sbt_beside){0};
    seen = (struct sbt_beside_seen){.now_ns = 5000 * MS,
                                    .used_ns = 20 * MS,
                                    .n_preempted = 7,
                                    .n_spin = 2,
                                    .n_cpus = 2,
                                    .n_runnable = 4,
                                    .n_cpus_most = 2};
    ck_assert(!sbt_beside_step(&beside, &seen));
}

/* Another 100 ms, of which the process has had so many of CPU time, and in which it has been preempted so often. */
static bool after_with(uint64_t used_ms, uint64_t n_preempted) {
    seen.now_ns += 100 * MS;
    seen.used_ns += used_ms * MS;
    seen.n_preempted += n_preempted;
    return sbt_beside_step(&beside, &seen);
}

/* As often as beside equals. */
static bool after(uint64_t used_ms) {
    return after_with(used_ms, 4 * (seen.n_spin < seen.n_cpus ? seen.n_spin : seen.n_cpus));
}

TEST(two_looks_that_agree_are_an_answer) {
    begin();
    ck_assert(!after(100));
    ck_assert(after(100));
    ck_assert_msg(after(5), "they sleep now");
    seen.n_runnable = 2;
    ck_assert(after(5));
    ck_assert(!after(5));
}

TEST(a_single_look_is_none) {
    begin();
    for (int i = 0; i < 100; i++) {
        seen.n_runnable = i % 2 == 0 ? 4 : 2;
        ck_assert(!after(100));
    }
    seen.n_runnable = 4;
    after(100);
    ck_assert(after(100));
    for (int i = 0; i < 10; i++) {
        seen.n_runnable = i % 2 == 0 ? 2 : 4;
        ck_assert(after(100));
    }
}

/* Seven eighths of the time of two CPUs in 100 ms are 175 ms. */
TEST(others_of_low_priority_are_no_matter) {
    begin();
    for (int i = 0; i < 10; i++)
        ck_assert(!after(175));
    after(174);
    ck_assert(after(174));
}

/* Half of the time the program has one thread, and others of low priority have the second CPU. */
TEST(a_cpu_that_is_not_wanted_is_not_lacking) {
    begin();
    for (int i = 0; i < 100; i++)
        ck_assert(!after_with(150, 3));
    after_with(150, 4);
    ck_assert(after_with(150, 4));
}

/* To ask how many threads are runnable takes a file: not where it does not matter. */
TEST(it_asks_where_it_matters) {
    begin();
    seen.now_ns += 100 * MS;
    seen.used_ns += 100 * MS;
    ck_assert(!sbt_beside_asks(&beside, &seen));
    seen.n_preempted += 8;
    ck_assert(sbt_beside_asks(&beside, &seen));
    seen.used_ns += 100 * MS;
    ck_assert(!sbt_beside_asks(&beside, &seen));
    after(100);
    ck_assert(after(100));
    ck_assert_msg(sbt_beside_asks(&beside, &seen), "the answer is yes");
    seen.n_spin = 0;
    ck_assert(!sbt_beside_asks(&beside, &seen));
}

TEST(as_many_threads_as_cpus_lack_nothing) {
    begin();
    seen.n_runnable = 2;
    for (int i = 0; i < 10; i++)
        ck_assert(!after(0));
}

/* Of 16 CPUs two threads want the time of two, and 20 that spin want the time of 16. */
TEST(threads_want_no_more_than_their_time) {
    begin();
    seen.n_cpus = seen.n_cpus_most = 16;
    seen.n_runnable = 17;
    for (int i = 0; i < 10; i++)
        ck_assert(!after(180));
    seen.n_spin = 20;
    after(1399);
    ck_assert(after(1399));
    begin();
    seen.n_spin = 20;
    seen.n_cpus = seen.n_cpus_most = 16;
    seen.n_runnable = 17;
    for (int i = 0; i < 10; i++)
        ck_assert(!after(1400));
}

TEST(a_yes_is_forgotten) {
    begin();
    after(100);
    ck_assert(after(100));
    for (uint32_t i = 1; i < SBT_BESIDE_LOOKS; i++)
        ck_assert(after(5));
    ck_assert(!after(5));
    ck_assert_msg(!after(195), "the others have a low priority now");
    ck_assert(!after(195));
    ck_assert(!after(100));
    ck_assert(after(100));
}

TEST(what_is_not_known_is_no_answer) {
    begin();
    seen.n_spin = 0;
    ck_assert(!after(0) && !after(0));
    begin();
    seen.n_runnable = 0;
    ck_assert(!after(0) && !after(0));
    begin();
    for (int i = 0; i < 4; i++) {
        seen.now_ns += 2000 * MS;
        ck_assert_msg(!after(0), "the last look is too old");
    }
    begin();
    beside.used_ns = seen.used_ns = 0;
    ck_assert_msg(!after(0) && !after(0), "no CPU time is known");
    begin();
    after(50);
    seen.used_ns = 1;
    ck_assert_msg(!after(0), "a forked child's CPU time begins anew");
}
