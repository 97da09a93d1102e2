/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `--delegate auto` knows of mutexes, and how it tries them out (engine/direct/delegate_auto.c). The test is the
 * threads, the monitor and the clock.
 */
#include <string.h>

#include "core/log.h"
#include "engine/direct/delegate_auto.h"
#include "lib/suite.h"
#include "switch/switch.h"

enum { US = 1000, MS = 1000 * US, THREADS = 10, MANY = 600 };

static uint64_t now_ns, progress;
static struct sbt_mutex hot, warm, cold[MANY];

_Thread_local struct direct_self direct_self;

void sbt_clock_read(clockid_t clock, struct timespec *now) {
    (void)clock;
    *now = (struct timespec){(time_t)(now_ns / 1000000000u), (long)(now_ns % 1000000000u)};
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
}

/* n timed sections, each behind a wait of 1 ms. */
static void contend(struct sbt_mutex *m, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        direct_auto_begin_section(m, now_ns - MS);
        direct_auto_end_section(m);
    }
}

static void look(bool steady) {
    struct sbt_switch_look l = {.now_ns = now_ns, .progress = progress, .n_threads = THREADS, .steady = steady};
    direct_auto_look(&l);
}

static void begin(enum direct_share_how how) {
    now_ns = UINT64_C(5000000000);
    progress = 0;
    direct_auto_start(how);
    direct_auto_fork_child(); /* what other tests have left */
}

/* 2 ms of a program that gets half as much again done if both mutexes are delegated, by handing sections over. */
static void go_on(void) {
    unsigned n = direct_auto_delegates(&hot) + direct_auto_delegates(&warm);
    contend(&hot, 10);
    contend(&warm, 10);
    for (unsigned i = 0; i < 400; i++) {
        if (direct_auto_delegates(&hot))
            direct_auto_handed(&hot);
        if (direct_auto_delegates(&warm))
            direct_auto_handed(&warm);
    }
    progress += 2000 + 500 * n;
    now_ns += 2 * MS;
    look(true);
}

/* The mutexes that are not hot come again and again, and would have all places. */
TEST(a_hot_mutex_gets_a_place_in_a_full_table) {
    begin(DIRECT_SHARE_ANYWAY);
    for (unsigned i = 0; i < MANY; i++)
        contend(&cold[i], 1);
    for (unsigned round = 0; round < 12; round++) {
        contend(&hot, 100);
        for (unsigned i = 0; i < MANY; i++)
            contend(&cold[i], 1);
        look(true);
        now_ns += 100 * MS;
    }
    ck_assert(direct_auto_delegates(&hot));
    for (unsigned i = 0; i < MANY; i++)
        ck_assert(!direct_auto_delegates(&cold[i]));
}

TEST(a_mutex_that_is_delegated_keeps_its_place) {
    begin(DIRECT_SHARE_ANYWAY);
    for (unsigned round = 0; round < 3; round++, now_ns += 100 * MS) {
        contend(&hot, 100);
        look(true);
    }
    ck_assert(direct_auto_delegates(&hot));
    for (unsigned round = 0; round < 12; round++, now_ns += 100 * MS) {
        for (unsigned i = 0; i < MANY; i++)
            contend(&cold[i], 1);
        contend(&hot, 100);
        look(true);
        ck_assert(direct_auto_delegates(&hot));
    }
}

TEST(one_trial_at_a_time) {
    begin(DIRECT_SHARE_TRIED);
    unsigned n = 0;
    for (; n < 200 && direct_auto_counted().begun == 0; n++) {
        go_on();
        ck_assert(!direct_auto_delegates(&hot) || !direct_auto_delegates(&warm));
    }
    ck_assert_uint_eq(direct_auto_counted().begun, 1);
    for (uint64_t since = now_ns; now_ns - since < 240 * MS;) {
        go_on();
        ck_assert_uint_eq(direct_auto_counted().begun, 1);
    }
    for (; n < 2000 && direct_auto_counted().begun == 1; n++)
        go_on();
    ck_assert_uint_eq(direct_auto_counted().begun, 2);
    ck_assert_uint_eq(direct_auto_counted().ended, 0);
}

TEST(a_trial_is_abandoned_when_the_monitor_sleeps) {
    begin(DIRECT_SHARE_TRIED);
    for (unsigned n = 0; n < 200 && !direct_auto_delegates(&hot) && !direct_auto_delegates(&warm); n++)
        go_on();
    ck_assert(direct_auto_delegates(&hot) || direct_auto_delegates(&warm));
    look(false);
    ck_assert(!direct_auto_delegates(&hot) && !direct_auto_delegates(&warm));
    ck_assert_uint_eq(direct_auto_counted().begun, 0);
}

TEST(a_section_is_timed_once) {
    begin(DIRECT_SHARE_ANYWAY);
    direct_auto_begin_section(&hot, now_ns);
    ck_assert_uint_ne(hot.state, 0);
    ck_assert_uint_eq(direct_auto_end_section(&hot), 0);
    ck_assert_uint_eq(hot.state, 0);
}
