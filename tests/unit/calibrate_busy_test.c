/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When `subutai calibrate` takes a machine for busy. */
#include "calibrate_busy.h"
#include "command.h"
#include "lib/suite.h"

#include <stdlib.h>

void cmd_refuse(const char *format, ...) {
    (void)format;
    abort();
}

static const char text[] = "cpu  999 999 999 999 999 999 999 999 9 9\n"
                           "cpu0 100 20 30 5000 40 5 6 7 50 3\n"
                           "cpu1 200 0 0 6000 0 0 0 0 0 0\n"
                           "cpu12 1 1 1 1 1 1 1 1 1 1\n"
                           "intr 5 6\n";

static cpu_set_t set_of(int a, int b) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)a, &set);
    CPU_SET((size_t)b, &set);
    return set;
}

TEST(waiting_for_disks_is_idle_and_guests_count_once) {
    cpu_set_t cpus = set_of(0, 0);
    struct cpu_time time;
    ck_assert(cpu_time_read(text, &cpus, 100, &time));
    ck_assert_double_eq_tol(time.used, 1.61, 1e-9);
    ck_assert_double_eq_tol(time.stolen, 0.07, 1e-9);
    ck_assert_double_eq_tol(time.all, 52.08, 1e-9);
}

TEST(only_the_cpus_of_the_process_count) {
    cpu_set_t two = set_of(0, 1), far = set_of(1, 12);
    struct cpu_time time;
    ck_assert(cpu_time_read(text, &two, 100, &time));
    ck_assert_double_eq_tol(time.used, 3.61, 1e-9);
    ck_assert(cpu_time_read(text, &far, 100, &time));
    ck_assert_double_eq_tol(time.used, 2.05, 1e-9);
}

TEST(a_cpu_without_a_line_is_an_error) {
    cpu_set_t cpus = set_of(0, 3);
    struct cpu_time time;
    ck_assert(!cpu_time_read(text, &cpus, 100, &time));
    ck_assert(!cpu_time_read("", &cpus, 100, &time));
    ck_assert(!cpu_time_read("cpu0 1 2 3\ncpu3 1 2 3\n", &cpus, 100, &time));
}

TEST(own_time_is_taken_off) {
    struct cpu_time before = {10, 1, 100}, after = {25, 2, 140};
    struct busy_shares shares = busy_shares(&before, &after, 13);
    ck_assert_double_eq_tol(shares.others, 0.05, 1e-9);
    ck_assert_double_eq_tol(shares.stolen, 0.025, 1e-9);
    shares = busy_shares(&before, &after, 15.5); /* ticks counted less than there was */
    ck_assert(shares.others == 0);
    shares = busy_shares(&before, &before, 0);
    ck_assert(shares.others == 0 && shares.stolen == 0);
}

TEST(busy_is_above_the_limits) {
    ck_assert(!is_busy(&(struct busy_shares){BUSY_SHARE_MAX, STOLEN_SHARE_MAX}));
    ck_assert(is_busy(&(struct busy_shares){BUSY_SHARE_MAX + 0.001, 0}));
    ck_assert(is_busy(&(struct busy_shares){0, STOLEN_SHARE_MAX + 0.001}));
}
