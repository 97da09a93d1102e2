/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section VII of the paper, sentence by sentence; each test begins with the one it is for. */
#include "csa.h"

#include <check.h>

#include "hw_check.h"

enum { N = 8 };
#define MS UINT64_C(1000000)

static struct csa_sched sched;
static struct csa_thread thread[N];

static void open_sched(enum csa_policy policy, uint64_t frame_ns, uint64_t cap_ns, int n) {
    struct csa_config config = {.policy = policy, .slot_ns = MS, .frame_ns = frame_ns, .cap_ns = cap_ns};
    csa_init(&sched, &config);
    for (int i = 0; i < N; i++)
        thread[i] = (struct csa_thread){.enabled = true};
    for (int i = 0; i < n; i++)
        csa_add(&sched, &thread[i], 0);
}

/* Let the core run from `now` to `end`, the running thread giving way whenever it is due; ns of each thread. */
static uint64_t run(uint64_t now, uint64_t end, uint64_t *ns) {
    if (sched.running == NULL)
        csa_pick(&sched, now);
    while (now < end) {
        uint64_t until = csa_until(&sched, now);
        until = until < end ? until : end;
        ck_assert_uint_ge(until, now);
        ns[sched.running - thread] += until - now;
        now = until;
        if (csa_due(&sched, now)) {
            csa_yield(&sched, now);
            csa_pick(&sched, now);
        }
    }
    return now;
}

START_TEST(rr_runs_in_a_deterministic_order_with_a_fixed_share) {
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
END_TEST

START_TEST(rr_alone_is_not_interrupted) {
    open_sched(CSA_RR, 0, 0, 1);
    csa_pick(&sched, 0);
    ck_assert_uint_eq(csa_until(&sched, 0), UINT64_MAX);
    /* Whoever comes waits for the end of the slot that is running, not for that of the first. */
    csa_add(&sched, &thread[1], 5 * MS / 2);
    ck_assert_uint_eq(csa_until(&sched, 5 * MS / 2), 3 * MS);
}
END_TEST

START_TEST(rr_gives_the_core_to_the_next_when_one_blocks) {
    /* "The threads do not necessarily use the entire timeslot, as they can request to be scheduled out." */
    open_sched(CSA_RR, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_stop(&sched, MS / 4);
    ck_assert_ptr_eq(csa_pick(&sched, MS / 4), &thread[1]);
    ck_assert_uint_eq(csa_until(&sched, MS / 4), MS / 4 + MS);
}
END_TEST

START_TEST(a_thread_that_holds_a_mutex_goes_before_all_that_hold_none) {
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
END_TEST

START_TEST(a_thread_that_takes_a_mutex_keeps_the_core) {
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 3);
    csa_pick(&sched, 0);
    csa_hold(&sched, &thread[0], 0);
    run(0, 4 * MS, ns); /* its limit, of three threads */
    ck_assert_uint_eq(ns[0], 4 * MS);
}
END_TEST

START_TEST(only_with_csa_enabled) {
    /* "has CSA enabled and" */
    open_sched(CSA_CSA, 0, 0, 2);
    thread[2].enabled = false;
    thread[2].n_held = 1;
    csa_pick(&sched, 0);
    csa_add(&sched, &thread[2], 10);
    ck_assert(!csa_due(&sched, 10));
    ck_assert_uint_eq(csa_until(&sched, 10), MS);
}
END_TEST

START_TEST(rr_among_those_that_hold_mutexes) {
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
END_TEST

START_TEST(rr_when_nobody_holds_a_mutex) {
    /* "if there are no threads that meet those requirements, an RR policy is applied to switch between the entire
     * application set." */
    uint64_t ns[N] = {0};
    open_sched(CSA_CSA, 0, 0, 4);
    run(0, 8 * MS, ns);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(ns[i], 2 * MS);
}
END_TEST

START_TEST(equation_2) {
    /* "CSALimit = (ThrReady + ThrRun - 1) x (2 x TS)" */
    for (uint64_t ready = 0; ready < 20; ready++)
        for (uint64_t running = ready == 0; running < 3; running++)
            for (uint64_t slot = 1; slot < 5; slot++)
                ck_assert_uint_eq(csa_limit_ns(ready, running, slot), (ready + running - 1) * 2 * slot);
    ck_assert_uint_eq(csa_limit_ns(0, 0, MS), 0);
    ck_assert_uint_eq(csa_limit_ns(0, 1, MS), 0);
}
END_TEST

START_TEST(eight_threads_of_1_ms_have_a_limit_of_14_ms) {
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
END_TEST

START_TEST(the_limit_is_of_the_time_with_priority_not_of_the_section) {
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
END_TEST

START_TEST(rr_when_the_limit_is_used_up) {
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
END_TEST

START_TEST(a_new_section_has_a_new_limit) {
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
END_TEST

START_TEST(others_are_delayed_at_most_three_times_as_long_as_by_rr) {
    /* "it restricts the delay on other threads at most three times compared to the RR policy. When all threads are
     * running on the RR policy, the maximum delay is (ThrReady+ThrRun-1) x TS." */
    for (int n = 2; n <= N; n++) {
        uint64_t last[N] = {0}, worst = 0, now = 0;
        open_sched(CSA_CSA, 0, 0, n);
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
        ck_assert_uint_le(worst, 3 * (uint64_t)(n - 1) * MS);
        ck_assert_uint_ge(worst, 2 * (uint64_t)(n - 1) * MS); /* the limit is used */
    }
}
END_TEST

START_TEST(a_cap_for_each_time_frame_against_livelock) {
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
END_TEST

START_TEST(requests_are_counted_as_in_table_7) {
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
}
END_TEST

START_TEST(equation_1) {
    /* "Unfairness = MAX(Slowdown) / MIN(Slowdown), Slowdown = ET_sched / ET_alone" */
    double scheduled[] = {8, 4, 30}, alone[] = {2, 2, 10};
    ck_assert(csa_unfairness(scheduled, alone, 3) == 2.0);
    ck_assert(csa_unfairness(scheduled, alone, 1) == 1.0);
    ck_assert(csa_unfairness(scheduled, scheduled, 3) == 1.0);
    ck_assert(csa_unfairness(scheduled, alone, 0) == 0.0);
}
END_TEST

START_TEST(one_application_at_a_time) {
    /* "OAT can only execute one application" */
    struct csa_turn turn = {.n_applications = 3};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < 3; k++)
            ck_assert_int_eq(csa_may_run(&turn, k), k == i);
        ck_assert_int_eq(csa_next(&turn), i < 2);
    }
    ck_assert(!csa_may_run(&turn, 0));
}
END_TEST

START_TEST(a_ready_thread_that_leaves_is_not_picked) {
    open_sched(CSA_CSA, 0, 0, 3);
    csa_remove(&sched, &thread[1], 0);
    ck_assert_ptr_eq(csa_pick(&sched, 0), &thread[0]);
    csa_stop(&sched, 1);
    ck_assert_ptr_eq(csa_pick(&sched, 1), &thread[2]);
    csa_stop(&sched, 2);
    ck_assert_ptr_null(csa_pick(&sched, 2));
    ck_assert_uint_eq(sched.n_ready, 0);
}
END_TEST

static void tests(Suite *suite) {
    ADD_TEST(suite, rr_runs_in_a_deterministic_order_with_a_fixed_share);
    ADD_TEST(suite, rr_alone_is_not_interrupted);
    ADD_TEST(suite, rr_gives_the_core_to_the_next_when_one_blocks);
    ADD_TEST(suite, a_thread_that_holds_a_mutex_goes_before_all_that_hold_none);
    ADD_TEST(suite, a_thread_that_takes_a_mutex_keeps_the_core);
    ADD_TEST(suite, only_with_csa_enabled);
    ADD_TEST(suite, rr_among_those_that_hold_mutexes);
    ADD_TEST(suite, rr_when_nobody_holds_a_mutex);
    ADD_TEST(suite, equation_2);
    ADD_TEST(suite, eight_threads_of_1_ms_have_a_limit_of_14_ms);
    ADD_TEST(suite, the_limit_is_of_the_time_with_priority_not_of_the_section);
    ADD_TEST(suite, rr_when_the_limit_is_used_up);
    ADD_TEST(suite, a_new_section_has_a_new_limit);
    ADD_TEST(suite, others_are_delayed_at_most_three_times_as_long_as_by_rr);
    ADD_TEST(suite, a_cap_for_each_time_frame_against_livelock);
    ADD_TEST(suite, requests_are_counted_as_in_table_7);
    ADD_TEST(suite, equation_1);
    ADD_TEST(suite, one_application_at_a_time);
    ADD_TEST(suite, a_ready_thread_that_leaves_is_not_picked);
}

int main(void) {
    void (*const all[])(Suite *) = {tests, NULL};
    return run_suite("csa", all);
}
