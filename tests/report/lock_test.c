/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks in the report: waits, holds, hand-overs, convoys, polling, the order of locks. Values are worked out by hand.
 */
#include <errno.h>

#include "scene.h"

/* Thread 0 holds the mutex from 100 to 1100; thread 1 asks at 300 and gets it at 1150. */
TEST(wait_hold_and_handover) {
    scene_begin();
    lock(0, 99.9, 100, 0, 1, 1);
    unlock(0, 1100, 0);
    end(0, 1200);
    lock(1, 300, 1150, 0, 2, 2);
    unlock(1, 1250, 0);
    end(1, 1300);
    const struct rep_report *r = scene_report();
    const struct rep_object *o = &r->objects[0];
    const struct rep_detail *d = &r->details[o->detail];
    ck_assert_uint_eq(o->n, 2);
    ck_assert_uint_eq(o->n_contended, 1);
    CHECK_US(o->wait_ns, 850);
    CHECK_US(o->wait_max_ns, 850);
    CHECK_US(o->hold_ns, 1000 + 100);
    CHECK_US(o->hold_max_ns, 1000);
    CHECK_US(o->hold_work_ns, 1000 + 100);
    CHECK_US(o->handover_ns, 50);
    CHECK_US(waited_for(r, 1, 0, 0), 850);
    ck_assert_uint_eq(o->made, 1);
    ck_assert_uint_eq(d->n_sites, 2);
    CHECK_US(r->threads[1].times.waiting[REP_MUTEX].ns, 850);
    CHECK_US(r->threads[1].times.sections.ns, 1250.1 - 300);
    CHECK_US(r->threads[1].times.sections.held_ns, 100);
    CHECK_US(r->threads[0].times.sections.ns, 1100.1 - 99.9);
    CHECK_US(r->wall_ns, 1300);
    /* From the end: thread 1 back to the release at 1100, then thread 0 from its beginning. */
    ck_assert_uint_eq(r->path.n_segments, 2);
    ck_assert_uint_eq(r->path.segments[0].thread, 0);
    CHECK_US(r->path.segments[0].to_ns, 1100);
    ck_assert_uint_eq(r->path.segments[1].thread, 1);
    CHECK_US(r->path.ns, 1300);
    CHECK_US(o->path.held_ns, 1000 + 100);
    CHECK_US(o->path.wakeup_ns, 50);
    CHECK_US(r->path.work_ns, 99.9 + 49.9);
    CHECK_US(r->path.calls_ns, 0.1 + 0.1);
    ck_assert_ptr_null(advice_of(r, REP_HOT_LOCK)); /* one wait is no reason */
    scene_end();
}

/* 2 waits from 150 to 620 while 0 holds until 300 and 1 from 310 to 600: each gets its part, up to the next hold. */
TEST(wait_is_shared_among_holders) {
    scene_begin();
    /* A wait before, since past holds are kept from then on. */
    lock(0, 9.9, 10, 0, 1, 1);
    unlock(0, 20, 0);
    lock(1, 15, 25, 0, 2, 1);
    unlock(1, 30, 0);
    lock(0, 99.9, 100, 0, 3, 1);
    unlock(0, 300, 0);
    lock(1, 120, 310, 0, 4, 1);
    unlock(1, 600, 0);
    lock(2, 150, 620, 0, 5, 1);
    unlock(2, 700, 0);
    end(0, 301), end(1, 601), end(2, 701);
    const struct rep_report *r = scene_report();
    CHECK_US(waited_for(r, 2, 0, 0), 310 - 150);
    CHECK_US(waited_for(r, 2, 1, 0), 620 - 310);
    CHECK_US(waited_for(r, 1, 0, 0), 10 + 190);
    scene_end();
}

TEST(preempted_call_of_a_free_lock_is_no_wait) {
    scene_begin();
    lock(0, 100, 5100, 0, 1, 1);
    unlock(0, 5200, 0);
    end(0, 5300);
    lock(1, 6000, 6000.1, 0, 2, 1);
    unlock(1, 6100, 0);
    end(1, 6200);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->objects[0].n_contended, 0);
    CHECK_US(r->threads[0].times.calls_ns, 5000 + 0.1);
    scene_end();
}

TEST(call_after_the_release_is_no_wait) {
    scene_begin();
    lock(0, 99.9, 100, 0, 1, 1);
    unlock(0, 600, 0);
    end(0, 700);
    lock(1, 601, 651, 0, 2, 1); /* preempted for 50 us */
    unlock(1, 660, 0);
    end(1, 700);
    ck_assert_uint_eq(scene_report()->objects[0].n_contended, 0);
    scene_end();
}

/* The call that gets the lock ends at the moment at which the unlock begins. */
TEST(release_comes_before_the_acquisition_of_the_same_time) {
    scene_begin();
    lock(1, 99.9, 100, 0, 1, 1);
    unlock(1, 500, 0);
    end(1, 700);
    lock(0, 499.5, 500, 0, 2, 1);
    unlock(0, 550, 0);
    end(0, 700);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->objects[0].n_contended, 1);
    CHECK_US(waited_for(r, 0, 1, 0), 0.5);
    scene_end();
}

/* By thread 1's clock the lock is got 0.3 us before thread 0's unlock begins. */
TEST(clocks_that_differ_by_less_than_a_microsecond_change_nothing) {
    scene_begin();
    lock(0, 99.9, 100, 0, 1, 1);
    unlock(0, 500, 0);
    end(0, 600);
    lock(1, 200, 499.7, 0, 2, 1);
    unlock(1, 550, 0);
    end(1, 650);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->objects[0].n_contended, 1);
    CHECK_US(waited_for(r, 1, 0, 0), 299.7);
    CHECK_US(r->objects[0].hold_ns, 400 + 50.3);
    scene_end();
}

TEST(sections_within_sections_count_once) {
    scene_begin();
    lock(0, 10, 10.1, 0, 1, 1);
    lock(0, 20, 20.1, 1, 1, 1);
    unlock(0, 50, 1);
    unlock(0, 100, 0);
    end(0, 200);
    end(1, 200);
    const struct rep_report *r = scene_report();
    CHECK_US(r->threads[0].times.sections.ns, 100.1 - 10);
    CHECK_US(r->threads[0].times.sections.held_ns, 100 - 10.1);
    CHECK_US(r->objects[1].section_ns, 50.1 - 20);
    scene_end();
}

/* Three threads, five acquisitions each; a hold of 2 us, a hand-over of 10. */
TEST(convoy) {
    double at = 102;
    scene_begin();
    lock(0, 1.9, 2, 0, 1, 1);
    unlock(0, 100, 0);
    for (uint64_t n = 2; n <= 16; n++, at += 12) {
        uint32_t thread = 1 + (uint32_t)(n % 3);
        double asks = n <= 4 ? 10 : scene.ended_us[thread] + 0.5;
        lock(thread, asks, at + 8, 0, n, 1);
        unlock(thread, at + 10, 0);
    }
    end(0, 150), end(1, at), end(2, at + 1), end(3, at); /* 2 had the lock last */
    const struct rep_report *r = scene_report();
    const struct rep_convoys *c = &r->details[r->objects[0].detail].convoys;
    ck_assert_uint_eq(c->n, 1);
    ck_assert_uint_eq(c->n_acquisitions, 15);
    ck_assert_uint_eq(c->n_threads, 3);
    CHECK_US(c->held_ns, 14 * 2);
    CHECK_US(c->handover_ns, 10 + 14 * 10);
    const struct rep_advice *a = &r->advice[0];
    ck_assert_int_eq(a->cause, REP_CONVOY);
    ck_assert_uint_eq(a->object, 0);
    CHECK_US((uint64_t)a->gain_ns, 15 * 10);
    scene_end();
}

/* Two threads in turn: each waits each time, and it is no convoy. */
TEST(two_threads_are_no_convoy) {
    double at = 100;
    scene_begin();
    lock(0, 1.9, 2, 0, 1, 1);
    unlock(0, 98, 0);
    for (uint64_t n = 2; n <= 20; n++, at += 10) {
        uint32_t thread = 1 + (uint32_t)(n % 2);
        lock(thread, n <= 3 ? 10 : scene.ended_us[thread] + 0.5, at, 0, n, 1);
        unlock(thread, at + 9, 0);
    }
    end(0, at), end(1, at), end(2, at);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->details[r->objects[0].detail].convoys.n, 0);
    ck_assert_int_eq(r->advice[0].cause, REP_HOT_LOCK);
    scene_end();
}

TEST(lock_held_while_its_thread_sleeps) {
    double at = 10;
    scene_begin();
    for (uint64_t n = 1; n <= 8; n++, at += 1000) {
        uint32_t thread = (uint32_t)(n % 2);
        lock(thread, n <= 2 ? 5 : scene.ended_us[thread] + 1, at, 0, n, 7);
        sleeps(900);
        unlock(thread, at + 980, 0);
    }
    end(0, at), end(1, at);
    const struct rep_report *r = scene_report();
    const struct rep_object *o = &r->objects[0];
    CHECK_US(o->hold_ns, 8 * 980);
    CHECK_US(o->hold_work_ns, 8 * 80);
    ck_assert_int_eq(r->advice[0].cause, REP_LOCK_OVER_IO);
    ck_assert_uint_eq(r->advice[0].site, 7);
    ck_assert(r->advice[0].value > 0.918 && r->advice[0].value < 0.919);
    scene_end();
}

/* So many holds of 980 us in turn, of which the thread sleeps in the first ones; then short ones without a wait. */
static bool is_held_over_io(uint64_t n_asleep, uint64_t n_working, uint64_t n_short) {
    double at = 10;
    uint64_t n = 1;
    scene_begin();
    for (; n <= n_asleep + n_working; n++, at += 1000) {
        uint32_t thread = (uint32_t)(n % 2);
        lock(thread, n <= 2 ? 5 : scene.ended_us[thread] + 1, at, 0, n, 7);
        sleeps(n <= n_asleep ? 900 : 0);
        unlock(thread, at + 980, 0);
    }
    for (; n <= n_asleep + n_working + n_short; n++, at += 2) {
        lock(0, at, at + 0.1, 0, n, 7);
        unlock(0, at + 1, 0);
    }
    end(0, at), end(1, at);
    const struct rep_report *r = scene_report();
    bool over_io = false;
    ck_assert_uint_gt(r->n_advice, 0);
    for (unsigned i = 0; i < r->n_advice; i++)
        over_io |= r->advice[i].cause == REP_LOCK_OVER_IO;
    scene_end();
    return over_io;
}

TEST(few_holds_off_the_processor_are_no_sleep_in_a_section, "less than half of the time, or 1 in 20") {
    ck_assert(is_held_over_io(3, 1, 0));
    ck_assert(!is_held_over_io(8, 8, 0));
    ck_assert(is_held_over_io(8, 0, 100));
    ck_assert(!is_held_over_io(8, 0, 200));
}

/* Failed trylocks from 100 on, every 10 us, and the lock at 200, which was given back at 195. */
TEST(polling_is_a_wait) {
    scene_begin();
    lock(0, 49.9, 50, 0, 1, 1);
    unlock(0, 195, 0);
    end(0, 400);
    for (int i = 0; i < 10; i++)
        trylock(1, 100 + 10 * i, 0, 0, EBUSY);
    trylock(1, 200, 0, 2, 0);
    unlock(1, 300, 0);
    end(1, 400);
    const struct rep_report *r = scene_report();
    const struct rep_object *o = &r->objects[0];
    ck_assert_uint_eq(o->polls, 10);
    ck_assert_uint_eq(o->n_failed, 10);
    CHECK_US(r->threads[1].times.waiting[REP_SPIN].ns, 200.1 - 100);
    CHECK_US(waited_for(r, 1, 0, 0), 200.1 - 100);
    CHECK_US(o->poll_ns, 100 - 10 * 0.1);
    ck_assert_ptr_nonnull(advice_of(r, REP_FALSE_SPIN));
    scene_end();
}

TEST(one_failed_trylock_is_no_polling) {
    scene_begin();
    lock(0, 49.9, 50, 0, 1, 1);
    unlock(0, 195, 0);
    end(0, 400);
    trylock(1, 100, 0, 0, EBUSY);
    trylock(1, 200, 0, 2, 0);
    unlock(1, 300, 0);
    end(1, 400);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->objects[0].polls, 0);
    ck_assert_uint_eq(r->threads[1].times.waiting[REP_SPIN].n, 0);
    scene_end();
}

/* ---- the order of locks ---- */

static void both(uint32_t thread, double at, uint32_t first, uint32_t second, uint64_t number) {
    lock(thread, at, at + 0.1, first, number, 10 + first);
    lock(thread, at + 1, at + 1.1, second, number, 10 + second);
    unlock(thread, at + 2, second);
    unlock(thread, at + 3, first);
}

TEST(inverted_order_of_two_threads) {
    scene_begin();
    both(0, 10, 0, 1, 1);
    both(1, 20, 1, 0, 2);
    end(0, 50), end(1, 50);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->n_circles, 1);
    ck_assert_uint_eq(r->circles[0].n, 2);
    ck_assert_uint_eq(r->circles[0].order[0]->held, 0);
    ck_assert_uint_eq(r->circles[0].order[0]->held_site, 10);
    ck_assert_uint_eq(r->circles[0].order[0]->taken_site, 11);
    ck_assert_uint_eq(r->circles[0].order[1]->held, 1);
    ck_assert_uint_eq(r->circles[0].order[1]->thread, 1);
    ck_assert_int_eq(r->advice[0].cause, REP_LOCK_ORDER);
    scene_end();
}

/* The thread waits for a mutex, or joins, until the end of the trace. */
static void stuck(uint32_t thread, double from, double to, enum sbt_trace_op op, uint32_t object, uint32_t other) {
    call(thread, from, to,
         (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END,
                                  .type = op == SBT_TRACE_MUTEX_LOCK ? SBT_TRACE_MUTEX : SBT_TRACE_NO_OBJECT,
                                  .object = object,
                                  .other = other,
                                  .size = SBT_TRACE_WAITS + (uint32_t)op,
                                  AT(20 + thread)});
}

/* Main joins thread 1; threads 1 and 2 have a lock each and want the other one, for so many us. */
static void deadlock(double us) {
    scene_begin();
    create(0, 10, 1);
    create(0, 30, 2);
    lock(1, 50, 50.1, 0, 1, 10);
    lock(2, 50, 50.1, 1, 1, 11);
    stuck(0, 50, 100 + us, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, 1);
    stuck(1, 70, 100 + us, SBT_TRACE_MUTEX_LOCK, 1, SBT_TRACE_NONE);
}

TEST(deadlock_is_the_first_advice, "about the thread that came last") {
    deadlock(100000);
    stuck(2, 100, 100100, SBT_TRACE_MUTEX_LOCK, 0, SBT_TRACE_NONE);
    const struct rep_report *r = scene_report();
    ck_assert_uint_ge(r->n_advice, 1);
    ck_assert_int_eq(r->advice[0].cause, REP_DEADLOCK);
    ck_assert_uint_eq(r->advice[0].thread, 2);
    ck_assert_uint_eq(r->advice[0].object, 0);
    ck_assert_uint_eq(r->advice[0].site, 22);
    ck_assert_uint_eq(r->advice[0].n_objects, 2);
    ck_assert(r->advice[0].value == 1e8);
    scene_end();
}

static void is_no_deadlock(void) {
    const struct rep_report *r = scene_report();
    for (unsigned i = 0; i < r->n_advice; i++)
        ck_assert_int_ne(r->advice[i].cause, REP_DEADLOCK);
    scene_end();
}

TEST(all_wait_for_a_moment_is_no_deadlock, "a thread may have been woken") {
    deadlock(99999);
    stuck(2, 100, 100099, SBT_TRACE_MUTEX_LOCK, 0, SBT_TRACE_NONE);
    is_no_deadlock();
}

TEST(a_thread_that_runs_or_waits_for_the_outside_may_end_it) {
    deadlock(100000);
    stuck(2, 100, 100100, SBT_TRACE_OUTSIDE_WAIT, SBT_TRACE_NONE, SBT_TRACE_NONE);
    is_no_deadlock();
    deadlock(100000);
    call(2, 100, 100100, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, NO_OBJECT, .size = 1, AT(92)});
    is_no_deadlock();
}

/* Threads 1 and 2 wait until the end. Main ends by itself at that time, and could have woken them until then. */
static void left_behind(double main_ends) {
    scene_begin();
    create(0, 10, 1);
    create(0, 30, 2);
    stuck(1, 70, 200000, SBT_TRACE_MUTEX_LOCK, 1, SBT_TRACE_NONE);
    stuck(2, 80, 200000, SBT_TRACE_MUTEX_LOCK, 0, SBT_TRACE_NONE);
    end(0, main_ends);
}

TEST(a_thread_that_ends_the_process_could_have_woken_the_others) {
    left_behind(200000);
    is_no_deadlock();
    left_behind(100001);
    is_no_deadlock();
    left_behind(100000);
    ck_assert_int_eq(scene_report()->advice[0].cause, REP_DEADLOCK);
    ck_assert(shown.report->advice[0].value == 1e8);
    scene_end();
}

TEST(inverted_order_of_one_thread_cannot_deadlock) {
    scene_begin();
    both(0, 10, 0, 1, 1);
    both(0, 20, 1, 0, 2);
    end(0, 50), end(1, 50);
    ck_assert_uint_eq(scene_report()->n_circles, 0);
    scene_end();
}

TEST(inverted_order_under_a_common_lock_cannot_deadlock) {
    scene_begin();
    lock(0, 9, 9.1, 2, 1, 1);
    both(0, 10, 0, 1, 1);
    unlock(0, 14, 2);
    lock(1, 19, 19.1, 2, 2, 1);
    both(1, 20, 1, 0, 2);
    unlock(1, 24, 2);
    end(0, 50), end(1, 50);
    ck_assert_uint_eq(scene_report()->n_circles, 0);
    scene_end();
}

TEST(common_lock_that_is_not_always_held_does_not_help) {
    scene_begin();
    lock(0, 9, 9.1, 2, 1, 1);
    both(0, 10, 0, 1, 1);
    unlock(0, 14, 2);
    lock(1, 19, 19.1, 2, 2, 1);
    both(1, 20, 1, 0, 2);
    unlock(1, 24, 2);
    both(1, 30, 1, 0, 3);
    end(0, 50), end(1, 50);
    ck_assert_uint_eq(scene_report()->n_circles, 1);
    scene_end();
}

TEST(circle_of_three_locks) {
    scene_begin();
    both(0, 10, 0, 1, 1);
    both(1, 20, 1, 2, 2);
    both(2, 30, 2, 0, 3);
    end(0, 50), end(1, 50), end(2, 50);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->n_circles, 1);
    ck_assert_uint_eq(r->circles[0].n, 3);
    scene_end();
}

TEST(trylock_makes_no_order) {
    scene_begin();
    both(0, 10, 0, 1, 1);
    lock(1, 20, 20.1, 1, 2, 1);
    trylock(1, 21, 0, 2, 0);
    unlock(1, 22, 0);
    unlock(1, 23, 1);
    end(0, 50), end(1, 50);
    ck_assert_uint_eq(scene_report()->n_circles, 0);
    scene_end();
}

/* 0 waits for mutex 0 of 1, which waits for mutex 1 of 2 while it holds mutex 0. */
TEST(chain_of_waits) {
    scene_begin();
    lock(2, 9.9, 10, 1, 1, 1);
    unlock(2, 500, 1);
    lock(1, 19.9, 20, 0, 1, 1);
    lock(1, 100, 510, 1, 2, 2);
    unlock(1, 520, 1);
    unlock(1, 600, 0);
    lock(0, 200, 610, 0, 2, 3);
    unlock(0, 620, 0);
    end(0, 700), end(1, 700), end(2, 700);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->n_chains, 1);
    const struct rep_chain *c = &r->chains[0];
    ck_assert_uint_eq(c->n_links, 2);
    ck_assert_uint_eq(c->link[0].object, 0);
    ck_assert_uint_eq(c->link[0].site, 3);
    ck_assert_uint_eq(c->link[1].object, 1);
    ck_assert_uint_eq(c->link[1].site, 2);
    CHECK_US(c->sum.ns, 500 - 200); /* up to the release at 500, behind which 1 was waking up */
    scene_end();
}

/* One thread's, for so long each, with so much work around each. */
static void many_locks(double call_us, double work_us) {
    double at_us = 1;
    scene_begin();
    for (uint32_t i = 0; i < 2000; i++) {
        lock(0, at_us, at_us + call_us, i % 500, i / 500 + 1, 5);
        unlock(0, at_us + call_us + work_us, i % 500);
        at_us += call_us + 0.1 + 2 * work_us;
    }
    end(0, at_us);
    end(1, 2);
}

TEST(many_locks_of_one_place_are_one_group) {
    many_locks(0.02, 0.02);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->n_groups, 1);
    ck_assert_uint_eq(r->groups[0].n_objects, 500);
    ck_assert_uint_eq(r->groups[0].n, 2000);
    ck_assert_int_eq(r->advice[0].cause, REP_MANY_LOCKS);
    ck_assert_double_le(r->advice[0].gain_ns, 2.0 * REP_CALL_NS * 2000);
    scene_end();
}

/* Beside them locks of another place, of which few calls took longer than all of theirs. */
TEST(many_locks_are_those_of_most_calls) {
    double at_us = 1;
    scene_begin();
    for (uint32_t i = 0; i < 1200; i++) {
        lock(0, at_us, at_us + 0.02, i % 400, i / 400 + 1, 5);
        unlock(0, at_us + 0.04, i % 400);
        at_us += 0.16;
    }
    for (uint32_t i = 0; i < 20; i++) {
        lock(0, at_us, at_us + 10, 400, i + 1, 6);
        unlock(0, at_us + 10.1, 400);
        at_us += 10.3;
    }
    end(0, at_us);
    end(1, 2);
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->n_groups, 2);
    ck_assert_int_eq(r->advice[0].cause, REP_MANY_LOCKS);
    ck_assert_uint_eq(r->groups[r->advice[0].group].n, 1200);
    scene_end();
}

/* It is taken often, and held for long now and then, while another thread waits for it. */
TEST(a_hot_lock_is_not_many_locks) {
    double at_us = 1;
    uint32_t number = 0;
    scene_begin();
    for (uint32_t i = 0; i < 20000; i++) {
        lock(0, at_us, at_us + 0.02, 0, ++number, 5);
        unlock(0, at_us + 0.04, 0);
        at_us += 0.16;
    }
    sleeps(at_us);
    trylock(1, at_us, 1, 1, 0);
    for (uint32_t i = 0; i < 10; i++) {
        lock(0, at_us + 1, at_us + 1.1, 0, ++number, 5);
        unlock(0, at_us + 30, 0);
        lock(1, at_us + 2, at_us + 31, 0, ++number, 6);
        unlock(1, at_us + 32, 0);
        at_us += 33;
    }
    end(1, at_us);
    end(0, at_us);
    const struct rep_report *r = scene_report();
    ck_assert_int_eq(r->advice[0].cause, REP_HOT_LOCK);
    for (unsigned i = 0; i < r->n_advice; i++)
        ck_assert_int_ne(r->advice[i].cause, REP_MANY_LOCKS);
    scene_end();
}

/* As where a thread loses its processor in them, or the recorder writes what it has. */
TEST(calls_that_take_long_are_not_many_locks) {
    many_locks(50, 0.5);
    const struct rep_report *r = scene_report();
    ck_assert_uint_gt(r->times.calls_ns, r->times.cpu_ns);
    for (unsigned i = 0; i < r->n_advice; i++)
        ck_assert_int_ne(r->advice[i].cause, REP_MANY_LOCKS);
    scene_end();
}
