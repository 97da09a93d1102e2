/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* LBDR's budgets (engine/det/lbdr.h), computed by hand from the paper's Fig. 4. */
#include <stdlib.h>

#include "engine/det/lbdr.h"
#include "lib/suite.h"

enum { LOAD = 0x1000, SEGMENT = 0x2000, EXTRACT = 0x3000 }; /* start routines */

static struct turn *t;
static struct lbdr *l;

/* Thread 0 is the main one; thread i + 1 has the routine i. */
static void with_threads(uint32_t n, const uintptr_t *routines) {
    t = calloc(1, sizeof *t);
    l = calloc(1, sizeof *l);
    ck_assert_ptr_nonnull(t);
    ck_assert_ptr_nonnull(l);
    turn_begin(t, 0);
    lbdr_begin(l);
    for (uint32_t i = 0; i < n; i++)
        lbdr_create(l, turn_create(t), routines[i]);
}

static void end(void) {
    free(t);
    free(l);
}

static void count(uint32_t i, int times, uint64_t weight) {
    while (times-- > 0)
        lbdr_count(l, i, weight);
}

static void leave_round(uint32_t i) {
    turn_expel(t, i);
}

TEST(lbdr_start__budget_is_all_turns_by_own_turns,
     "Fig. 4, lines 4 to 10: (90 + 10) / 10; the main thread is outside") {
    with_threads(2, (uintptr_t[]){LOAD, SEGMENT});
    leave_round(0);
    count(0, 1000, 1);
    count(1, 90, 1);
    count(2, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 1, t), 10);
    lbdr_end(l, 2, false);
    ck_assert_uint_eq(lbdr_start(l, 1, 0, 1, t), 1); /* 100 / 90, in whole turns */
    end();
}

TEST(lbdr_start__alone_and_without_turns) {
    with_threads(0, NULL);
    ck_assert_uint_eq(lbdr_start(l, 0, 0, 1, t), 1);
    lbdr_end(l, 0, true);
    count(0, 7, 1);
    ck_assert_uint_eq(lbdr_start(l, 0, 0, 1, t), 1);
    end();
}

TEST(lbdr_end__a_small_budget_grows_by_a_tenth,
     "lines 15 to 17: 10, then 10 + 1, then 10 + 1 + 1.1; the other thread has done less than the section weighs") {
    static const uint64_t expected[] = {10, 11, 12, 13, 14, 16, 17}; /* 10 * 1.1 ^ n */
    with_threads(2, (uintptr_t[]){LOAD, SEGMENT});
    leave_round(0);
    count(1, 90, 1);
    count(2, 10, 1);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), expected[i]);
        l->thread[1].work += 99; /* without a turn, so that line 10 stays as it is */
        lbdr_end(l, 2, true);
    }
    end();
}

TEST(lbdr_end__not_small_if_another_thread_has_done_as_much) {
    with_threads(3, (uintptr_t[]){LOAD, SEGMENT, SEGMENT});
    leave_round(0);
    count(1, 80, 1);
    count(2, 10, 1);
    count(3, 10, 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 10);
        l->thread[1].work += 1;
        l->thread[3].work += 100;
        lbdr_end(l, 2, true);
    }
    end();
}

TEST(lbdr_end__what_the_thread_itself_and_blocked_threads_have_done_does_not_count) {
    with_threads(3, (uintptr_t[]){LOAD, SEGMENT, EXTRACT});
    leave_round(0);
    leave_round(3);
    count(1, 90, 1);
    count(2, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 10);
    turn_return(t, 3); /* meanwhile; it was not active at the start */
    l->thread[2].work += 1000;
    l->thread[3].work += 1000;
    lbdr_end(l, 2, true);
    leave_round(3);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 11);
    end();
}

TEST(lbdr_end__not_small_if_the_section_was_over_early) {
    with_threads(2, (uintptr_t[]){LOAD, SEGMENT});
    leave_round(0);
    count(1, 90, 1);
    count(2, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 10);
    lbdr_end(l, 2, false);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 10);
    end();
}

TEST(lbdr_start__supplement_is_that_of_the_hint_and_of_the_set_of_active_stages) {
    with_threads(3, (uintptr_t[]){LOAD, SEGMENT, LOAD});
    leave_round(0);
    leave_round(3);
    count(1, 90, 1);
    count(2, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 5, 100, t), 10);
    lbdr_end(l, 2, true);
    ck_assert_uint_eq(lbdr_start(l, 2, 6, 100, t), 10); /* another hint */
    lbdr_end(l, 2, false);
    turn_return(t, 3);
    ck_assert_uint_eq(lbdr_start(l, 2, 5, 100, t), 11); /* one more thread, and the same set */
    lbdr_end(l, 2, false);
    turn_return(t, 0);
    ck_assert_uint_eq(lbdr_start(l, 2, 5, 100, t), 10); /* the main thread is a stage of its own */
    lbdr_end(l, 2, false);
    leave_round(0);
    leave_round(1);
    ck_assert_uint_eq(lbdr_start(l, 2, 5, 100, t), 2); /* 10 / 10, and a tenth of 10: thread 3 has the other's stage */
    end();
}

TEST(lbdr_start__two_sections_at_a_time_are_measured_apart) {
    with_threads(3, (uintptr_t[]){LOAD, SEGMENT, SEGMENT});
    leave_round(0);
    count(1, 80, 1);
    count(2, 10, 1);
    count(3, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 50, t), 10);
    leave_round(2);
    l->thread[1].work += 49;
    ck_assert_uint_eq(lbdr_start(l, 3, 1, 50, t), 9); /* (80 + 10) / 10: a thread in a section is not active */
    leave_round(3);
    l->thread[1].work += 2;
    lbdr_end(l, 2, true); /* 51: not small */
    turn_return(t, 2);
    lbdr_end(l, 3, true); /* 2: small */
    turn_return(t, 3);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 50, t), 10);
    lbdr_end(l, 2, false);
    turn_expel(t, 2);
    ck_assert_uint_eq(lbdr_start(l, 3, 1, 50, t), 9); /* 9.9 */
    lbdr_end(l, 3, true);
    ck_assert_uint_eq(lbdr_start(l, 3, 1, 50, t), 10); /* 9 + 0.9 + 0.99 */
    end();
}

TEST(lbdr_start__more_sections_than_are_measured) {
    uintptr_t routines[LBDR_SECTIONS + 2];
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        routines[i] = SEGMENT;
    with_threads(LBDR_SECTIONS + 2, routines);
    leave_round(0);
    for (uint32_t i = 1; i <= LBDR_SECTIONS + 1; i++) {
        lbdr_count(l, i, 1);
        lbdr_start(l, i, i, 1, t);
    }
    ck_assert_uint_eq(l->thread[LBDR_SECTIONS].measured, LBDR_SECTIONS);
    ck_assert_uint_eq(l->thread[LBDR_SECTIONS + 1].measured, 0);
    lbdr_end(l, LBDR_SECTIONS + 1, true);
    lbdr_end(l, 3, true);
    lbdr_start(l, LBDR_SECTIONS + 2, 0, 1, t);
    ck_assert_uint_eq(l->thread[LBDR_SECTIONS + 2].measured, 3);
    end();
}

TEST(lbdr_create__a_number_that_is_used_again_begins_with_no_turns_and_can_take_part_in_a_section) {
    with_threads(2, (uintptr_t[]){LOAD, SEGMENT});
    leave_round(0);
    count(1, 90, 1);
    count(2, 10, 1);
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 100, t), 10);
    lbdr_create(l, 1, EXTRACT);
    lbdr_count(l, 1, 100);
    lbdr_end(l, 2, true);                            /* not small */
    ck_assert_uint_eq(lbdr_start(l, 2, 0, 1, t), 1); /* (1 + 10) / 10 */
    end();
}

TEST(lbdr_start__a_budget_has_a_limit) {
    with_threads(1, (uintptr_t[]){LOAD});
    count(0, 1, 1);
    l->thread[1].clock = UINT64_C(1) << 40;
    ck_assert_uint_eq(lbdr_start(l, 0, 0, 1000, t), LBDR_MOST / LBDR_UNIT);
    for (int i = 0; i < 20; i++) {
        lbdr_end(l, 0, true);
        ck_assert_uint_eq(lbdr_start(l, 0, 0, 1000, t), LBDR_MOST / LBDR_UNIT);
    }
    end();
}

TEST(lbdr_create__more_start_routines_than_stages) {
    uintptr_t routines[LBDR_STAGES + 3];
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        routines[i] = i + 1;
    with_threads(LBDR_STAGES + 3, routines);
    ck_assert_uint_eq(l->thread[0].stage, 0);
    ck_assert_uint_eq(l->thread[1].stage, 1);
    ck_assert_uint_eq(l->thread[LBDR_STAGES - 1].stage, LBDR_STAGES - 1);
    ck_assert_uint_eq(l->thread[LBDR_STAGES + 3].stage, LBDR_STAGES - 1);
    ck_assert_uint_eq(l->n_stages, LBDR_STAGES);
    end();
}
