/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What objects remember of waits (wait/adapt.c), with the test's own clock: yields switch, for 2 us. */
#include "core/cpus.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "switch/switch.h"
#include "wait/adapt.h"

#define SWITCHES 2000
#define FINDS_NO_THREAD 500
static uint64_t clock_ns = 1000000000, tick_ns, n_yields, test_yield_ns = SWITCHES;

static uint64_t test_now(void) {
    return clock_ns += tick_ns;
}

static void test_yield(void) {
    clock_ns += test_yield_ns;
    n_yields++;
}

static void test_pause(long ns) {
    clock_ns += (uint64_t)ns;
}

static const struct sbt_wait_ops test_ops = {test_now, test_yield, test_pause};

_Thread_local struct sbt_thread sbt_self;
uint32_t sbt_n_runnable, sbt_n_cpus, sbt_n_cpus_at_once;

static bool roams, others_runnable; /* a fiber: away from home, and another waits for its carrier */
static bool few_threads;
static int n_spread;
static uint64_t n_looks; /* at the CPUs that may be used */

void sbt_cpus_look(void) {
    n_looks++;
}

bool sbt_switch_spread(void) {
    n_spread++;
    return few_threads;
}

bool sbt_switch_weighs;

bool sbt_switch_takes_part(void) {
    return true;
}

void sbt_switch_note_waits(bool are_yields) {
    (void)are_yields;
}

void sbt_switch_tell_progress(void) {}

bool sbt_switch_roams(void) {
    return roams;
}

bool sbt_switch_among_carriers(void) {
    return false;
}

bool sbt_switch_others_runnable(void) {
    return others_runnable;
}

static struct sbt_adapt memory;

/* Where a busy-wait hint takes 1 ns, and a wait spins for so many. */
static void spin_for(uint32_t pauses) {
    tick_ns = 64;
    sbt_adapt_start(pauses + pauses / 100, 12);
    tick_ns = 0;
}

static void machine(uint32_t n_cpus) {
    sbt_wait_ops = &test_ops;
    spin_for(0);
    sbt_n_cpus = n_cpus;
    sbt_n_runnable = 64;
    memory = (struct sbt_adapt){0};
    sbt_self.fiber = NULL;
    roams = others_runnable = false;
}

static uint16_t last_switches; /* of the last wait */

/* Told after n yields; goes on with a wait in vain. How many it has made: 0, it parked at once. */
static uint64_t wait_on(uint32_t n, bool futile) {
    struct sbt_active active;
    uint64_t before = n_yields;
    sbt_active_begin(&active, &memory);
    if (futile)
        sbt_active_futile(&active, last_switches);
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

TEST(waits_that_end_by_yields_look_which_cpus_may_be_used, "no thread may ever sleep where all share one CPU") {
    machine(2);
    n_looks = 0;
    uint64_t n = wait_for(3);
    ck_assert_uint_ne(n, 0);
    ck_assert_uint_eq(n_looks, n);
}

TEST(yields_take_away_no_progress_that_was_told) {
    sbt_self.progress = sbt_self.progress_told = 7;
    sbt_progress_undo();
    ck_assert_uint_eq(sbt_self.progress, 7);
    sbt_progress();
    sbt_progress_undo();
    ck_assert_uint_eq(sbt_self.progress, 7);
    sbt_self.progress = sbt_self.progress_told = 0;
}

/* A thread arrives and then yields until the others have; it looks under a mutex, perhaps. */
TEST(yields_take_away_no_progress_that_is_sure) {
    sbt_self.progress = sbt_self.progress_told = 7;
    sbt_progress_surely();
    sbt_progress_undo();
    ck_assert_uint_eq(sbt_self.progress, 8);
    for (int i = 0; i < 3; i++) {
        sbt_progress();
        sbt_progress_undo();
        ck_assert_uint_eq(sbt_self.progress, 8);
    }
    sbt_self.progress = sbt_self.progress_told = sbt_self.progress_sure = 0;
}

/* What is undone at each yield, of mutexes that were taken before, is nothing that has been got done. */
TEST(only_the_first_yield_behind_progress_is_not_in_vain) {
    ck_assert(sbt_progress_is_vain(&sbt_self));
    for (int i = 0; i < 31; i++)
        sbt_progress();
    for (int i = 0; i < 40; i++) {
        sbt_progress_undo();
        ck_assert_int_eq(sbt_progress_is_vain(&sbt_self), i != 0);
    }
    for (int i = 0; i < 3; i++) { /* it looks under a mutex */
        sbt_progress();
        sbt_progress_undo();
        ck_assert(sbt_progress_is_vain(&sbt_self));
    }
    sbt_progress_surely();
    ck_assert(!sbt_progress_is_vain(&sbt_self));
    ck_assert(sbt_progress_is_vain(&sbt_self));
    sbt_self.progress = sbt_self.progress_sure = sbt_self.progress_yielded = 0;
}

TEST(a_round_through_the_run_queue_is_well_spent) {
    for (uint32_t n_cpus = 1; n_cpus <= 2; n_cpus++) {
        machine(n_cpus);
        ck_assert_uint_eq(n_that_yield(1000, 1), 1000);
    }
}

/* Four switches a wait: with one CPU one wait of SBT_ADAPT_PROBE_EVERY finds out whether it still is so. */
TEST(alone_many_switches_are_not) {
    machine(2);
    ck_assert_uint_eq(n_that_yield(10 * SBT_ADAPT_PROBE_EVERY, 4), 10 * SBT_ADAPT_PROBE_EVERY);
    machine(1);
    n_that_yield(100, 4);
    ck_assert_uint_eq(n_that_yield(10 * SBT_ADAPT_PROBE_EVERY, 4), 10);
    n_that_yield(10 * SBT_ADAPT_PROBE_EVERY, 1); /* times change */
    ck_assert_uint_eq(n_that_yield(SBT_ADAPT_PROBE_EVERY, 1), SBT_ADAPT_PROBE_EVERY);
}

/* With more than one, what a wait that parked at once has not done is remembered as well: the mean keeps to the limit.
 */
TEST(among_others_some_still_try) {
    machine(2);
    n_that_yield(100, 9);
    uint32_t n = n_that_yield(10 * SBT_ADAPT_PROBE_EVERY, 9);
    ck_assert_uint_gt(n, 10 * SBT_ADAPT_PROBE_EVERY / 4);
    ck_assert_uint_lt(n, 10 * SBT_ADAPT_PROBE_EVERY);
}

/* How many of so many waits yield; each but every `chain`-th goes on with the last. */
static uint32_t n_in_chains(uint32_t n_waits, uint32_t chain) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_waits; i++)
        n += wait_on(1, i % chain != 0) != 0;
    return n;
}

TEST(futile_wake_ups_are_one_wait) {
    machine(2);
    ck_assert_uint_eq(n_in_chains(1000, 1000), 1000);
    machine(1);
    ck_assert_uint_eq(n_in_chains(1000, 4), 1000); /* 1 to 4 switches each, 2.5 in the mean */
    machine(1);
    ck_assert_uint_lt(n_in_chains(1000, 1000), 50);
    ck_assert_uint_eq(n_in_chains(10 * SBT_ADAPT_PROBE_EVERY, 1000), 10);
}

/* One wait of four is of one that is told in vain for ever: the others' are not to park for that. */
TEST(one_futile_waiter_does_not_decide) {
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

/* Pauses before a wait's first yield, or its end. */
static uint32_t spins(bool for_a_mutex) {
    struct sbt_active active;
    uint64_t before = n_yields;
    sbt_active_begin(&active, &memory);
    if (for_a_mutex)
        sbt_active_force_spin(&active);
    while (sbt_active_step(&active) && n_yields == before)
        ;
    return active.spun_pauses;
}

/* Although 64 threads run, and the last waits were long. */
TEST(a_mutex_is_spun_for_in_any_case) {
    for (uint32_t n_cpus = 1; n_cpus <= 2; n_cpus++) {
        machine(n_cpus);
        spin_for(100);
        ck_assert_uint_eq(spins(false), 0);
        ck_assert(n_cpus == 1 ? spins(true) == 0 : spins(true) >= 100);
        memory.mean_64ns = UINT16_MAX;
        ck_assert_uint_eq(spins(false), 0);
        ck_assert(n_cpus == 1 ? spins(true) == 0 : spins(true) >= 100);
    }
}

/* On a carrier, by whether another fiber could use the core: as many yields as a thread's, or none. */
TEST(a_fiber_waits_as_a_thread_if_no_other_is_ready) {
    struct sbt_active active;
    machine(2);
    sbt_n_runnable = 2;
    uint64_t of_a_thread = wait_for(1000);
    ck_assert_uint_gt(of_a_thread, 0);
    sbt_self.fiber = (struct sbt_fiber *)(void *)&memory;
    roams = true;
    ck_assert_uint_eq(wait_for(1000), of_a_thread);
    sbt_active_begin(&active, &memory);
    ck_assert(sbt_active_step(&active));
    others_runnable = true;
    ck_assert(!sbt_active_step(&active));
    others_runnable = false;
    ck_assert(!sbt_active_step(&active)); /* it has been decided */
    sbt_n_runnable = 3;
    ck_assert_uint_eq(wait_for(1000), 0);
}

/* Two share a core: each wait is over after a yield to the other, 32 in a row. The next one sleeps, and that once. */
static void share_a_core(void) {
    machine(2);
    sbt_n_runnable = 2;
    sbt_self.fiber = (struct sbt_fiber *)(void *)&memory;
    roams = few_threads = true;
    test_yield_ns = FINDS_NO_THREAD; /* the last ones' yields are forgotten */
    wait_for(1);
    wait_for(1);
    test_yield_ns = SWITCHES;
    memory = (struct sbt_adapt){0};
    n_spread = 0;
    ck_assert_uint_eq(n_that_yield(SBT_SHARED_YIELDS_MOST, 1), SBT_SHARED_YIELDS_MOST);
    ck_assert_int_eq(n_spread, 0);
}

TEST(a_fiber_that_shares_a_core_goes_to_an_idle_one) {
    share_a_core();
    ck_assert_uint_eq(wait_for(1), 0);
    ck_assert_int_eq(n_spread, 1);
    ck_assert_uint_eq(n_that_yield(SBT_SHARED_YIELDS_MOST, 1), SBT_SHARED_YIELDS_MOST);
    ck_assert_uint_eq(wait_for(1), 0);
}

TEST(not_if_some_yields_find_no_thread) {
    share_a_core();
    for (int i = 0; i < 3; i++) {
        test_yield_ns = FINDS_NO_THREAD;
        ck_assert_uint_eq(wait_for(1), i == 0 ? 0 : 1);
        ck_assert_uint_eq(wait_for(1), 1);
        test_yield_ns = SWITCHES;
        ck_assert_uint_eq(n_that_yield(SBT_SHARED_YIELDS_MOST - 1, 1), SBT_SHARED_YIELDS_MOST - 1);
    }
    ck_assert_int_eq(n_spread, 1);
}

TEST(nor_among_many_threads_nor_as_a_thread) {
    share_a_core();
    few_threads = false;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 1);
    share_a_core();
    sbt_self.fiber = NULL;
    roams = false;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 0);
    share_a_core();
    roams = false; /* waits at home */
    sbt_n_runnable = 3;
    ck_assert_uint_eq(wait_for(1), 1);
    ck_assert_int_eq(n_spread, 0);
}

static struct sbt_spared spared;
static uint32_t n_not_sure; /* looks behind which a yield may not be in vain */

/* Looks in vain until the next yield, that one included; at most 10000. */
static uint32_t looks_to_yield(void) {
    uint64_t before = n_yields;
    uint32_t n = 0;
    do
        n_not_sure += sbt_spared_yield(&spared);
    while (++n < 10000 && n_yields == before);
    return n;
}

static void begin_to_look(void) {
    machine(2);
    spared = (struct sbt_spared){0};
    n_not_sure = 0;
    test_yield_ns = FINDS_NO_THREAD;
    wait_for(1); /* it is known how long such a yield takes */
}

TEST(looks_behind_yields_in_vain_go_without_ever_longer) {
    begin_to_look();
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(looks_to_yield(), 1);
    for (uint32_t i = 1; i <= 512; i *= 2)
        ck_assert_uint_eq(looks_to_yield(), i + 1);
    ck_assert_uint_eq(looks_to_yield(), 513);
    ck_assert_uint_eq(n_not_sure, 1);
}

TEST(until_one_gives_the_core_to_another_thread) {
    begin_to_look();
    for (int i = 0; i < 6; i++)
        looks_to_yield();
    test_yield_ns = SWITCHES;
    ck_assert_uint_eq(looks_to_yield(), 17);
    for (int i = 0; i < 5; i++) {
        ck_assert(sbt_spared_yield(&spared));
        ck_assert_uint_eq(looks_to_yield(), 1);
    }
    ck_assert_uint_eq(n_not_sure, 1 + 1 + 5);
    test_yield_ns = FINDS_NO_THREAD;
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(looks_to_yield(), 1);
    ck_assert_uint_eq(looks_to_yield(), 2);
    ck_assert_uint_eq(n_not_sure, 1 + 1 + 5 + 1);
}

TEST(or_until_another_thread_gives_its_core_away) {
    struct sbt_spared other = {0};
    begin_to_look();
    for (int i = 0; i < 6; i++)
        looks_to_yield();
    test_yield_ns = SWITCHES;
    ck_assert(sbt_spared_yield(&other));
    test_yield_ns = FINDS_NO_THREAD;
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(looks_to_yield(), 1);
    ck_assert_uint_eq(looks_to_yield(), 2);
}

TEST(under_a_quota_a_long_yield_is_as_one_in_vain) {
    begin_to_look();
    sbt_n_cpus_at_once = 4;
    sbt_yield_gate = (struct sbt_yield_gate){0};
    for (uint32_t i = 1; i <= 8; i *= 2) {
        for (int j = 0; i == 1 && j < 2; j++)
            ck_assert_uint_eq(looks_to_yield(), 1);
        test_yield_ns = 50000000; /* the quota is used up */
        ck_assert_uint_eq(looks_to_yield(), i + 1);
        test_yield_ns = FINDS_NO_THREAD;
    }
    ck_assert(!sbt_yield_gate_closed(&sbt_yield_gate));
    ck_assert_uint_eq(n_not_sure, 1);
    test_yield_ns = SWITCHES;
    looks_to_yield();
    ck_assert_uint_eq(n_not_sure, 2);
    sbt_n_cpus_at_once = 0;
}

TEST(where_yields_do_not_pay_it_sleeps_for_a_moment) {
    begin_to_look();
    sbt_yield_gate.closed_until_ns = clock_ns + 1000000;
    sbt_yield_gate.closed_ns = 1000000;
    uint64_t before = n_yields, begin = clock_ns;
    for (int i = 0; i < 5; i++)
        ck_assert(sbt_spared_yield(&spared));
    ck_assert_uint_eq(n_yields, before);
    ck_assert_uint_eq(clock_ns - begin, 5 * SBT_YIELD_GATE_PAUSE_NS);
    sbt_yield_gate = (struct sbt_yield_gate){0};
}
