/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When yielding ends and begins again (wait/yield_gate.c), with the test's own clock: each yield takes what the machine
 * of the moment makes of it.
 */
#include <errno.h>

#include "lib/suite.h"
#include "wait/yield_gate.h"

static uint64_t clock_ns, yield_ns, n_yields, n_pauses;
static void (*meanwhile)(void); /* what others do during the next yield */

static uint64_t test_now(void) {
    return clock_ns;
}

static void test_yield(void) {
    void (*others)(void) = meanwhile;
    meanwhile = NULL;
    if (others != NULL)
        others();
    clock_ns += yield_ns;
    n_yields++;
}

static void test_pause(long ns) {
    clock_ns += (uint64_t)ns + 50000;
    n_pauses++;
}

static const struct sbt_wait_ops test_ops = {test_now, test_yield, test_pause};
static struct sbt_yield_gate gate;

enum { US = 1000, MS = 1000 * US };

static void machine(uint64_t yields_take_ns) {
    clock_ns = UINT64_C(1000) * 1000 * MS;
    yield_ns = yields_take_ns;
    n_yields = n_pauses = 0;
    gate = (struct sbt_yield_gate){0};
    sbt_wait_ops = &test_ops;
}

static uint64_t give(void) {
    uint64_t now = clock_ns, took = sbt_yield_gate_pass(&gate, &now);
    ck_assert_uint_eq(now, clock_ns);
    return took;
}

TEST(short_yields_go_on) {
    machine(300 * US);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(give(), 300 * US);
        ck_assert(!sbt_yield_gate_closed(&gate));
    }
    yield_ns = 0;
    ck_assert_uint_eq(give(), 1);
}

/* The machine was away for a moment: all waiters notice, and it means nothing. */
TEST(one_long_yield_is_noise) {
    machine(1 * US);
    for (int i = 0; i < 20; i++) {
        uint64_t before = clock_ns;
        yield_ns = 4 * MS;
        ck_assert_uint_eq(give(), 4 * MS);
        for (int others = 1; others < 8; others++) { /* in the same run queue, or in another */
            uint64_t now = before + (uint64_t)others * 100 * US;
            yield_ns = 10 * US;
            ck_assert_uint_ge(sbt_yield_gate_pass(&gate, &now), 3 * MS);
        }
        ck_assert(!sbt_yield_gate_closed(&gate));
        clock_ns += 50 * MS;
    }
    ck_assert_uint_eq(n_yields, 160);
}

/* A thread computes beside us: two yields are lost, then one and one more, ever more rarely. */
TEST(long_yields_close_it) {
    machine(4 * MS);
    ck_assert_uint_eq(give(), 4 * MS);
    clock_ns += 5 * MS;
    ck_assert_uint_eq(give(), 4 * MS);
    ck_assert(sbt_yield_gate_closed(&gate));
    uint64_t begin = clock_ns, waits = 0;
    while (clock_ns < begin + UINT64_C(5000) * MS) {
        waits += give() == 0;
        clock_ns += 100 * US;
    }
    ck_assert_uint_ge(n_yields, 2 + 10);
    ck_assert_uint_le(n_yields, 2 + 25);
    ck_assert_uint_ge(waits, 45000);
    ck_assert_uint_le(gate.closed_until_ns, clock_ns + SBT_YIELD_GATE_MOST_NS);
}

TEST(one_finds_out_for_all) {
    machine(4 * MS);
    give();
    give();
    clock_ns = gate.closed_until_ns - 1;
    ck_assert_uint_eq(give(), 0);
    clock_ns++;
    n_yields = 0;
    uint64_t probe = clock_ns, other = clock_ns + 10 * US;
    yield_ns = 4 * MS;
    ck_assert_uint_eq(sbt_yield_gate_pass(&gate, &probe), 4 * MS);
    ck_assert_uint_eq(sbt_yield_gate_pass(&gate, &other), 0);
    ck_assert_uint_eq(n_yields, 1);
    /* The other one has gone. */
    clock_ns = gate.closed_until_ns;
    yield_ns = 2 * US;
    ck_assert_uint_eq(give(), 2 * US);
    ck_assert(!sbt_yield_gate_closed(&gate));
    /* And is back, soon or a minute later. */
    for (int later = 0; later < 2; later++) {
        uint64_t closed = gate.closed_ns;
        clock_ns += later * UINT64_C(60000) * MS;
        yield_ns = 4 * MS;
        give();
        give();
        ck_assert_uint_eq(gate.closed_ns, later ? 16 * 4 * MS : 2 * closed);
        clock_ns = gate.closed_until_ns;
        yield_ns = 2 * US;
        give();
        ck_assert(!sbt_yield_gate_closed(&gate));
    }
}

static void two_long_yields(void) {
    uint64_t before = clock_ns, us = yield_ns;
    yield_ns = 4 * MS;
    give();
    give();
    yield_ns = us;
    clock_ns = us < MS ? before : clock_ns;
}

/* A yield that began before it was closed says nothing about now, short or long. */
TEST(only_the_probe_opens_it) {
    machine(4 * MS);
    uint64_t now = clock_ns;
    meanwhile = two_long_yields;
    yield_ns = 10 * US;
    ck_assert_uint_eq(sbt_yield_gate_pass(&gate, &now), 10 * US);
    ck_assert(sbt_yield_gate_closed(&gate));
    machine(4 * MS);
    now = clock_ns;
    meanwhile = two_long_yields;
    ck_assert_uint_ge(sbt_yield_gate_pass(&gate, &now), 4 * MS);
    ck_assert_uint_eq(gate.closed_ns, 16 * 4 * MS);
}

TEST(a_thread_that_can_only_look_again_sleeps_instead) {
    machine(1 * US);
    sbt_yield_gate_offer_or_pause(&gate);
    sbt_yield_gate_offer(&gate);
    ck_assert_uint_eq(n_yields, 2);
    ck_assert_uint_eq(n_pauses, 0);
    yield_ns = 4 * MS;
    give();
    give();
    n_yields = 0;
    sbt_yield_gate_offer_or_pause(&gate);
    ck_assert_uint_eq(n_pauses, 1);
    sbt_yield_gate_offer(&gate);
    ck_assert_uint_eq(n_pauses, 1);
    ck_assert_uint_eq(n_yields, 0);
}

/* The program asks for a yield: while yields are long the first few before a wait on a futex are left out. */
TEST(few_yields_that_were_asked_for_are_left_out_while_it_is_closed) {
    uint8_t spare = SBT_SPARE_YIELDS;
    machine(1 * US);
    sbt_yield_gate_asked(&gate, &spare);
    ck_assert_uint_eq(n_yields, 1);
    yield_ns = 4 * MS;
    give();
    give();
    ck_assert(sbt_yield_gate_closed(&gate));
    n_yields = 0;
    spare = SBT_SPARE_YIELDS;
    for (int i = 0; i < SBT_SPARE_YIELDS; i++)
        sbt_yield_gate_asked(&gate, &spare);
    ck_assert_uint_eq(n_yields, 0);
    for (int i = 0; i < 100; i++) /* it waits by yields alone */
        sbt_yield_gate_asked(&gate, &spare);
    ck_assert_uint_eq(n_yields, 100);
}

/* A loop of yields and of futex calls that do not wait is one that waits by yields alone. */
TEST(a_futex_call_that_did_not_wait_leaves_out_no_yields) {
    uint8_t spare = 0;
    sbt_yield_gate_waited(&spare, -EAGAIN);
    sbt_yield_gate_waited(&spare, -ETIMEDOUT);
    ck_assert_uint_eq(spare, 0);
    sbt_yield_gate_waited(&spare, 0);
    ck_assert_uint_eq(spare, SBT_SPARE_YIELDS);
}
