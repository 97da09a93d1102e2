/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What looks say of a thread that sleeps now and then (engine/det/nap.h). */
#include "engine/det/nap.h"
#include "lib/suite.h"

enum { MS = 1000000, PATIENCE = 200 };

static struct det_nap look(uint64_t at_ms, uint64_t cpu_ms, uint64_t queued_ms, bool is_asleep) {
    return (struct det_nap){
        .on = 17, .is_asleep = is_asleep, .at_ns = at_ms * MS, .cpu_ns = cpu_ms * MS, .queued_ns = queued_ms * MS};
}

static bool says(struct det_nap *first, struct det_nap nap) {
    return det_nap_is_wait(first, &nap, (uint64_t)PATIENCE * MS);
}

TEST(a_thread_that_sleeps_for_as_long_as_a_stall_takes_waits) {
    struct det_nap first = {0};
    ck_assert(!says(&first, look(1000, 500, 0, true)));
    ck_assert(!says(&first, look(1199, 500, 0, true)));
    ck_assert(says(&first, look(1200, 500, 0, true)));
}

TEST(a_thread_that_computes_for_longer_than_it_sleeps_does_not) {
    struct det_nap first = {0};
    for (uint64_t i = 1; i < 50; i++)
        ck_assert(!says(&first, look(100 * i, 60 * i, 0, true)));
}

TEST(nor_does_one_that_hardly_gets_a_processor) {
    struct det_nap first = {0};
    for (uint64_t i = 1; i < 50; i++)
        ck_assert(!says(&first, look(1000 * i, 60 * i, 920 * i, true)));
}

TEST(nor_one_that_has_slept_for_a_moment_only) {
    struct det_nap first = {0};
    ck_assert(!says(&first, look(1000, 500, 0, true)));
    ck_assert(!says(&first, look(1300, 510, 280, true)));
}

TEST(one_that_sleeps_again_and_again_waits_on_a_busy_machine_too) {
    struct det_nap first = {0};
    ck_assert(!says(&first, look(1000, 10, 1000, true)));
    ck_assert(!says(&first, look(1300, 11, 1240, false))); /* it has woken up, and waits for a processor */
    ck_assert(!says(&first, look(1490, 11, 1397, true)));
    ck_assert(says(&first, look(1600, 12, 1490, true)));
}

TEST(a_look_that_finds_it_computing_begins_anew) {
    struct det_nap first = {0};
    ck_assert(!says(&first, look(1000, 10, 0, true)));
    ck_assert(!says(&first, look(1100, 11, 0, false)));
    ck_assert(!says(&first, look(1250, 11, 0, true)));
    ck_assert(says(&first, look(1450, 11, 0, true)));
}

TEST(a_look_that_is_older_than_the_first_says_nothing) {
    struct det_nap first = {0};
    ck_assert(!says(&first, look(1000, 500, 0, true)));
    ck_assert(!says(&first, look(999, 500, 0, true)));
    ck_assert(!says(&first, look(1199, 500, 0, true)));
    ck_assert(says(&first, look(1200, 500, 0, true)));
}

TEST(another_kernel_thread_or_none_begins_anew) {
    struct det_nap first = {0}, other = look(1100, 0, 0, true);
    other.on = 18;
    ck_assert(!says(&first, look(1000, 500, 0, true)));
    ck_assert(!says(&first, other));
    ck_assert(!says(&first, look(1300, 500, 0, true)));
    ck_assert(!says(&first, (struct det_nap){0}));
    ck_assert(!says(&first, look(1600, 500, 0, true)));
    ck_assert(says(&first, look(1800, 500, 0, true)));
}
