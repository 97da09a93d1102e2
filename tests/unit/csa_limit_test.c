/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section VII-A, Eq. 2 and what limits the priority, sentence by sentence; each test begins with the one it is for. */
#include "csa_scene.h"

TEST(equation_2) {
    /* "CSALimit = (ThrReady + ThrRun - 1) x (2 x TS)" */
    for (uint64_t ready = 0; ready < 20; ready++)
        for (uint64_t running = ready == 0; running < 3; running++)
            for (uint64_t slot = 1; slot < 5; slot++)
                ck_assert_uint_eq(csa_limit_ns(ready, running, slot), (ready + running - 1) * 2 * slot);
    ck_assert_uint_eq(csa_limit_ns(0, 0, MS), 0);
    ck_assert_uint_eq(csa_limit_ns(0, 1, MS), 0);
}

TEST(eight_threads_of_1_ms_have_a_limit_of_14_ms) {
    /* "for a scheduler with a sum of 8 threads on the ThrReady and ThrRun states and a TS of 1ms, when one of these
     * threads gains CSA priority, its time limit is 14ms." */
    uint64_t ns[N] = {0};
    ck_assert_uint_eq(csa_limit_ns(7, 1, MS), 14 * MS);
    open_sched(CSA_CSA, 0, 0, 8);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    ck_assert_uint_eq(csa_until(&sched, 0), 14 * MS);
    run(0, 14 * MS, ns);
    ck_assert_uint_eq(ns[0], 14 * MS);
    ck_assert_ptr_eq(sched.running, &thread[1]);
    ck_assert(thread[0].limited);
    ck_assert_uint_eq(sched.stats.n_limited, 1);
}

TEST(the_limit_is_of_the_time_with_priority_not_of_the_section) {
    open_sched(CSA_CSA, 0, 0, 2);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    ck_assert_uint_eq(csa_until(&sched, 0), 2 * MS);
    csa_stop(&sched, MS); /* blocks for a while, still holding it */
    ck_assert_ptr_eq(csa_pick(&sched, MS), &thread[1]);
    csa_add(&sched, &thread[0], 10 * MS);
    ck_assert(csa_due(&sched, 10 * MS));
    csa_yield(&sched, 10 * MS);
    ck_assert_ptr_eq(csa_pick(&sched, 10 * MS), &thread[0]);
    ck_assert_uint_eq(csa_until(&sched, 10 * MS), 11 * MS);
}

TEST(rr_when_the_limit_is_used_up) {
    /* "the scheduler changes to the RR policy to maintain a fair scheduling, if the execution of the critical section
     * reduces the priority of the other threads." Also deadlock: the others run although it never releases. */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 4);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    run(0, 6 * MS, ns);
    ck_assert_uint_eq(ns[0], 6 * MS);
    run(6 * MS, 46 * MS, ns);
    ck_assert_uint_eq(ns[0], 16 * MS);
    for (int i = 1; i < 4; i++)
        ck_assert_uint_eq(ns[i], 10 * MS);
    ck_assert_uint_ge(sched.stats.n_rr, 9);
}

TEST(a_new_section_has_a_new_limit) {
    open_sched(CSA_CSA, 0, 0, 3);
    uint64_t ns[N] = {0};
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    run(0, 4 * MS, ns);
    ck_assert(thread[0].limited);
    run(4 * MS, 6 * MS, ns);
    ck_assert_ptr_eq(sched.running, &thread[0]);
    csa_unhold(&sched, &thread[0], 6 * MS);
    csa_hold(&sched, &thread[0], 6 * MS);
    ck_assert_uint_eq(csa_until(&sched, 6 * MS), 10 * MS);
}

TEST(the_limit_is_that_of_gaining_the_priority) {
    /* "when one of these threads gains CSA priority, its time limit is 14ms": whatever threads come or go later. */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    for (int i = 3; i < N; i++)
        csa_add(&sched, &thread[i], MS);
    ck_assert_uint_eq(csa_until(&sched, MS), 4 * MS);
    for (int i = 1; i < N - 1; i++)
        csa_remove(&sched, &thread[i], 2 * MS);
    ck_assert_uint_eq(csa_until(&sched, 2 * MS), 4 * MS);
    run(2 * MS, 4 * MS, ns);
    ck_assert_uint_eq(sched.stats.n_limited, 1);
    ck_assert_ptr_eq(sched.running, &thread[N - 1]);
}

TEST(a_thread_that_gains_it_alone_has_no_time) {
    /* (0 + 1 - 1) x (2 x TS): "the idle thread is ignored". A thread that comes then has its turn as by RR; until then
     * "the execution of the critical section" does not reduce "the priority of the other threads". */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 1);
    csa_pick(&sched, 0);
    ck_assert_uint_eq(sched.stats.n_outside, 1);
    csa_hold(&sched, &thread[0], 0);
    ck_assert_uint_eq(csa_until(&sched, MS / 2), UINT64_MAX);
    ck_assert_uint_eq(sched.stats.n_limited, 0);
    ck_assert_uint_eq(sched.stats.n_alone, 1);
    csa_add(&sched, &thread[1], MS / 2);
    ck_assert_uint_eq(csa_until(&sched, MS / 2), MS);
    ck_assert_uint_eq(sched.stats.n_limited, 1);
    run(MS / 2, 7 * MS / 2, ns);
    ck_assert_uint_eq(ns[0], 3 * MS / 2);
    ck_assert_uint_eq(sched.stats.n_rr, 1);
    ck_assert_uint_eq(sched.stats.n_priority, 0);
    csa_unhold(&sched, &thread[0], 4 * MS);
    /* The next section begins with two, and has time. */
    csa_hold(&sched, &thread[0], 4 * MS);
    ck_assert(!thread[0].limited);
    ck_assert_uint_eq(thread[0].limit_ns, 2 * MS);
}

TEST(a_sleeper_gains_it_when_it_becomes_ready) {
    /* "threads currently in the ready and running states ... one of these threads": it is none of them before. */
    open_sched(CSA_CSA, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[3], 0);
    ck_assert(!csa_due(&sched, 0));
    csa_remove(&sched, &thread[2], 10);
    csa_add(&sched, &thread[3], 20);
    ck_assert_uint_eq(thread[3].limit_ns, 4 * MS); /* 0 runs, 1 and 3 are ready */
    /* Another core's later, with as much as it has. */
    csa_remove(&sched, &thread[3], 30);
    csa_remove(&sched, &thread[1], 30);
    csa_add(&sched, &thread[3], 40);
    ck_assert_uint_eq(thread[3].limit_ns, 4 * MS);
    ck_assert(csa_due(&sched, 40));
}

TEST(a_limit_gained_alone_gives_no_priority_on_another_core_either) {
    open_sched(CSA_CSA, 0, 0, 0);
    csa_hold(&sched, &thread[0], 0);
    csa_add(&sched, &thread[0], 0);
    csa_remove(&sched, &thread[0], 0); /* to another core, where others are */
    csa_add(&sched, &thread[1], 0);
    csa_add(&sched, &thread[0], 0);
    ck_assert_ptr_eq(csa_pick(&sched, 0), &thread[1]);
    ck_assert(!csa_due(&sched, MS / 2));
}

TEST(time_alone_counts) {
    open_sched(CSA_CSA, 0, 0, 2);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    csa_remove(&sched, &thread[1], MS);
    ck_assert_uint_eq(csa_until(&sched, MS), UINT64_MAX);
    csa_add(&sched, &thread[1], 3 * MS + MS / 2); /* 2 ms it had */
    ck_assert_uint_eq(csa_until(&sched, 3 * MS + MS / 2), 4 * MS);
    ck_assert_uint_eq(sched.stats.n_limited, 1);
    ck_assert_uint_eq(sched.stats.n_alone, 0);
}

TEST(a_limit_that_varies_is_that_of_the_moment) {
    /* The other reading of "currently": no limit while no thread waits, and each that comes later lengthens it. */
    open_sched(CSA_CSA, 0, 0, 1);
    sched.config.limit_varies = true;
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    csa_add(&sched, &thread[1], 5 * MS);
    ck_assert_uint_eq(sched.stats.n_limited, 0);
    ck_assert_uint_eq(csa_until(&sched, 5 * MS), 7 * MS);
    csa_add(&sched, &thread[2], 6 * MS);
    ck_assert_uint_eq(csa_until(&sched, 6 * MS), 9 * MS);
    csa_remove(&sched, &thread[2], 8 * MS);
    ck_assert(csa_due(&sched, 8 * MS)); /* 3 of 2 ms */
    ck_assert_uint_eq(sched.stats.n_limited, 1);
    /* A thread that comes with a mutex counts itself: with a thread that runs its limit is 2 ms. */
    open_sched(CSA_CSA, 0, 0, 2);
    sched.config.limit_varies = true;
    ck_assert_ptr_eq(csa_pick(&sched, 0), &thread[0]);
    csa_remove(&sched, &thread[1], 0);
    csa_hold(&sched, &thread[1], MS);
    csa_add(&sched, &thread[1], MS);
    ck_assert(!thread[1].limited);
    ck_assert_uint_eq(sched.stats.n_limited, 0);
}

TEST(a_high_limit_makes_sections_fast_and_others_slow) {
    /* "a high CSALimit value will produce a fast parallel application execution for an unfair scheduler, and the
     * opposite is also true": a section of 10 ms, among six threads of a slot of 1 ms, and with half of that slot. */
    uint64_t end[2], others[2];
    for (int k = 0; k < 2; k++) {
        uint64_t ns[N] = {0}, now = 0;
        open_sched(CSA_CSA, 0, 0, 6);
        sched.config.slot_ns = k == 0 ? MS : MS / 2;
        csa_pick(&sched, 0);
        csa_hold(&sched, &thread[0], 0);
        while (ns[0] < 10 * MS)
            now = run(now, now + MS / 10, ns);
        end[k] = now;
        others[k] = ns[1];
    }
    ck_assert_uint_eq(end[0], 10 * MS);
    ck_assert_uint_eq(others[0], 0);
    ck_assert_uint_gt(end[1], 2 * end[0]);
    ck_assert_uint_ge(others[1], 4 * MS);
}

TEST(only_a_subset_of_sections_is_accelerated) {
    /* "The fairness restriction of CSALimit allows accelerating only a subset of critical sections": of those of 3 and
     * of 5 ms, among three threads, the second are not to their end. */
    for (uint64_t ms = 3; ms <= 5; ms += 2) {
        uint64_t ns[N] = {0};
        open_sched(CSA_CSA, 0, 0, 3);
        csa_pick(&sched, 0);
        csa_hold(&sched, &thread[0], 0);
        run(0, ms * MS, ns);
        ck_assert_uint_eq(ns[0], ms == 3 ? 3 * MS : 4 * MS);
        ck_assert_uint_eq(sched.stats.n_limited, ms == 3 ? 0 : 1);
    }
}

/* The longest time that one of n threads is ready and does not run; the first one holds a mutex for ever. */
static uint64_t worst_delay(enum csa_policy policy, int n) {
    uint64_t last[N] = {0}, worst = 0, now = 0;
    open_sched(policy, 0, 0, n);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    while (now < 100 * MS) {
        uint64_t until = csa_until(&sched, now);
        size_t i = (size_t)(sched.running - thread);
        worst = now - last[i] > worst ? now - last[i] : worst;
        now = until;
        last[i] = now;
        csa_yield(&sched, now);
        csa_pick(&sched, now);
    }
    return worst;
}

TEST(others_are_delayed_at_most_three_times_as_long_as_by_rr) {
    /* "it restricts the delay on other threads at most three times compared to the RR policy. When all threads are
     * running on the RR policy, the maximum delay is (ThrReady+ThrRun-1) x TS." */
    for (int n = 2; n <= N; n++) {
        uint64_t by_rr = worst_delay(CSA_RR, n), by_csa = worst_delay(CSA_CSA, n);
        ck_assert_uint_eq(by_rr, (uint64_t)(n - 1) * MS);
        ck_assert_uint_le(by_csa, 3 * by_rr);
        ck_assert_uint_ge(by_csa, 2 * by_rr); /* the limit is used */
    }
}

TEST(a_cap_for_each_time_frame_against_livelock) {
    /* "to avoid livelocks, the scheduler requires a system-specified limit on the use of CSA policy for a given
     * timeframe": thread 0 takes and releases its mutex for ever, and each time its limit begins anew. */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 100 * MS, 30 * MS, 2);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    for (uint64_t now = 0; now < 1000 * MS; now += MS / 10) {
        run(now, now + MS / 10, ns);
        if (sched.running == &thread[0]) {
            csa_unhold(&sched, &thread[0], now + MS / 10);
            csa_hold(&sched, &thread[0], now + MS / 10);
        }
    }
    ck_assert_uint_eq(sched.stats.n_capped, 10);
    /* 30 of 100 by priority, the rest shared. */
    ck_assert_uint_ge(ns[1], 10 * 34 * MS);
    ck_assert_uint_le(ns[1], 10 * 36 * MS);
    /* Without a cap it would not run at all. */
    uint64_t without[N] = {0};
    open_sched(CSA_CSA, 0, 0, 2);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    for (uint64_t now = 0; now < 1000 * MS; now += MS / 10) {
        run(now, now + MS / 10, without);
        csa_unhold(&sched, sched.running, now + MS / 10);
        csa_hold(&sched, sched.running, now + MS / 10);
    }
    ck_assert_uint_eq(without[1], 0);
}

TEST(requests_are_counted_as_in_table_7) {
    /* "scheduling requests made outside of any critical section, inside a critical section with CSA enabled, and inside
     * a critical section where RR has been enabled due to CSALimit" */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 2);
    thread[2].n_held = 1;
    csa_add(&sched, &thread[2], 0);
    run(0, 4 * MS, ns);
    ck_assert_uint_eq(sched.stats.n_priority, 1);
    ck_assert_uint_eq(sched.stats.n_rr, 0);
    run(4 * MS, 7 * MS, ns);
    ck_assert_uint_eq(sched.stats.n_outside, 3);
    ck_assert_uint_eq(sched.stats.n_rr, 1);
    ck_assert_uint_eq(sched.stats.n_rr_capped, 0);
}

TEST(requests_by_rr_for_the_cap_are_not_of_the_limit) {
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 100 * MS, MS, 3);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    run(0, 7 * MS, ns);
    ck_assert_uint_eq(sched.stats.n_capped, 1);
    ck_assert_uint_eq(sched.stats.n_limited, 0);
    ck_assert_uint_eq(sched.stats.n_rr_capped, 2);
    ck_assert_uint_eq(sched.stats.n_rr, 0);
    run(7 * MS, 103 * MS, ns);
    ck_assert_uint_eq(sched.stats.n_capped, 2);
    ck_assert_uint_eq(sched.stats.n_rr, 0);
}
