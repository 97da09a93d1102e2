/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What objects remember of waits (wait/adapt.c), with the test's own clock: yields switch, for 2 us. */
#include "core/clock.h"
#include "core/thread.h"
#include "hw_check.h"
#include "switch/switch.h"
#include "wait/turn.h"

#define SWITCHES 2000
#define FINDS_NOBODY 500
static uint64_t clock_ns = 1000000000, n_yields, test_yield_ns = SWITCHES;

#define sbt_now_ns() clock_ns
#define sbt_turn_give test_turn_give
static uint64_t test_turn_give(uint64_t *now_ns) {
    *now_ns = clock_ns += test_yield_ns;
    n_yields++;
    return test_yield_ns;
}
#include "wait/adapt.c"

__thread struct sbt_thread sbt_self;
uint32_t sbt_n_runnable, sbt_n_cpus;
uint64_t sbt_turn_closed_until_ns;

static bool roams, others_ready; /* a context: away from home, and another waits for its carrier */
static bool few_threads;
static int n_spread;

bool sbt_switch_spread(void) {
    n_spread++;
    return few_threads;
}

bool sbt_switch_roams(void) {
    return roams;
}

bool sbt_switch_among_carriers(void) {
    return false;
}

bool sbt_switch_others_ready(void) {
    return others_ready;
}

static struct sbt_adapt memory;

static void machine(uint32_t n_cpus) {
    spin_pauses = 0;
    sbt_n_cpus = n_cpus;
    sbt_n_runnable = 64;
    memory = (struct sbt_adapt){0};
    sbt_self.context = NULL;
    roams = others_ready = false;
}

static uint16_t last_switches; /* of the last wait */

/* Told after n yields; goes on with a wait in vain. How many it has made: 0, it parked at once. */
static uint64_t wait_on(uint32_t n, bool in_vain) {
    struct sbt_active active;
    uint64_t before = n_yields;
    sbt_active_begin(&active, &memory);
    if (in_vain)
        sbt_active_in_vain(&active, last_switches);
    while (n_yields - before < n && sbt_active_step(&active))
        ;
    sbt_active_end(&active, &memory);
    last_switches = active.switches;
    return n_yields - before;
}

static uint64_t wait_for(uint32_t n) {
    return wait_on(n, false);
}

static uint32_t n_that_yield(uint32_t n_waits, uint32_t n_yields_each) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_waits; i++)
        n += wait_for(n_yields_each) != 0;
    return n;
}

START_TEST(a_round_through_the_run_queue_is_well_spent) {
    for (uint32_t n_cpus = 1; n_cpus <= 2; n_cpus++) {
        machine(n_cpus);
        ck_assert_uint_eq(n_that_yield(1000, 1), 1000);
    }
}
END_TEST

/* Four switches a wait: with one CPU one wait of PROBE_EVERY finds out whether it still is so. */
START_TEST(alone_many_switches_are_not) {
    machine(2);
    ck_assert_uint_eq(n_that_yield(10 * PROBE_EVERY, 4), 10 * PROBE_EVERY);
    machine(1);
    n_that_yield(100, 4);
    ck_assert_uint_eq(n_that_yield(10 * PROBE_EVERY, 4), 10);
    n_that_yield(10 * PROBE_EVERY, 1); /* times change */
    ck_assert_uint_eq(n_that_yield(PROBE_EVERY, 1), PROBE_EVERY);
}
END_TEST

/* With more than one, what a wait that parked at once has not done is remembered as well: the mean keeps to the limit.
 */
START_TEST(among_others_some_still_try) {
    machine(2);
    n_that_yield(100, 9);
    uint32_t n = n_that_yield(10 * PROBE_EVERY, 9);
    ck_assert_uint_gt(n, 10 * PROBE_EVERY / 4);
    ck_assert_uint_lt(n, 10 * PROBE_EVERY);
}
END_TEST

/* How many of so many waits yield; each but every `chain`-th goes on with the last. */
static uint32_t n_in_chains(uint32_t n_waits, uint32_t chain) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_waits; i++)
        n += wait_on(1, i % chain != 0) != 0;
    return n;
}

START_TEST(waits_in_vain_are_one) {
    machine(2);
    ck_assert_uint_eq(n_in_chains(1000, 1000), 1000);
    machine(1);
    ck_assert_uint_eq(n_in_chains(1000, 4), 1000); /* 1 to 4 switches each, 2.5 in the mean */
    machine(1);
    ck_assert_uint_lt(n_in_chains(1000, 1000), 50);
    ck_assert_uint_eq(n_in_chains(10 * PROBE_EVERY, 1000), 10);
}
END_TEST

/* One wait of four is of one that is told in vain for ever: the others' are not to park for that. */
START_TEST(one_in_vain_does_not_decide) {
    machine(1);
    uint16_t of_one = 0;
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(n_that_yield(3, 1), 3);
        last_switches = of_one;
        ck_assert_uint_eq(wait_on(1, true), 1);
        of_one = last_switches;
    }
    ck_assert_uint_lt(of_one, 20);
}
END_TEST

/* Pauses before a wait's first yield, or its end. */
static uint32_t spins(bool for_a_mutex) {
    struct sbt_active active;
    uint64_t before = n_yields;
    sbt_active_begin(&active, &memory);
    if (for_a_mutex)
        sbt_active_spin(&active);
    while (sbt_active_step(&active) && n_yields == before)
        ;
    return active.spun_pauses;
}

/* Although 64 threads run, and the last waits were long. */
START_TEST(a_mutex_is_spun_for_in_any_case) {
    for (uint32_t n_cpus = 1; n_cpus <= 2; n_cpus++) {
        machine(n_cpus);
        spin_pauses = 100;
        ck_assert_uint_eq(spins(false), 0);
        ck_assert(n_cpus == 1 ? spins(true) == 0 : spins(true) >= 100);
        memory.mean_64ns = UINT16_MAX;
        ck_assert_uint_eq(spins(false), 0);
        ck_assert(n_cpus == 1 ? spins(true) == 0 : spins(true) >= 100);
    }
}
END_TEST

/* On a carrier, by whether somebody else could use the core: as many yields as a thread's, or none. */
START_TEST(a_context_waits_as_a_thread_if_nobody_else_is_ready) {
    struct sbt_active active;
    machine(2);
    sbt_n_runnable = 2;
    uint64_t of_a_thread = wait_for(1000);
    ck_assert_uint_gt(of_a_thread, 0);
    sbt_self.context = (struct sbt_context *)(void *)&memory;
    roams = true;
    ck_assert_uint_eq(wait_for(1000), of_a_thread);
    sbt_active_begin(&active, &memory);
    ck_assert(sbt_active_step(&active));
    others_ready = true;
    ck_assert(!sbt_active_step(&active));
    others_ready = false;
    ck_assert(!sbt_active_step(&active)); /* it has been decided */
    sbt_n_runnable = 3;
    ck_assert_uint_eq(wait_for(1000), 0);
}
END_TEST

/* Two share a core: each wait is over after a yield to the other, 32 in a row. The next one sleeps, and that once. */
static void make_crowded(void) {
    machine(2);
    sbt_n_runnable = 2;
    sbt_self.context = (struct sbt_context *)(void *)&memory;
    sbt_self.crowded = 0;
    roams = few_threads = true;
    n_spread = 0;
    ck_assert_uint_eq(n_that_yield(CROWDED, 1), CROWDED);
    ck_assert_int_eq(n_spread, 0);
}

START_TEST(a_context_that_shares_a_core_goes_to_an_idle_one) {
    make_crowded();
    ck_assert_uint_eq(wait_for(1), 0);
    ck_assert_int_eq(n_spread, 1);
    ck_assert_uint_eq(n_that_yield(CROWDED, 1), CROWDED);
    ck_assert_uint_eq(wait_for(1), 0);
}
END_TEST

START_TEST(not_if_some_yields_find_nobody) {
    make_crowded();
    for (int i = 0; i < 3; i++) {
        test_yield_ns = FINDS_NOBODY;
        ck_assert_uint_eq(wait_for(1), i == 0 ? 0 : 1);
        ck_assert_uint_eq(wait_for(1), 1);
        test_yield_ns = SWITCHES;
        ck_assert_uint_eq(n_that_yield(CROWDED - 1, 1), CROWDED - 1);
    }
    ck_assert_int_eq(n_spread, 1);
}
END_TEST

START_TEST(nor_among_many_threads_nor_as_a_thread) {
    make_crowded();
    few_threads = false;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 1);
    make_crowded();
    sbt_self.context = NULL;
    roams = false;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 0);
    make_crowded();
    roams = false; /* waits at home */
    sbt_n_runnable = 3;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 0);
}
END_TEST

static void tests(Suite *s) {
    TCase *c = tcase_create("memory");
    tcase_add_test(c, a_round_through_the_run_queue_is_well_spent);
    tcase_add_test(c, alone_many_switches_are_not);
    tcase_add_test(c, among_others_some_still_try);
    tcase_add_test(c, waits_in_vain_are_one);
    tcase_add_test(c, one_in_vain_does_not_decide);
    tcase_add_test(c, a_mutex_is_spun_for_in_any_case);
    tcase_add_test(c, a_context_waits_as_a_thread_if_nobody_else_is_ready);
    tcase_add_test(c, a_context_that_shares_a_core_goes_to_an_idle_one);
    tcase_add_test(c, not_if_some_yields_find_nobody);
    tcase_add_test(c, nor_among_many_threads_nor_as_a_thread);
    suite_add_tcase(s, c);
}

int main(void) {
    void (*const all[])(Suite *) = {tests, NULL};
    return run_suite("adapt", all);
}
