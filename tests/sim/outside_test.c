/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits for the outside: as long as recorded, without a core. By hand, on both machines. */
#include "host.h"

static void outside(struct build *b, uint32_t thread, uint64_t work, uint64_t took) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_OUTSIDE_WAIT,
                                         .object = SBT_TRACE_NONE,
                                         .other = SBT_TRACE_NONE,
                                         .work_ns = work,
                                         .took_ns = took});
}

/* A machine on which nothing costs anything, but for what the paper's hardware always does. */
static struct sim_config free_of(enum sim_sync sync, uint32_t n_cores) {
    struct sim_config config = sync >= SIM_N_SYNCS ? host_of(sync, n_cores) : config_of(sync);
    config.width = n_cores;
    config.height = 1;
    config.costs.switch_ns = config.costs.patience_ns = 0;
    return config;
}

/* Work for 1 ms, the outside for 5 ms, work for 2 ms. */
TEST(it_takes_as_long_as_it_did) {
    struct build b;
    build_open(&b);
    outside(&b, 0, MS, 5 * MS);
    end(&b, 0, 2 * MS);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = free_of((enum sim_sync)sync, 2);
        struct sim_summary sum;
        struct sim_thread_result r = run_one(&config, trace, 0, &sum);
        ck_assert_uint_eq(r.to_ns, 8 * MS);
        ck_assert_uint_eq(r.in_ns[SIM_WORK], 3 * MS);
        ck_assert_uint_eq(r.in_ns[SIM_OUTSIDE], 5 * MS);
        ck_assert_uint_eq(r.in_ns[SIM_WAIT] + r.in_ns[SIM_READY] + r.in_ns[SIM_CALL], 0);
        ck_assert_uint_eq(sum.outside_ns, 5 * MS);
        ck_assert_uint_eq(sum.n_outside, 1);
        ck_assert_uint_eq(sum.n_calls, 0);
        config.without_outside = true;
        r = run_one(&config, trace, 0, &sum);
        ck_assert_uint_eq(r.to_ns, 3 * MS);
        ck_assert_uint_eq(sum.outside_ns, 0);
    }
    for (int without = 0; without < 2; without++) {
        enum sim_status status;
        struct sim_survey *survey = sim_survey_new(trace, "test", false, without, &status, &(struct sim_error){{0}});
        ck_assert_uint_eq(sim_survey_bounds(survey).path_ns, (without ? 3 : 8) * MS);
        ck_assert_uint_eq(sim_survey_bounds(survey).work_ns, 3 * MS);
        sim_survey_free(survey);
    }
}

/*
 * On one core thread 0 creates 1 and waits at once, for 10 ms. Thread 1 has the core from then on, also where a thread
 * that waits for another would keep it for a while, and is done at 4 ms. Thread 0 works from 10 to 11 ms.
 */
TEST(the_core_is_free_at_once) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    outside(&b, 0, 0, 10 * MS);
    end(&b, 1, 4 * MS);
    join_all(&b, 2, MS);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = free_of((enum sim_sync)sync, 1);
        if (sync == SIM_DELEGATE) /* its only core would be a server */
            continue;
        config.costs.patience_ns = MS;
        ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 4 * MS);
        ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 11 * MS);
        ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_OUTSIDE], 10 * MS);
    }
}

/*
 * The core is busy when the wait of 2 ms ends. On the host thread 0 preempts thread 1 there, which then ends at 7 ms in
 * the place of 6. On the chip it waits for its turn in the run queue, which is no part of the wait.
 */
TEST(behind_it_the_thread_is_runnable) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    outside(&b, 0, 0, 2 * MS);
    end(&b, 1, 6 * MS);
    join_all(&b, 2, MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = free_of(SIM_GLIBC, 1);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 7 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 0);
    config = free_of(SIM_SOFTWARE, 1);
    config.sched.slot_ns = 4 * MS; /* thread 1 has it until 4 ms, thread 0 until 5, thread 1 until 7 */
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 7 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 2 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_OUTSIDE], 2 * MS);
}

/* The recorded time is until the thread ran again, so an idle core adds nothing; behind a post it would. */
TEST(an_idle_core_is_not_late) {
    struct build b;
    build_open(&b);
    outside(&b, 0, MS, 5 * MS);
    end(&b, 0, 2 * MS);
    struct sim_config config = free_of(SIM_GLIBC, 1);
    config.host.late_idle_ns = config.host.late_deep_ns = 50 * US;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 0, NULL).to_ns, 8 * MS);
}

/* What waits for the thread waits longer: thread 1 for the mutex, until 1 + 5 ms. */
TEST(a_lock_is_held_over_it) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    lock_nth(&b, 0, 0, 1, 0);
    outside(&b, 0, MS, 5 * MS);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    lock_nth(&b, 1, 0, 2, US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 1, 0);
    join_all(&b, 2, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = free_of(SIM_GLIBC, 2);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 6 * MS);
    config.without_outside = true;
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, MS);
}

/* What looks for circles meanwhile does so ever more seldom. */
TEST(a_long_one_takes_few_steps) {
    struct build b;
    build_open(&b);
    outside(&b, 0, 0, UINT64_C(1) << 56); /* two years */
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = free_of(SIM_GLIBC, 1);
    struct sim_summary sum;
    ck_assert_uint_eq(run_one(&config, trace, 0, &sum).to_ns, UINT64_C(1) << 56);
    ck_assert_uint_lt(sum.n_steps, 100);
}

/*
 * Thread 2 has its two mutexes in the other order; in the trace the second was free, and it was taken by a trylock.
 * Here the threads wait for each other, and thread 0, which sleeps, does not wait for them. The wait that
 * ended first in the trace ends within a millisecond, and not after that sleep.
 */
static void circle_beside(struct build *b) {
    create_all(b, 3);
    for (uint32_t t = 1; t < 3; t++) {
        lock_nth(b, t, 3 - t, 1, 0);
        if (t == 1)
            lock_nth(b, t, t, 1, MS);
        else
            trylock(b, t, 2, MS, 0);
        call(b, t, SBT_TRACE_MUTEX_UNLOCK, t, 0);
        call(b, t, SBT_TRACE_MUTEX_UNLOCK, 3 - t, 0);
        end(b, t, 0);
    }
}

static void check_circle(const struct sbt_trace *trace, bool without_outside) {
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = free_of((enum sim_sync)sync, 4);
        struct sim_summary sum;
        if (sync == SIM_DELEGATE)
            continue;
        config.let_pass = true;
        config.without_outside = without_outside;
        uint64_t to_ns = run_one(&config, trace, 1, &sum).to_ns;
        ck_assert_msg(to_ns >= MS && to_ns < 4 * MS, "%s: %ju", sim_sync_name((enum sim_sync)sync), (uintmax_t)to_ns);
        ck_assert_uint_eq(sum.n_deviations[SIM_LET_PASS], 1);
        ck_assert_uint_ge(sum.makespan_ns, 15 * MS);
    }
}

TEST(a_circle_of_locks_does_not_last_as_long_as_others_sleep) {
    struct build b;
    build_open(&b);
    circle_beside(&b);
    outside(&b, 0, 0, 15 * MS);
    join_all(&b, 3, 0);
    check_circle(build_close(&b), false);
}

/* The threads meet at 5 ms. What looks for circles comes at 1, 3 and 7 ms; on the host a circle ends as it closes. */
TEST(on_the_host_a_circle_of_locks_costs_nothing) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT};
    static const uint64_t queue_ns[] = {0, 40}; /* of the parking lot */
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t t = 1; t < 3; t++) {
        lock_nth(&b, t, 3 - t, 1, 0);
        lock_nth(&b, t, t, 2, 5 * MS);
        call(&b, t, SBT_TRACE_MUTEX_UNLOCK, t, 0);
        call(&b, t, SBT_TRACE_MUTEX_UNLOCK, 3 - t, 0);
        end(&b, t, 0);
    }
    outside(&b, 0, 0, 15 * MS);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
        struct sim_config config = free_of(syncs[i], 4);
        struct sim_summary sum;
        config.let_pass = true;
        ck_assert_uint_eq(run_one(&config, trace, 1, &sum).to_ns, 5 * MS + queue_ns[i]);
        ck_assert_uint_eq(sum.n_deviations[SIM_LET_PASS], 1);
    }
}

/* Thread 0 works, and waits for the outside each millisecond. Where these waits are left out they are looks. */
TEST(without_waits_for_the_outside_a_circle_does_not_last_as_long_as_others_work) {
    struct build b;
    build_open(&b);
    circle_beside(&b);
    for (int i = 0; i < 15; i++)
        outside(&b, 0, MS, MS);
    join_all(&b, 3, 0);
    check_circle(build_close(&b), true);
}
