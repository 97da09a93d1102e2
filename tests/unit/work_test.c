/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The work between two events, from the time between them (observe/work.h): cases computed by hand. */
#include "observe/work.h"

#include "lib/suite.h"

enum { OVERHEAD = 26 };

static uint16_t owed;

static uint64_t work(uint64_t between) {
    return rec_work_of(between, OVERHEAD, &owed);
}

TEST(cost_is_subtracted) {
    owed = 0;
    ck_assert_uint_eq(work(126), 100);
    ck_assert_uint_eq(work(26), 0);
    ck_assert_uint_eq(owed, 0);
    ck_assert_uint_eq(work(27), 1);
}

TEST(below_zero_is_owed) {
    owed = 0;
    ck_assert_uint_eq(work(20), 0); /* owes 6 */
    ck_assert_uint_eq(owed, 6);
    ck_assert_uint_eq(work(30), 0); /* 30 - 26 - 6: owes 2 */
    ck_assert_uint_eq(owed, 2);
    ck_assert_uint_eq(work(30), 2);
    ck_assert_uint_eq(work(30), 4);
}

TEST(no_more_is_owed_than_an_event_costs) {
    owed = 0;
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(work(0), 0);
    ck_assert_uint_eq(owed, OVERHEAD);
    ck_assert_uint_eq(work(1000), 1000 - 2 * OVERHEAD);
    ck_assert_uint_eq(work(1000), 1000 - OVERHEAD);
}

TEST(a_reading_of_cpu_time_is_no_work) {
    ck_assert_uint_eq(rec_used_between(10000, 10700, 500), 200);
    ck_assert_uint_eq(rec_used_between(10000, 10700, 0), 700); /* a kernel that counts in ticks: unknown */
    ck_assert_uint_eq(rec_used_between(10000, 10500, 500), 0);
    ck_assert_uint_eq(rec_used_between(10000, 10400, 500), 0);
}

/* Work of 2 ns, by a clock that counts in steps of 10: as long as it is, on average. */
TEST(mean_of_work_shorter_than_a_step) {
    enum { N = 1000, WORK = 2, STEP = 10 };
    uint64_t now = 0, seen = 0, sum = 0;
    owed = 0;
    for (int i = 0; i < N; i++) {
        now += OVERHEAD + WORK;
        uint64_t shown = now - now % STEP;
        sum += work(shown - seen);
        seen = shown;
    }
    ck_assert_uint_ge(sum, N * WORK - STEP);
    ck_assert_uint_le(sum, N * WORK + STEP);
}
