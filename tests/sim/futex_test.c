/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Futexes: which wake-up lets which wait go on, on both machines. */
#include "build.h"
#include "lib/suite.h"

#define WAIT SBT_TRACE_FUTEX_WAIT
#define WAKE SBT_TRACE_FUTEX_WAKE

static uint64_t end_of(const struct sim *sim, uint32_t thread) {
    return result_of(sim, 0, thread).to_ns;
}

/* The waiter comes first, or the wake-up does: then the wait finds another value. It may have done so in the trace. */
TEST(a_wait_goes_on_after_its_wake_up) {
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++)
        for (int early = 0; early < 2; early++)
            for (int again = 0; again < 2; again++) {
                struct build b;
                build_open(&b);
                create_all(&b, 2);
                futex(&b, 1, WAIT, 0, 1, again ? EAGAIN : 0, 0, early ? 9 * MS : 0);
                futex(&b, 0, WAKE, 0, 1, 0, 0, 5 * MS);
                end_all(&b, 2);
                struct sim_config config = config_of((enum sim_sync)sync);
                struct sim *sim = simulate(&config, build_close(&b), 1);
                ck_assert_uint_ge(end_of(sim, 1), early ? 9 * MS : 5 * MS);
                ck_assert_uint_lt(end_of(sim, 1), early ? 10 * MS : 6 * MS);
                ck_assert_uint_eq(sim_call(sim, SIM_FUTEX_WAIT).n, 1);
                ck_assert_uint_eq(sim_call(sim, SIM_FUTEX_WAKE).n, 1);
                if (!early)
                    ck_assert_uint_ge(sim_call(sim, SIM_FUTEX_WAIT).max_ns, 4 * MS);
                else
                    ck_assert_uint_lt(sim_call(sim, SIM_FUTEX_WAIT).max_ns, MS);
                sim_free(sim);
            }
}

/* A wake-up lets those go on that it woke in the trace, however many; others wait on. */
TEST(a_wake_up_ends_the_waits_that_it_ended) {
    struct build b;
    build_open(&b);
    create_all(&b, 5);
    for (uint32_t i = 1; i < 5; i++)
        futex(&b, i, WAIT, 0, i < 4 ? 2 : 1, 0, 0, i * 1000);
    futex(&b, 0, WAKE, 0, 1, 0, 0, 3 * MS);
    futex(&b, 0, WAKE, 0, 2, 0, 0, 3 * MS);
    end_all(&b, 5);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        for (uint32_t i = 1; i < 5; i++) {
            ck_assert_uint_ge(end_of(sim, i), i < 4 ? 6 * MS : 3 * MS);
            ck_assert_uint_lt(end_of(sim, i), i < 4 ? 7 * MS : 4 * MS);
        }
        sim_free(sim);
    }
}

/* No wake-up has ended these: they last as long as they did, or no time. */
TEST(a_wait_without_a_wake_up) {
    const struct {
        uint16_t result;
        uint64_t took, lasts;
    } cases[] = {{ETIMEDOUT, 4 * MS, 4 * MS}, {EAGAIN, 4 * MS, 0}, {EINTR, 4 * MS, 0}, {0, 4 * MS, 0}};
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct build b;
            build_open(&b);
            create_all(&b, 2);
            futex(&b, 1, WAIT, 0, 0, cases[i].result, cases[i].took, 0);
            end_all(&b, 2);
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = simulate(&config, build_close(&b), 1);
            ck_assert_uint_ge(end_of(sim, 1), cases[i].lasts);
            ck_assert_uint_lt(end_of(sim, 1), cases[i].lasts + MS);
            sim_free(sim);
        }
}

/* The kernel is called in any case, except under the engines that know their waiters. */
TEST(a_wake_up_of_no_thread) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    futex(&b, 1, WAKE, 0, 1, 0, 0, MS);
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        uint64_t took = sim_call(sim, SIM_FUTEX_WAKE).max_ns;
        uint64_t call_ns = config.host.futex_wake_ns; /* of the machines with software, too */
        if (sync == SIM_DIRECT || sync == SIM_SWITCH || sync == SIM_DELEGATE)
            ck_assert_uint_lt(took, call_ns);
        else
            ck_assert_uint_ge(took, call_ns);
        sim_free(sim);
    }
}

/* What bounds the program: the wait ends with its wake-up, one that found another value with the one before it. */
TEST(bounds) {
    for (int again = 0; again < 2; again++) {
        struct build b;
        build_open(&b);
        create_all(&b, 2);
        futex(&b, 1, WAIT, 0, 1, again ? EAGAIN : 0, 0, MS);
        end(&b, 1, 2 * MS);
        futex(&b, 0, WAKE, 0, 1, 0, 0, 5 * MS);
        end(&b, 0, 0);
        struct sim_bounds bounds = bounds_of(build_close(&b), false);
        ck_assert_uint_eq(bounds.work_ns, 8 * MS);
        ck_assert_uint_eq(bounds.path_ns, 7 * MS);
    }
}

/* The trace lacks the wake-up: the wait ends, and is counted. */
TEST(a_wake_up_that_is_not_there) {
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct build b;
        build_open(&b);
        create_all(&b, 2);
        futex(&b, 1, WAIT, 0, 7, 0, 0, 0);
        end_all(&b, 2);
        struct sim_config config = config_of((enum sim_sync)sync);
        config.let_pass = true;
        struct sim *sim = simulate(&config, build_close(&b), 1);
        ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], 1);
        sim_free(sim);
    }
}
