/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When advice is given, and about which thread. Values are worked out by hand. */
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
