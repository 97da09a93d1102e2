/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bounds of a prediction: by hand, and equal to the time of a chip that costs nothing. */
#include "build.h"
#include "lib/suite.h"

#define US UINT64_C(1000)

static void expect(const struct sbt_trace *trace, bool recorded, uint64_t work_ns, uint64_t path_ns) {
    struct sim_bounds bounds = bounds_of(trace, recorded);
    ck_assert_uint_eq(bounds.work_ns, work_ns);
    ck_assert_uint_eq(bounds.path_ns, path_ns);
}

/* A chip on which software costs nothing. */
static struct sim_config free_config(uint32_t n_cores) {
    struct sim_config config = config_of(SIM_SOFTWARE);
    config.costs = (struct sim_costs){0};
    config.timing = (struct hw_timing){0};
    config.width = n_cores;
    config.height = 1;
    return config;
}

static uint64_t free_time(const struct sbt_trace *trace, uint32_t n_cores, bool recorded) {
    struct sim_config config = free_config(n_cores);
    config.recorded_order = recorded;
    struct sim *sim = simulate(&config, trace, 1);
    uint64_t ns = sim_summary(sim).makespan_ns;
    sim_free(sim);
    return ns;
}

/* 0: 3 ms, creates 1, 2 ms, joins 1, 1 ms. 1: 7 ms. The path: 3 + 7 + 1. */
TEST(creation_and_join) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 3 * MS);
    end(&b, 1, 7 * MS);
    join(&b, 0, 1, 2 * MS);
    end(&b, 0, MS);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, 13 * MS, 11 * MS);
    ck_assert_uint_eq(free_time(trace, 2, false), 11 * MS);
    ck_assert_uint_eq(free_time(trace, 1, false), 13 * MS);
}

/* Rounds last as long as their longest thread: 5 + 6 + 4. */
TEST(a_barrier) {
    static const uint64_t work[3][3] = {{5, 1, 1}, {1, 6, 2}, {1, 1, 4}};
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 3);
    create_all(&b, 3);
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 3; i++)
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, work[round][i] * MS);
    end_all(&b, 3);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, 22 * MS, 15 * MS);
    ck_assert_uint_eq(free_time(trace, 3, false), 15 * MS);
    ck_assert_uint_eq(free_time(trace, 1, false), 22 * MS);
}

/* Thread 1 waits from 1 ms on for the signal at 4 ms, and works 5 ms then; or comes at 6 ms, and does not wait. */
TEST_EACH(a_signal, 2) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, number == 0 ? MS : 6 * MS);
    wait(&b, 1, 1, 0, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, 4 * MS);
    end(&b, 1, 5 * MS);
    join(&b, 0, 1, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, number == 0 ? 10 * MS : 15 * MS, number == 0 ? 9 * MS : 11 * MS);
    ck_assert_uint_eq(free_time(trace, 2, false), number == 0 ? 9 * MS : 11 * MS);
}

/* The thread that comes first gets a mutex: only the recorded order binds. Recorded: thread 1 has it first, from 6 to 8
 * ms. */
TEST(a_mutex_binds_in_recorded_order_only) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    lock_nth(&b, 1, 0, 1, 6 * MS);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 2 * MS);
    lock_nth(&b, 0, 0, 2, MS);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, MS);
    end(&b, 1, 0);
    join(&b, 0, 1, 5 * MS);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, 15 * MS, 8 * MS);
    expect(trace, true, 15 * MS, 14 * MS);
    ck_assert_uint_eq(free_time(trace, 2, false), 8 * MS);
    ck_assert_uint_eq(free_time(trace, 2, true), 14 * MS);
}

/* The third wait needs the second post, as the value is 1: at 2 + 5 ms; then 4 ms. */
TEST(a_semaphore) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 1);
    create_all(&b, 2);
    for (uint64_t k = 0; k < 3; k++)
        build_event(&b, 1,
                    (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                             .type = SBT_TRACE_SEM,
                                             .object = 0,
                                             .other = SBT_TRACE_NONE,
                                             .order = k + 1,
                                             .work_ns = 100 * US});
    call(&b, 0, SBT_TRACE_SEM_POST, 0, 2 * MS);
    call(&b, 0, SBT_TRACE_SEM_POST, 0, 5 * MS);
    end(&b, 1, 4 * MS);
    join(&b, 0, 1, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, 300 * US + 11 * MS, 11 * MS);
    ck_assert_uint_eq(free_time(trace, 2, false), 11 * MS);
}

/* Time that passes is no work, and as long on every chip: 2 ms of waiting, and 1 ms. */
TEST(a_wait_that_timed_out) {
    struct build b;
    build_open(&b);
    build_event(&b, 0,
                (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                         .type = SBT_TRACE_SEM,
                                         .object = 0,
                                         .other = SBT_TRACE_NONE,
                                         .result = ETIMEDOUT,
                                         .took_ns = 2 * MS});
    end(&b, 0, MS);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, false, MS, 3 * MS);
    ck_assert_uint_eq(free_time(trace, 1, false), 3 * MS);
}

/* What never comes does not bind. */
TEST(what_is_not_in_the_trace) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, MS);
    wait(&b, 0, 1, 0, 7, MS);
    join(&b, 0, 1, MS);
    init(&b, 0, SBT_TRACE_BARRIER, 2, 2);
    call(&b, 0, SBT_TRACE_BARRIER_WAIT, 2, MS);
    end(&b, 0, MS);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 9 * MS); /* never created: it begins with the trace */
    end(&b, 1, 0);
    expect(build_close(&b), false, 14 * MS, 11 * MS);
}
