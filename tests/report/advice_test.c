/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When advice is given, and about which thread. Values are worked out by hand. */
#include <errno.h>

#include "scene.h"

enum { MUTEX, COND };

/* One thread waits from 20 to 1000 us for a signal that the other one gives after its work. */
static const struct rep_report *one_waits(bool main_waits) {
    uint32_t waiter = main_waits ? 0 : 1, other = 1 - waiter;
    scene_begin();
    create(0, 0, 1);
    lock(waiter, 15, 15.1, MUTEX, 1, 1);
    wait_(waiter, 20, 1000, COND, 1, MUTEX, 2);
    unlock(waiter, 1001, MUTEX);
    signal_(other, 990, COND, 1, false);
    end(1, 1010);
    end(0, 1020);
    return scene_report();
}

TEST(first_thread_waits_for_what_its_threads_do) {
    const struct rep_advice *a = advice_of(one_waits(true), REP_IDLE);
    ck_assert_ptr_nonnull(a);
    ck_assert_uint_eq(a->thread, 0);
    scene_end();
}

TEST(worker_waits_for_work) {
    const struct rep_advice *a = advice_of(one_waits(false), REP_IDLE);
    ck_assert_ptr_nonnull(a);
    ck_assert_uint_eq(a->thread, REP_NONE);
    scene_end();
}

/* Thread 0 gives 20 signals, each within 20 us; so many of the first ones are in vain. */
static bool is_advised(unsigned n_in_vain) {
    scene_begin();
    uint64_t number = 0;
    lock(1, 0, 0.1, MUTEX, ++number, 1);
    for (unsigned i = 0; i < 20; i++) {
        double at = 100 + 100 * i;
        wait_(1, at - 90, at + 6, COND, i + 1, MUTEX, number + 2);
        if (i >= n_in_vain) {
            unlock(1, at + 6.5, MUTEX);
            lock(1, at + 7, at + 7.1, MUTEX, number + 3, 1);
        }
        lock(0, at - 1, at - 0.9, MUTEX, number + 1, 1);
        call(0, at, at + 5, /* of which most is the call */
             (struct sbt_trace_event){.op = SBT_TRACE_COND_SIGNAL,
                                      .type = SBT_TRACE_COND,
                                      .object = COND,
                                      .other = SBT_TRACE_NONE,
                                      .order = i + 1,
                                      AT(97)});
        unlock(0, at + 5.5, MUTEX);
        number += i >= n_in_vain ? 3 : 2;
    }
    unlock(1, 2050, MUTEX);
    end(1, 2060);
    end(0, 2100);
    bool advised = advice_of(scene_report(), REP_FUTILE_WAKEUPS) != NULL;
    scene_end();
    return advised;
}

/* All of the condition's and the mutex's part of the path is 6.5 %: that is enough if all wake-ups are in vain. */
TEST(few_wake_ups_in_vain_are_no_advice) {
    ck_assert(is_advised(20));
    ck_assert(!is_advised(8));
}

/* ---- too many threads ---- */

enum { WALL_US = 1000 };

/* Thread 0 works all the time, within the lock. The others are there for so long, and each works for so long of that.
 */
static const struct rep_report *crowd(uint32_t n, uint32_t at_a_time, double work_us) {
    double begin_us[SCENE_THREADS], lives_us = (double)WALL_US / ((n - 1) / (at_a_time - 1));
    scene_begin();
    lock(0, 0, 0.1, MUTEX, 1, 1);
    for (uint32_t i = 1; i < n; i++) {
        begin_us[i] = lives_us * ((i - 1) / (at_a_time - 1));
        scene.ended_us[i] = begin_us[i];
        call(0, begin_us[i] + 0.2 * (i - 1) + 0.2, begin_us[i] + 0.2 * (i - 1) + 0.3,
             (struct sbt_trace_event){.op = SBT_TRACE_THREAD_CREATE, .object = SBT_TRACE_NONE, .other = i, AT(94)});
    }
    unlock(0, WALL_US, MUTEX);
    end(0, WALL_US + 1);
    for (uint32_t i = 1; i < n; i++) {
        lock(i, begin_us[i] + work_us, begin_us[i] + lives_us - 1, MUTEX, 1 + i, 1);
        unlock(i, begin_us[i] + lives_us - 0.5, MUTEX);
        end(i, begin_us[i] + lives_us);
    }
    return scene_report();
}

/* How many to try: 2 x 2.2 + 1, 2 x 1.1 + 1. That may be as many as there are: 2 x 1.3 + 1 of 4, 2 x 1.6 + 1 of 5. */
TEST(fewer_threads_are_more_than_run_and_fewer_than_there_are) {
    static const struct {
        uint32_t n;
        double work_us;
        unsigned few;
    } cases[] = {{17, 75, 6}, {17, 5, 4}, {4, 100, 3}, {5, 150, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rep_report *r = crowd(cases[i].n, cases[i].n, cases[i].work_us);
        ck_assert_ptr_nonnull(advice_of(r, REP_TOO_MANY_THREADS));
        ck_assert_uint_eq(rep_fewer_threads(r), cases[i].few);
        ck_assert_uint_lt(rep_fewer_threads(r), cases[i].n);
        scene_end();
    }
}

/* One after the other: 25 threads, but 3 at a time of which one runs and some. */
TEST(many_threads_one_after_the_other_are_not_too_many) {
    ck_assert_ptr_nonnull(advice_of(crowd(25, 25, 10), REP_TOO_MANY_THREADS));
    scene_end();
    ck_assert_ptr_null(advice_of(crowd(25, 3, 10), REP_TOO_MANY_THREADS));
    scene_end();
}

/* ---- waits that no call is known to have ended ---- */

/*
 * Two threads wait three times for a lock that a third one holds for 10 us: 6 % of the time, and 3 % of the path. Then
 * that thread is 800 us in a call of the lock, which is free, or in one that times out.
 */
static bool is_hot(uint16_t result) {
    scene_begin();
    create(0, 0, 1);
    create(0, 10, 2);
    uint64_t number = 0;
    for (unsigned i = 0; i < 3; i++) {
        double at = 30 + 20 * i;
        lock(0, at, at + 0.1, MUTEX, ++number, 1);
        lock(1, at + 0.5, at + 10.2, MUTEX, ++number, 1);
        lock(2, at + 0.5, at + 10.7, MUTEX, ++number, 1);
        unlock(0, at + 10, MUTEX);
        unlock(1, at + 10.4, MUTEX);
        unlock(2, at + 10.9, MUTEX);
    }
    if (result != 0) {
        lock(1, 90, 90.1, MUTEX, ++number, 1);
        unlock(1, 950, MUTEX);
    }
    call(0, 100, 900,
         (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK,
                                  .type = SBT_TRACE_MUTEX,
                                  .object = MUTEX,
                                  .other = SBT_TRACE_NONE,
                                  .order = result != 0 ? 0 : ++number,
                                  .result = result,
                                  AT(1)});
    if (result == 0)
        unlock(0, 900.2, MUTEX);
    end(1, 960);
    end(2, 961);
    end(0, 1000);
    bool hot = advice_of(scene_report(), REP_HOT_LOCK) != NULL;
    scene_end();
    return hot;
}

TEST(call_of_a_free_lock_makes_no_lock_hot) {
    ck_assert(!is_hot(0));
}

TEST(lock_that_another_thread_keeps_until_a_wait_times_out_is_hot) {
    ck_assert(is_hot(ETIMEDOUT));
}
