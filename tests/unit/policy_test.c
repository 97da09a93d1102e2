/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the software engine decides (engine/direct/policy.c, let_in.c), with the test's own clock. */
#include "engine/direct/policy.h"
#include "engine/direct/rwlock.h"
#include "lib/suite.h"

enum { US = 1000, MS = 1000 * US };
static const uint64_t now = UINT64_C(5000) * 1000 * MS;

static uint32_t us(uint64_t ns) {
    return (uint32_t)(ns / 1000);
}

/* ---- spinning ---- */

/* How many of so many waits spin, each for nothing. */
static uint32_t n_that_spin(struct direct_contention *c, uint32_t n_waits, bool is_fiber) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_waits; i++)
        if (direct_policy_spins(c, is_fiber)) {
            direct_policy_spun(c, false);
            n++;
        }
    return n;
}

TEST(spins_that_fail_become_rare) {
    struct direct_contention c = {0};
    ck_assert_uint_eq(n_that_spin(&c, 16, false), 16);
    ck_assert_uint_eq(n_that_spin(&c, 65, false), 0);
    ck_assert_uint_eq(n_that_spin(&c, 66 * 10, false), 10); /* one of so many finds out */
    direct_policy_spun(&c, true);
    ck_assert_uint_eq(n_that_spin(&c, 16, false), 16);
}

TEST(a_fiber_spins_in_place_of_its_carrier) {
    struct direct_contention c = {0};
    ck_assert_uint_eq(n_that_spin(&c, 1000, true), 1000);
}

/* Taken so often in a row, each within 700 ns of the last. */
static struct direct_contention dense(uint32_t times, uint64_t gap_ns) {
    struct direct_contention c = {0};
    uint64_t at = now;
    direct_policy_taken(&c, at);
    for (uint32_t i = 0; i < times; i++)
        direct_policy_taken(&c, at += gap_ns);
    return c;
}

TEST(a_mutex_that_goes_to_and_fro_is_left_to_one_core) {
    struct direct_contention c = dense(7, 700);
    ck_assert(direct_policy_spins(&c, false));
    c = dense(8, 701);
    ck_assert(direct_policy_spins(&c, false));
    c = dense(8, 700);
    uint32_t n = 0;
    while (!direct_policy_spins(&c, true))
        n++;
    ck_assert_uint_eq(n, 255 - 8 + 1);
    ck_assert_uint_eq(n_that_spin(&c, 10, true), 10);
}

TEST(a_pause_makes_it_less_dense) {
    struct direct_contention c = dense(7, 100);
    direct_policy_taken(&c, now + 1 * MS);
    direct_policy_taken(&c, now + 1 * MS + 1);
    ck_assert(direct_policy_spins(&c, false));
    direct_policy_taken(&c, now + 1 * MS + 2);
    ck_assert(!direct_policy_spins(&c, false));
}

/* The low bits of the clock wrap every 4 s. */
TEST(the_clock_wraps) {
    struct direct_contention c = {0};
    uint64_t at = UINT64_C(7) << 32;
    direct_policy_taken(&c, at - 300);
    for (int i = 0; i < 8; i++)
        direct_policy_taken(&c, at + (uint64_t)i * 100);
    ck_assert(!direct_policy_spins(&c, false));
}

/* ---- a designated waker ---- */

TEST(a_waker_without_a_core_is_late) {
    ck_assert(!direct_policy_is_late(now, now - 50 * US, 1, 0, true));
    ck_assert(direct_policy_is_late(now, now - 50 * US - 1, 1, 0, true));
    ck_assert(!direct_policy_is_late(now, now - 100 * US, 2, 0, true)); /* twice as long for each that is awake */
    ck_assert(direct_policy_is_late(now, now - 100 * US - 1, 2, 0, true));
    ck_assert(!direct_policy_is_late(now, now - 400 * US, 1, 3, true)); /* and for each that has lost the race */
    ck_assert(direct_policy_is_late(now, now - 400 * US - 1, 1, 3, true));
    ck_assert(!direct_policy_is_late(now, now - 1 * MS, 1, 0, false)); /* no core idles */
    ck_assert(direct_policy_is_late(now, now - 1 * MS - 1, 1, 8, false));
}

TEST(no_more_than_so_many_are_notified) {
    ck_assert(!direct_policy_is_late(now, 0, 0, 0, true));
    ck_assert(direct_policy_is_late(now, 0, 16, 0, true));
    ck_assert(!direct_policy_is_late(now, 0, 17, 0, true));
    ck_assert(!direct_policy_is_late(now, 0, UINT32_MAX, DIRECT_LOST_MOST, true));
}

TEST(one_that_does_not_come_is_overdue) {
    ck_assert(!direct_policy_is_overdue(now, now));
    ck_assert(!direct_policy_is_overdue(now, now - 1 * MS));
    ck_assert(direct_policy_is_overdue(now, now - 1 * MS - 1));
}

TEST(one_unlock_of_sixteen_looks) {
    uint32_t n = 0, far = 0;
    for (uint32_t passed_over = 0; passed_over < 4096; passed_over++)
        if (direct_policy_looks_at_clock(passed_over)) {
            n++;
            far += direct_policy_looks_into_queue(passed_over + 1, false);
            ck_assert(direct_policy_looks_into_queue(passed_over + 1, true));
        }
    ck_assert_uint_eq(n, 256);
    ck_assert_uint_eq(far, 16);
    ck_assert(direct_policy_cores_may_idle(2, false));
    ck_assert(!direct_policy_cores_may_idle(2, true));
    ck_assert(!direct_policy_cores_may_idle(1, false));
}

/* ---- hand-overs ---- */

TEST(a_waiter_that_has_lost_starves) {
    uint32_t long_ago = us(now - 10 * MS);
    ck_assert(!direct_policy_hands_over(now, now - 1 * MS, true, long_ago));
    ck_assert(direct_policy_hands_over(now, now - 1 * MS - 1, true, long_ago));
    ck_assert(!direct_policy_hands_over(now, now - 100 * MS, false, long_ago));
    ck_assert(!direct_policy_hands_over(now, now - 100 * MS, true, us(now - 1 * MS)));
    ck_assert(direct_policy_hands_over(now, now - 100 * MS, true, us(now - 1001 * US)));
    ck_assert(direct_policy_may_hand_over(now, us(now - 1001 * US)));
    ck_assert(!direct_policy_may_hand_over(now, us(now)));
}

/* Of so many waiters that starve, each is served within n + 1 ms, and there are no two hand-overs in one. */
TEST(many_that_starve_are_served_one_by_one) {
    enum { N = 20 };
    uint32_t handed = us(now), served = 0;
    for (uint64_t at = now; at < now + UINT64_C(100) * MS && served < N; at += 10 * US)
        if (direct_policy_hands_over(at, now, true, handed)) {
            handed = us(at);
            served++;
            ck_assert_uint_le(at - now, (uint64_t)(served + 1) * (1 * MS + 20 * US));
            ck_assert_uint_ge(at - now, (uint64_t)served * MS);
        }
    ck_assert_uint_eq(served, N);
}

TEST(writers_starve_later) {
    uint32_t long_ago = us(now - 10 * MS);
    ck_assert(!direct_policy_hands_over_to_writer(now, now - 2 * MS, long_ago));
    ck_assert(direct_policy_hands_over_to_writer(now, now - 2 * MS - 1, long_ago));
    ck_assert(!direct_policy_hands_over_to_writer(now, now - 9 * MS, us(now - 1 * MS)));
    ck_assert(!direct_policy_queue_is_due(now, us(now - 1 * MS)));
    ck_assert(direct_policy_queue_is_due(now, us(now - 1001 * US)));
}

/* ---- which waiter is let in ---- */

static struct sbt_waiter *const a_writer = (struct sbt_waiter *)(uintptr_t)64;

TEST(all_readers_come_in_at_once) {
    struct direct_rw_waiters n = {.total = 4, .writers = 1, .readers_waiting = 3, .writer = a_writer};
    struct direct_rw_change c = direct_policy_let_in(RW_WRITER | RW_QUEUED | RW_WRITERS, RW_WRITER, &n, false);
    ck_assert_uint_eq(c.granted, 3);
    ck_assert_uint_eq(c.want, 3 * RW_READER | RW_QUEUED | RW_WRITERS);
    ck_assert(!c.writers_turn);
    n = (struct direct_rw_waiters){.total = 3, .readers_waiting = 3}; /* and beside one that is inside */
    c = direct_policy_let_in(RW_READER | RW_QUEUED, 0, &n, false);
    ck_assert_uint_eq(c.want, 4 * RW_READER);
}

TEST(writers_first_if_so_asked) {
    struct direct_rw_waiters n = {.total = 4, .writers = 1, .readers_waiting = 3, .writer = a_writer};
    struct direct_rw_change c = direct_policy_let_in(RW_WRITER | RW_QUEUED | RW_WRITERS, RW_WRITER, &n, true);
    ck_assert(c.writers_turn);
    ck_assert_uint_eq(c.granted, 0);
    ck_assert_uint_eq(c.want, RW_QUEUED | RW_WRITERS | RW_WOKEN);
    n.hands_over = true;
    c = direct_policy_let_in(RW_WRITER | RW_QUEUED | RW_WRITERS, RW_WRITER, &n, true);
    ck_assert_uint_eq(c.want, RW_WRITER | RW_HANDED | RW_QUEUED | RW_WRITERS | RW_WOKEN);
}

TEST(no_thread_beside_a_writer) {
    struct direct_rw_waiters n = {.total = 2, .writers = 1, .readers_waiting = 1, .writer = a_writer};
    struct direct_rw_change c = direct_policy_let_in(RW_WRITER | RW_QUEUED, 0, &n, false);
    ck_assert_uint_eq(c.granted, 0);
    ck_assert(!c.writers_turn);
    ck_assert_uint_eq(c.want, RW_WRITER | RW_QUEUED | RW_WRITERS);
    n.readers_waiting = 0;
    n.total = 1;
    c = direct_policy_let_in(RW_READER | RW_QUEUED, 0, &n, false);
    ck_assert(!c.writers_turn);
}

TEST(a_hand_over_is_taken_back) {
    struct direct_rw_waiters n = {.total = 2, .writers = 1, .readers_waiting = 1};
    uint32_t handed = RW_WRITER | RW_HANDED | RW_WOKEN | RW_QUEUED | RW_WRITERS;
    struct direct_rw_change c = direct_policy_let_in(handed, 0, &n, false);
    ck_assert_uint_eq(c.want, RW_READER | RW_QUEUED | RW_WRITERS);
    ck_assert_uint_eq(c.granted, 1);
    n.one_comes = true; /* the writer is on its way */
    c = direct_policy_let_in(handed, 0, &n, false);
    ck_assert_uint_eq(c.want, handed);
    ck_assert_uint_eq(c.granted, 0);
}

TEST(the_last_to_leave_leaves_nothing) {
    struct direct_rw_waiters n = {0};
    ck_assert_uint_eq(direct_policy_let_in(RW_WRITER | RW_QUEUED | RW_WRITERS | RW_WOKEN, RW_WRITER, &n, true).want, 0);
}
