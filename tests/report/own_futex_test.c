/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which futexes are locks, by their histories. Values are worked out by hand. */
#include "scene.h"

enum { WORD };

/* `number`: of the wake-up, and of the wait that it ended. */
static void wait_word(uint32_t thread, double from_us, double to_us, uint64_t number, uint32_t value) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){.op = SBT_TRACE_FUTEX_WAIT,
                                  .type = SBT_TRACE_FUTEX,
                                  .object = WORD,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  .size = value});
}

static void wake(uint32_t thread, double at_us, uint64_t number, uint32_t n_woken) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){.op = SBT_TRACE_FUTEX_WAKE,
                                  .type = SBT_TRACE_FUTEX,
                                  .object = WORD,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  .size = n_woken});
}

static const struct rep_report *report_of_three(void) {
    for (uint32_t thread = 0; thread < 3; thread++)
        end(thread, 20000 + thread);
    return scene_report();
}

/*
 * Each round of 1000: thread 0 has the lock, without a call, until 300; 1 waits from 100 and has it from 310 to 600; 2
 * waits from 200 and has it from 610 to 900. `counts`: each wake-up changes the number that is waited for. `n`: how
 * many threads a wake-up ends the waits of. `giving`: the threads that wait give back. Of the last round thread 0
 * waits for 2, from 9850 to 9910, and has it until 9970.
 */
static void rounds(bool counts, uint32_t n, bool giving) {
    scene_begin();
    for (int i = 0; i < 10; i++) {
        const double at_us = 1000.0 * i;
        const uint64_t number = 3 * (uint64_t)i;
        wait_word(1, at_us + 100, at_us + 310, number + 1, counts ? (uint32_t)number : 2);
        wait_word(2, at_us + 200, at_us + 610, number + 2, counts ? (uint32_t)number : 2);
        wake(0, at_us + 300, number + 1, n);
        if (giving) {
            wake(1, at_us + 600, number + 2, n);
            wake(2, at_us + 900, number + 3, i == 9 ? n : 0);
        } else {
            wake(0, at_us + 600, number + 2, n);
        }
    }
    if (!giving)
        return;
    wait_word(0, 9850, 9910, 30, counts ? 40 : 2);
    wake(0, 9970, 31, 0);
}

/* Thread 3 never waits, and ends as many waits. */
static void rounds_of_another(void) {
    rounds(false, 1, true);
    for (uint64_t i = 0; i < 5; i++) {
        const double at_us = 10000.0 + 100 * (double)i;
        wait_word(1, at_us + 10, at_us + 50, 50 + i, 2);
        wake(3, at_us + 40, 50 + i, 1);
    }
    end(3, 20003);
}

TEST(word_that_waiters_give_back_is_a_lock) {
    rounds(false, 1, true);
    const struct rep_report *r = report_of_three();
    const struct rep_object *o = &r->objects[WORD];
    ck_assert(o->gives_back);
    ck_assert(!o->unclear);
    ck_assert_uint_eq(r->times.idle_ns, 0);
    CHECK_US(rep_contention_ns(&r->times), 10 * (210 + 410) + 60);
    CHECK_US(rep_event_waits_ns(&r->times), 0);
    ck_assert_uint_eq(o->hold_n, 21); /* those that began with a wait */
    CHECK_US(o->hold_ns, 10 * (290 + 290) + 60);
    CHECK_US(waited_for(r, 1, 0, WORD), 10 * 210);
    const struct rep_advice *a = advice_of(r, REP_HOT_LOCK);
    ck_assert_ptr_nonnull(a);
    ck_assert_uint_eq(a->object, WORD);
    scene_end();
}

/* Of thread 0's holds no call is the beginning. It had the lock at least while 1 waited: 100 to 300. The path ends in
 * 2, which had it from 1, which had it from 0. */
TEST(hold_without_a_wait_lasts_while_others_wait) {
    rounds(false, 1, true);
    const struct rep_object *o = &report_of_three()->objects[WORD];
    CHECK_US(o->unseen_ns, 10 * 200);
    ck_assert_uint_le(us_to_ns(10 * 200 + 290 + 290) - o->path.held_ns, 10);
    scene_end();
}

TEST(word_that_waiters_do_not_give_back_is_work) {
    rounds(false, 1, false);
    const struct rep_report *r = report_of_three();
    ck_assert(!r->objects[WORD].gives_back);
    ck_assert(!r->objects[WORD].unclear);
    CHECK_US(r->times.idle_ns, 10 * (200 + 400));
    CHECK_US(rep_contention_ns(&r->times), 0);
    scene_end();
}

TEST(number_that_changes_is_no_lock) {
    rounds(true, 1, true);
    const struct rep_object *o = &report_of_three()->objects[WORD];
    ck_assert(!o->gives_back);
    ck_assert(o->unclear);
    scene_end();
}

/* So it is where jobs make jobs, and the first ones come from a thread that is no worker. */
TEST(word_that_another_thread_gives_is_work) {
    rounds_of_another();
    const struct rep_object *o = &report_of_three()->objects[WORD];
    ck_assert(!o->gives_back);
    ck_assert(o->unclear);
    scene_end();
}

TEST(wake_up_for_all_is_no_lock) {
    rounds(false, 2, true);
    ck_assert(!report_of_three()->objects[WORD].gives_back);
    scene_end();
}

/* The turn goes to and fro: 1 waits for it while the word is 0, 2 while it is 1. */
TEST(turn_is_no_lock) {
    scene_begin();
    for (uint64_t i = 0; i < 10; i++) {
        wait_word(1, 1000.0 * (double)i + 10, 1000.0 * (double)i + 510, 2 * i + 2, 0);
        wake(1, 1000.0 * (double)i + 900, 2 * i + 3, 1);
        wake(2, 1000.0 * (double)i + 500, 2 * i + 2, 1);
        wait_word(2, 1000.0 * (double)i + 505, 1000.0 * (double)i + 910, 2 * i + 3, 1);
    }
    ck_assert(!report_of_three()->objects[WORD].gives_back);
    scene_end();
}

/* Readers of a mailbox wake the writer each time, which does not wait. */
TEST(wake_ups_that_find_no_thread_are_no_lock) {
    scene_begin();
    for (uint64_t i = 0; i < 20; i++) {
        uint32_t reader = 1 + (uint32_t)i % 2;
        wait_word(reader, 500.0 * (double)i + 10, 500.0 * (double)i + 310, 2 * i + 1, 0);
        wake(reader, 500.0 * (double)i + 320, 2 * i + 2, 0);
        wake(0, 500.0 * (double)i + 300, 2 * i + 1, 1);
    }
    ck_assert(!report_of_three()->objects[WORD].gives_back);
    scene_end();
}

/* A thread that was woken finds the lock taken, and waits again: it did not hold it between. */
TEST(waiter_that_did_not_get_it_has_no_hold) {
    rounds(false, 1, true);
    wait_word(1, 10010, 10100, 32, 2);
    wait_word(1, 10200, 10300, 33, 2);
    wake(1, 10400, 34, 0);
    wake(0, 10090, 32, 1);
    wake(0, 10290, 33, 1);
    const struct rep_object *o = &report_of_three()->objects[WORD];
    ck_assert(o->gives_back);
    ck_assert_uint_eq(o->hold_n, 22);
    CHECK_US(o->hold_ns, 10 * (290 + 290) + 60 + 100);
    scene_end();
}
