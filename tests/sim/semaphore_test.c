/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Semaphores in a replay: which waits wait, when their value at first is in the trace and when it is not. */
#include "build.h"
#include "lib/suite.h"

static void semaphore(struct build *b, uint32_t thread, enum sbt_trace_op op, uint64_t post, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_SEM,
                                         .object = 0,
                                         .other = SBT_TRACE_NONE,
                                         .order = post,
                                         .work_ns = work});
}

TEST(a_semaphore_counts) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 2);
    create_all(&b, 5);
    for (uint32_t i = 1; i < 5; i++) /* in the trace the first two came last */
        semaphore(&b, i, SBT_TRACE_SEM_WAIT, i < 3 ? i : 0, i * 10000);
    semaphore(&b, 0, SBT_TRACE_SEM_POST, 1, 3 * MS);
    semaphore(&b, 0, SBT_TRACE_SEM_POST, 2, 3 * MS);
    end_all(&b, 5);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        for (uint32_t i = 1; i < 5; i++) {
            ck_assert_uint_ge(result_of(sim, 0, i).to_ns, i < 3 ? 0 : (i - 2) * 3 * MS);
            ck_assert_uint_lt(result_of(sim, 0, i).to_ns, i < 3 ? MS : (i - 2) * 3 * MS + MS);
        }
        sim_free(sim);
    }
}

/* No init, or one of 1, and two waits in the trace that no post of it ended: they do not wait for the one that is
 * there. */
TEST(a_semaphore_whose_value_is_not_known) {
    for (uint32_t known = 0; known < 2; known++) {
        struct build b;
        build_open(&b);
        if (known)
            init(&b, 0, SBT_TRACE_SEM, 0, 1);
        create_all(&b, 4 + known);
        for (uint32_t i = 1; i < 4 + known; i++)
            semaphore(&b, i, SBT_TRACE_SEM_WAIT, i == 3 ? 1 : 0, i * 10000);
        semaphore(&b, 0, SBT_TRACE_SEM_POST, 1, 3 * MS);
        end_all(&b, 4 + known);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = simulate(&config, trace, 1);
            for (uint32_t i = 1; i < 4 + known; i++)
                ck_assert_int_eq(result_of(sim, 0, i).to_ns > 3 * MS, i == 3);
            sim_free(sim);
        }
    }
}

/* Two wait for it, the wait that says it comes third, and then an init. */
TEST(a_semaphore_whose_value_is_said_later) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++)
        build_event(&b, i,
                    (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                             .type = SBT_TRACE_SEM,
                                             .object = 0,
                                             .other = SBT_TRACE_NONE,
                                             .order = i == 3 ? 0 : i,
                                             .size = i == 3 ? 2 : 0,
                                             .work_ns = i == 3 ? MS : i * 10000});
    semaphore(&b, 0, SBT_TRACE_SEM_POST, 1, 3 * MS);
    init(&b, 0, SBT_TRACE_SEM, 0, 2); /* says nothing new: there is nothing left */
    semaphore(&b, 0, SBT_TRACE_SEM_WAIT, 2, 0);
    semaphore(&b, 1, SBT_TRACE_SEM_POST, 2, 9 * MS);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_ge(result_of(sim, 0, 1).to_ns, 10 * MS);
        ck_assert_uint_lt(result_of(sim, 0, 1).to_ns, 11 * MS);
        ck_assert_uint_ge(result_of(sim, 0, 0).to_ns, 10 * MS);
        ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, MS);
        ck_assert_uint_lt(result_of(sim, 0, 2).to_ns, 2 * MS);
        ck_assert_uint_ge(result_of(sim, 0, 3).to_ns, 3 * MS);
        ck_assert_uint_lt(result_of(sim, 0, 3).to_ns, 4 * MS);
        sim_free(sim);
    }
}
