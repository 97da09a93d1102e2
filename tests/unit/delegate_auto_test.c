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
static struct sbt_mutex row[5] __attribute__((aligned(256))); /* by address the first and the third are one server's */

uint32_t sbt_switch_servers;

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
            direct_auto_handed(&hot, false);
        if (direct_auto_delegates(&warm))
            direct_auto_handed(&warm, false);
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

static unsigned n_timed_of(unsigned n) {
    unsigned n_timed = 0;
    for (unsigned i = 0; i < n; i++)
        n_timed += direct_auto_begin_wait() != 0;
    return n_timed;
}

TEST(locks_are_timed_while_the_monitor_looks_at_switched_threads) {
    begin(DIRECT_SHARE_TRIED);
    ck_assert_uint_eq(n_timed_of(100 * DIRECT_SHARE_EVERY), 0);
    look(false);
    ck_assert_uint_eq(n_timed_of(100 * DIRECT_SHARE_EVERY), 0);
    look(true);
    ck_assert_uint_eq(n_timed_of(100 * DIRECT_SHARE_EVERY), 100);
    look(false);
    ck_assert_uint_eq(n_timed_of(100 * DIRECT_SHARE_EVERY), 0);
    look(true);
    direct_auto_fork_child();
    ck_assert_uint_eq(n_timed_of(100 * DIRECT_SHARE_EVERY), 0);
}

TEST(a_section_is_timed_once) {
    begin(DIRECT_SHARE_ANYWAY);
    direct_auto_begin_section(&hot, now_ns);
    ck_assert_uint_ne(hot.state, 0);
    ck_assert_uint_eq(direct_auto_end_section(&hot), 0);
    ck_assert_uint_eq(hot.state, 0);
}

/* ---- servers ---- */

/* 20 ms in which both are hot, with so many sections handed over, all of them behind the other's or none. */
static void serve(struct sbt_mutex *a, struct sbt_mutex *b, unsigned n, bool behind) {
    contend(a, 100);
    contend(b, 100);
    for (unsigned i = 0; i < n; i++) {
        direct_auto_handed(a, behind);
        direct_auto_handed(b, behind);
    }
    now_ns += 20 * MS;
    look(true);
}

static bool are_apart(void) {
    return direct_auto_server(&row[0]) != direct_auto_server(&row[2]);
}

static void begin_with_servers(enum direct_share_how how) {
    sbt_switch_servers = 2;
    begin(how);
    ck_assert(!are_apart());
    ck_assert_uint_ne(direct_auto_server(&row[0]), direct_auto_server(&row[1]));
}

TEST(mutexes_in_each_others_way_get_two_servers) {
    begin_with_servers(DIRECT_SHARE_ANYWAY);
    unsigned n = 0;
    for (; n < 100 && !are_apart(); n++)
        serve(&row[0], &row[2], 100, true);
    ck_assert(are_apart());
    ck_assert_uint_ge(n, 5); /* a round is 100 ms */
    ck_assert_uint_eq(direct_auto_counted().moved, 1);
    for (n = 0; n < 100; n++)
        serve(&row[0], &row[2], 100, true); /* by a third one, say: there is no better place */
    ck_assert(are_apart());
    ck_assert_uint_eq(direct_auto_counted().moved, 1);
    for (n = 0; n < 2; n++) /* forgotten, as a mutex that has gone: the next one at its address begins anew */
        direct_auto_fork_child();
    ck_assert(!are_apart());
    sbt_switch_servers = 0;
}

TEST(no_move_without_need) {
    begin_with_servers(DIRECT_SHARE_ANYWAY);
    for (unsigned n = 0; n < 100; n++)
        serve(&row[0], &row[2], 100, false); /* not behind others */
    ck_assert(!are_apart());
    look(false);
    for (unsigned n = 0; n < 400; n++)
        serve(&row[0], &row[2], n % 2, true); /* few in 2 s */
    ck_assert(!are_apart());
    for (unsigned n = 0; n < 100; n++) { /* a round does not last over a sleep of the monitor */
        look(false);
        serve(&row[0], &row[2], 1000, true);
    }
    ck_assert(!are_apart());
    ck_assert_uint_eq(direct_auto_counted().moved, 0);
    sbt_switch_servers = 0;
}

/* Beside other programs, say. */
TEST(a_round_with_few_sections_goes_on) {
    begin_with_servers(DIRECT_SHARE_ANYWAY);
    for (unsigned n = 0; n < 100 && !are_apart(); n++)
        serve(&row[0], &row[2], 2, true);
    ck_assert(are_apart());
    sbt_switch_servers = 0;
}

/* 20 ms of two mutexes at one server, and of one at the other that has long sections; sometimes none of it is timed. */
static void serve_beside(bool is_timed) {
    for (unsigned i = 0; i < 100; i++)
        for (unsigned k = 0; k < 3; k++) {
            if (k == 1 && !is_timed)
                continue;
            direct_auto_begin_section(&row[k], now_ns - MS);
            now_ns += k == 1 ? 100 * US : 20 * US;
            direct_auto_end_section(&row[k]);
            now_ns -= k == 1 ? 100 * US : 20 * US;
        }
    for (unsigned i = 0; i < 300; i++)
        direct_auto_handed(&row[i % 3], i % 3 != 1);
    now_ns += 20 * MS;
    look(true);
}

TEST(a_server_is_not_empty_because_nothing_was_timed) {
    begin_with_servers(DIRECT_SHARE_ANYWAY);
    for (unsigned n = 0; n < 96; n++)
        serve_beside(n / 6 % 2 == 0); /* a round is 100 ms: in some nothing is timed */
    ck_assert(direct_auto_delegates(&row[1]));
    ck_assert(!are_apart());
    ck_assert_uint_eq(direct_auto_counted().moved, 0);
    sbt_switch_servers = 0;
}

/* 2 ms in which two mutexes pay; others are as hot, and do not. Is one of these delegated? */
static bool pay(unsigned n_handed, bool behind, bool any_others) {
    unsigned gain = 0, loss = 0;
    for (unsigned i = 0; i < 12 && any_others; i++) {
        contend(&cold[i], 20);
        loss += direct_auto_delegates(&cold[i]);
    }
    for (unsigned i = 0; i < 3; i += 2) {
        contend(&row[i], 20);
        gain += direct_auto_delegates(&row[i]);
        for (unsigned k = 0; k < n_handed && direct_auto_delegates(&row[i]); k++)
            direct_auto_handed(&row[i], behind);
    }
    progress += (1000 + 200 * gain) / (1 + loss);
    now_ns += 2 * MS;
    look(true);
    return loss != 0;
}

/* Two mutexes pay, so they are seldom tried out any more. Then few of their sections are handed over in each gap. */
TEST(a_round_of_servers_goes_on_after_a_trial) {
    begin_with_servers(DIRECT_SHARE_TRIED);
    for (unsigned n = 0; n < 5000; n++)
        pay(100, false, false);
    ck_assert(direct_auto_delegates(&row[0]) && direct_auto_delegates(&row[2]));
    bool any_tried = false;
    for (unsigned n = 0; n < 1000 && !are_apart(); n++)
        any_tried = pay(n % 10 == 0, true, true) || any_tried;
    ck_assert(any_tried);
    ck_assert(are_apart());
    ck_assert_uint_eq(direct_auto_counted().moved, 1);
    sbt_switch_servers = 0;
}

TEST(one_server_has_all) {
    sbt_switch_servers = 1;
    begin(DIRECT_SHARE_ANYWAY);
    for (unsigned n = 0; n < 100; n++)
        serve(&row[0], &row[2], 100, true);
    ck_assert_uint_eq(direct_auto_counted().moved, 0);
    ck_assert_uint_eq(direct_auto_server(&row[0]), 0);
    sbt_switch_servers = 0;
}

/* One of three has sections as long as the two others together: it moves, and these stay where they are. */
TEST(time_in_sections_is_the_load) {
    begin_with_servers(DIRECT_SHARE_ANYWAY);
    for (unsigned n = 0; n < 100 && direct_auto_counted().moved == 0; n++) {
        for (unsigned i = 0; i < 100; i++)
            for (unsigned k = 0; k < 5; k += 2) {
                direct_auto_begin_section(&row[k], now_ns - MS);
                now_ns += k == 4 ? 200 * US : 100 * US;
                direct_auto_end_section(&row[k]);
                direct_auto_handed(&row[k], true);
            }
        look(true);
    }
    ck_assert(!are_apart());
    ck_assert_uint_ne(direct_auto_server(&row[2]), direct_auto_server(&row[4]));
    sbt_switch_servers = 0;
}

TEST(by_turns_each_delegation_moves) {
    sbt_switch_servers = 3;
    begin(DIRECT_SHARE_BY_TURNS);
    contend(&row[0], 1);
    for (uint32_t n = 0, server = direct_auto_server(&row[0]); n < 10; n++) {
        for (unsigned k = 0; k < 2; k++) { /* delegated, and not any more */
            look(true);
            ck_assert_uint_eq(direct_auto_server(&row[0]), (server + n + 1) % 3);
        }
    }
    sbt_switch_servers = 0;
}
