/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When yielding ends and begins again (wait/turn.c), with the test's own clock: each yield takes what the machine of
 * the moment makes of it.
 */
#include "core/clock.h"
#include "hw_check.h"
#include "wait/futex.h"

static uint64_t clock_ns, yield_ns, n_yields, n_pauses;
static void (*meanwhile)(void); /* what others do during the next yield */

static void test_yield(void) {
    void (*others)(void) = meanwhile;
    meanwhile = NULL;
    if (others != NULL)
        others();
    clock_ns += yield_ns;
    n_yields++;
}

static void test_pause(void) {
    clock_ns += 70000;
    n_pauses++;
}

#define sbt_now_ns() clock_ns
#define sbt_yield test_yield
#define sbt_pause_ns(ns) test_pause()
#include "wait/turn.c"

enum { US = 1000, MS = 1000 * US };

static void machine(uint64_t yields_take_ns) {
    clock_ns = UINT64_C(1000) * 1000 * MS;
    yield_ns = yields_take_ns;
    n_yields = n_pauses = 0;
    sbt_turn_closed_until_ns = last_long_ns = closed_ns = opens_ns = 0;
}

static uint64_t give(void) {
    uint64_t now = clock_ns, took = sbt_turn_give(&now);
    ck_assert_uint_eq(now, clock_ns);
    return took;
}

START_TEST(short_turns_go_on) {
    machine(300 * US);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(give(), 300 * US);
        ck_assert(!sbt_turn_closed());
    }
    yield_ns = 0;
    ck_assert_uint_eq(give(), 1);
}
END_TEST

/* The machine was away for a moment: all who wait notice, and it means nothing. */
START_TEST(one_long_turn_is_noise) {
    machine(1 * US);
    for (int i = 0; i < 20; i++) {
        uint64_t before = clock_ns;
        yield_ns = 4 * MS;
        ck_assert_uint_eq(give(), 4 * MS);
        for (int others = 1; others < 8; others++) { /* in the same run queue, or in another */
            uint64_t now = before + (uint64_t)others * 100 * US;
            yield_ns = 10 * US;
            ck_assert_uint_ge(sbt_turn_give(&now), 3 * MS);
        }
        ck_assert(!sbt_turn_closed());
        clock_ns += 50 * MS;
    }
    ck_assert_uint_eq(n_yields, 160);
}
END_TEST

/* Somebody computes beside us: two turns are lost, then one and one more, ever more rarely. */
START_TEST(long_turns_end_it) {
    machine(4 * MS);
    ck_assert_uint_eq(give(), 4 * MS);
    clock_ns += 5 * MS;
    ck_assert_uint_eq(give(), 4 * MS);
    ck_assert(sbt_turn_closed());
    uint64_t begin = clock_ns, waits = 0;
    while (clock_ns < begin + UINT64_C(5000) * MS) {
        waits += give() == 0;
        clock_ns += 100 * US;
    }
    ck_assert_uint_ge(n_yields, 2 + 10);
    ck_assert_uint_le(n_yields, 2 + 25);
    ck_assert_uint_ge(waits, 45000);
    ck_assert_uint_le(sbt_turn_closed_until_ns, clock_ns + MAX_CLOSED_NS);
}
END_TEST

START_TEST(one_finds_out_for_all) {
    machine(4 * MS);
    give();
    give();
    clock_ns = sbt_turn_closed_until_ns - 1;
    ck_assert_uint_eq(give(), 0);
    clock_ns++;
    n_yields = 0;
    uint64_t probe = clock_ns, other = clock_ns + 10 * US;
    yield_ns = 4 * MS;
    ck_assert_uint_eq(sbt_turn_give(&probe), 4 * MS);
    ck_assert_uint_eq(sbt_turn_give(&other), 0);
    ck_assert_uint_eq(n_yields, 1);
    /* The other one has gone. */
    clock_ns = sbt_turn_closed_until_ns;
    yield_ns = 2 * US;
    ck_assert_uint_eq(give(), 2 * US);
    ck_assert(!sbt_turn_closed());
    /* And is back, soon or a minute later. */
    for (int later = 0; later < 2; later++) {
        uint64_t closed = closed_ns;
        clock_ns += later * UINT64_C(60000) * MS;
        yield_ns = 4 * MS;
        give();
        give();
        ck_assert_uint_eq(closed_ns, later ? CLOSED * 4 * MS : 2 * closed);
        clock_ns = sbt_turn_closed_until_ns;
        yield_ns = 2 * US;
        give();
        ck_assert(!sbt_turn_closed());
    }
}
END_TEST

static void two_long_turns(void) {
    uint64_t before = clock_ns, us = yield_ns;
    yield_ns = 4 * MS;
    give();
    give();
    yield_ns = us;
    clock_ns = us < MS ? before : clock_ns;
}

/* A yield that began before it was closed says nothing about now, short or long. */
START_TEST(only_who_finds_out_opens_it) {
    machine(4 * MS);
    uint64_t now = clock_ns;
    meanwhile = two_long_turns;
    yield_ns = 10 * US;
    ck_assert_uint_eq(sbt_turn_give(&now), 10 * US);
    ck_assert(sbt_turn_closed());
    machine(4 * MS);
    now = clock_ns;
    meanwhile = two_long_turns;
    ck_assert_uint_ge(sbt_turn_give(&now), 4 * MS);
    ck_assert_uint_eq(closed_ns, CLOSED * 4 * MS);
}
END_TEST

START_TEST(who_can_only_look_again_sleeps_instead) {
    machine(1 * US);
    sbt_turn_give_or_pause();
    sbt_turn_offer();
    ck_assert_uint_eq(n_yields, 2);
    ck_assert_uint_eq(n_pauses, 0);
    yield_ns = 4 * MS;
    give();
    give();
    n_yields = 0;
    sbt_turn_give_or_pause();
    ck_assert_uint_eq(n_pauses, 1);
    sbt_turn_offer();
    ck_assert_uint_eq(n_pauses, 1);
    ck_assert_uint_eq(n_yields, 0);
}
END_TEST

static void tests(Suite *suite) {
    ADD_TEST(suite, short_turns_go_on);
    ADD_TEST(suite, one_long_turn_is_noise);
    ADD_TEST(suite, long_turns_end_it);
    ADD_TEST(suite, one_finds_out_for_all);
    ADD_TEST(suite, only_who_finds_out_opens_it);
    ADD_TEST(suite, who_can_only_look_again_sleeps_instead);
}

int main(void) {
    void (*const all[])(Suite *) = {tests, NULL};
    return run_suite("turn", all);
}
