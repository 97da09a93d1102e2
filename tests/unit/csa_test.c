/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section VII of the paper, sentence by sentence; each test begins with the one it is for. Limits: csa_limit_test.c. */
#include "csa_scene.h"

TEST(rr_runs_in_a_deterministic_order_with_a_fixed_share) {
    /* "RR ... avoids starvation by running the application set in a deterministic order and uses a fixed share." */
    uint64_t ns[N] = {0};
    open_sched(CSA_RR, 0, 0, 4);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 4; i++) {
            uint64_t now = (uint64_t)(round * 4 + i) * MS;
            if (sched.running == NULL)
                csa_pick(&sched, now);
            ck_assert_ptr_eq(sched.running, &thread[i]);
            ck_assert_uint_eq(csa_until(&sched, now), now + MS);
            csa_hold(&sched, &thread[i], now); /* makes no difference */
            run(now, now + MS, ns);
            csa_unhold(&sched, &thread[i], now + MS);
        }
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(ns[i], 3 * MS);
}

TEST(rr_alone_is_not_interrupted) {
    open_sched(CSA_RR, 0, 0, 1);
    csa_pick(&sched, 0);
    ck_assert_uint_eq(csa_until(&sched, 0), UINT64_MAX);
    /* A new thread waits for the end of the slot that is running, not for that of the first. */
    csa_add(&sched, &thread[1], 5 * MS / 2);
    ck_assert_uint_eq(csa_until(&sched, 5 * MS / 2), 3 * MS);
}

TEST(rr_gives_the_core_to_the_next_when_one_blocks) {
    /* "The threads do not necessarily use the entire timeslot, as they can request to be scheduled out." */
    open_sched(CSA_RR, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_stop(&sched, MS / 4);
    ck_assert_ptr_eq(csa_pick(&sched, MS / 4), &thread[1]);
    ck_assert_uint_eq(csa_until(&sched, MS / 4), MS / 4 + MS);
}

TEST(a_thread_that_holds_a_mutex_goes_before_all_that_hold_none) {
    /* "Every time a given thread has CSA enabled and is currently inside a critical section (i.e., holding a mutex), it
     * has priority over the execution of all other threads that are not in the same scenario." */
    open_sched(CSA_CSA, 0, 0, 3);
    thread[3].n_held = 1;
    csa_pick(&sched, 0);
    ck_assert(!csa_due(&sched, 10));
    csa_add(&sched, &thread[3], 10);
    ck_assert(csa_due(&sched, 10)); /* at once, in the middle of another one's slot */
    csa_yield(&sched, 10);
    ck_assert_ptr_eq(csa_pick(&sched, 10), &thread[3]);
    ck_assert(!csa_due(&sched, 10 + 2 * MS)); /* for longer than a slot */
    csa_unhold(&sched, &thread[3], 10 + 2 * MS);
    ck_assert(csa_due(&sched, 10 + 2 * MS)); /* its slot is over, and it is like the others now */
}

TEST(a_thread_that_takes_a_mutex_keeps_the_core) {
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    run(0, 4 * MS, ns); /* its limit, of three threads */
    ck_assert_uint_eq(ns[0], 4 * MS);
}

TEST(only_with_csa_enabled) {
    /* "has CSA enabled and" */
    open_sched(CSA_CSA, 0, 0, 2);
    thread[2].enabled = false;
    thread[2].n_held = 1;
    csa_pick(&sched, 0);
    csa_add(&sched, &thread[2], 10);
    ck_assert(!csa_due(&sched, 10));
    ck_assert_uint_eq(csa_until(&sched, 10), MS);
}

TEST(rr_among_those_that_hold_mutexes) {
    /* "In case another thread also has CSA enabled and is inside another critical section, an RR policy is applied to
     * switch between them until either one finishes." */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 4);
    thread[4].n_held = thread[5].n_held = 1;
    csa_add(&sched, &thread[4], 0);
    csa_add(&sched, &thread[5], 0);
    ck_assert_ptr_eq(csa_pick(&sched, 0), &thread[4]);
    ck_assert_uint_eq(csa_until(&sched, 0), MS);
    run(0, 4 * MS, ns);
    ck_assert_uint_eq(ns[4], 2 * MS);
    ck_assert_uint_eq(ns[5], 2 * MS);
    csa_unhold(&sched, sched.running, 4 * MS); /* either one finishes */
    if (csa_due(&sched, 4 * MS)) {
        csa_yield(&sched, 4 * MS);
        csa_pick(&sched, 4 * MS);
    }
    ck_assert_uint_eq(sched.running->n_held, 1);
}

TEST(rr_when_no_thread_holds_a_mutex) {
    /* "if there are no threads that meet those requirements, an RR policy is applied to switch between the entire
     * application set." */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 4);
    run(0, 8 * MS, ns);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(ns[i], 2 * MS);
}

TEST(equation_1) {
    /* "Unfairness = MAX(Slowdown) / MIN(Slowdown), Slowdown = ET_sched / ET_alone" */
    double scheduled[] = {8, 4, 30}, alone[] = {2, 2, 10};
    ck_assert(csa_unfairness(scheduled, alone, 3) == 2.0);
    ck_assert(csa_unfairness(scheduled, alone, 1) == 1.0);
    ck_assert(csa_unfairness(scheduled, scheduled, 3) == 1.0);
    ck_assert(csa_unfairness(scheduled, alone, 0) == 0.0);
}

TEST(one_application_at_a_time) {
    /* "OAT can only execute one application" */
    struct csa_oat oat = {.n_applications = 3};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < 3; k++)
            ck_assert_int_eq(csa_oat_may_run(&oat, k), k == i);
        ck_assert_int_eq(csa_oat_next(&oat), i < 2);
    }
    ck_assert(!csa_oat_may_run(&oat, 0));
}

TEST(a_ready_thread_that_leaves_is_not_picked) {
    open_sched(CSA_CSA, 0, 0, 3);
    csa_remove(&sched, &thread[1], 0);
    ck_assert_ptr_eq(csa_pick(&sched, 0), &thread[0]);
    csa_stop(&sched, 1);
    ck_assert_ptr_eq(csa_pick(&sched, 1), &thread[2]);
    csa_stop(&sched, 2);
    ck_assert_ptr_null(csa_pick(&sched, 2));
    ck_assert_uint_eq(sched.n_ready, 0);
}
