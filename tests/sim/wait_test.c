/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions: which signal ends which wait, on both machines. */
#include "build.h"
#include "lib/suite.h"

/* The waiter comes first, or the signal does. */
TEST(a_wait_ends_when_its_signal_has_happened) {
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        for (int early = 0; early < 2; early++)
            for (int broadcast = 0; broadcast < 2; broadcast++) {
                struct build b;
                build_open(&b);
                create_all(&b, 2);
                call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, early ? 9 * MS : 0);
                wait(&b, 1, 1, 0, 1, 10);
                call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 10);
                call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 5 * MS);
                signal_(&b, 0, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 1, 1, MS);
                call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, MS);
                end_all(&b, 2);
                struct sim_config config = config_of((enum sim_sync)sync);
                struct sim *sim = simulate(&config, build_close(&b), 1);
                ck_assert_uint_ge(result_of(sim, 0, 1).to_ns, early ? 9 * MS : 7 * MS); /* and the mutex is free */
                ck_assert_uint_lt(result_of(sim, 0, 1).to_ns, early ? 10 * MS : 8 * MS);
                ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, early);
                ck_assert_uint_eq(sim_call(sim, SIM_COND_WAIT).n, !early);
                sim_free(sim);
            }
}

/* Three threads wait, and the signals come for the last one first: the hardware wakes the first, for which they are
 * not. */
TEST(a_wake_up_for_another_is_passed_on) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, i * 10000);
        wait(&b, i, 1, 0, 4 - i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    for (uint64_t k = 1; k < 4; k++)
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, k, MS);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        for (uint32_t i = 1; i < 4; i++) {
            ck_assert_uint_ge(result_of(sim, 0, i).to_ns, (4 - i) * MS);
            ck_assert_uint_lt(result_of(sim, 0, i).to_ns, (5 - i) * MS);
        }
        if (sync == SIM_SUBUTAI)
            ck_assert_uint_ge(sim_summary(sim).n_passed_on, 2);
        sim_free(sim);
    }
}

/* Recorded in the order 2, 1; executed in the order 1, 2: a window of signals, not a counter. */
TEST(signals_out_of_their_recorded_order) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    call(&b, 3, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 3, 1, 0, 300, 0);
    call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    for (uint64_t k = 151; k <= 300; k++)
        signal_(&b, 1, SBT_TRACE_COND_BROADCAST, 1, k, 10000);
    for (uint64_t k = 1; k <= 150; k++)
        signal_(&b, 2, SBT_TRACE_COND_BROADCAST, 1, k, 100000);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        uint64_t at = result_of(sim, 0, 3).to_ns;
        ck_assert_uint_ge(at, 150 * 10000);
        ck_assert_uint_lt(at, sync == SIM_SOFTWARE ? 8 * MS : 2 * MS);
        sim_free(sim);
    }
}

TEST(a_timed_out_wait_lasts_as_long_as_it_did) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    build_event(&b, 0,
                (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                         .type = SBT_TRACE_COND,
                                         .object = 1,
                                         .other = 0,
                                         .result = ETIMEDOUT,
                                         .took_ns = 7 * MS});
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    build_event(&b, 0,
                (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                         .type = SBT_TRACE_SEM,
                                         .object = 2,
                                         .other = SBT_TRACE_NONE,
                                         .result = ETIMEDOUT,
                                         .took_ns = 3 * MS});
    build_event(&b, 0,
                (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_TRYLOCK,
                                         .type = SBT_TRACE_MUTEX,
                                         .object = 0,
                                         .other = SBT_TRACE_NONE,
                                         .result = EBUSY});
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_ge(result_of(sim, 0, 0).to_ns, 10 * MS);
        ck_assert_uint_lt(result_of(sim, 0, 0).to_ns, 11 * MS);
        sim_free(sim);
    }
}

/*
 * The signaller does not hold the mutex, so its signal comes at any moment of the wait: while that still looks for an
 * ID for the condition, or has found that there is none, or is on its way.
 */
TEST_EACH(a_signal_at_any_moment_of_a_wait, 4) {
    enum { LAST = 6000, STEP = 12 };
    static const enum sbt_trace_op ops[] = {SBT_TRACE_COND_SIGNAL, SBT_TRACE_COND_BROADCAST};
    uint64_t n_skipped = 0, n_waited = 0;
    for (uint64_t at = 0; at < LAST; at += STEP) {
        struct build b;
        build_open(&b);
        create_all(&b, 2);
        lock_nth(&b, 1, 0, 1, 2000);
        build_event(
            &b, 1,
            (struct sbt_trace_event){
                .op = SBT_TRACE_COND_WAIT, .type = SBT_TRACE_COND, .object = 1, .other = 0, .order = 1, .relock = 2});
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        signal_(&b, 0, ops[number % 2], 1, 1, at);
        end_all(&b, 2);
        const struct sbt_trace *trace = build_close(&b);
        for (int n_control = 1; n_control < 4; n_control++)
            for (int recorded = 0; recorded < 2; recorded++) {
                struct sim_config config = config_of(number / 2 == 0 ? SIM_SOFTWARE : SIM_SUBUTAI);
                config.width = 2;
                config.height = 1;
                config.n_control = (uint32_t)n_control;
                config.recorded_order = recorded;
                struct sim *sim = simulate(&config, trace, 1);
                n_skipped += sim_call(sim, SIM_COND_SKIPPED).n;
                n_waited += sim_call(sim, SIM_COND_WAIT).n;
                sim_free(sim);
            }
        build_discard();
    }
    ck_assert_uint_gt(n_skipped, 100);
    ck_assert_uint_gt(n_waited, 100);
}

/*
 * The condition has lived with another mutex: it is moved, which takes a while, to an NI that is full, so the wait is
 * software's. A signal meanwhile goes to the old NI and is over.
 */
TEST_EACH(a_signal_while_its_condition_moves, 2) {
    enum { AT = 100000, FROM = AT + 9500, TO = AT + 11000, STEP = 3 };
    uint64_t n_before = 0, n_after = 0;
    for (uint64_t at = FROM; at < TO; at += STEP) {
        struct build b;
        build_open(&b);
        create_all(&b, 3);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 1000); /* the first tile's, and its condition */
        wait(&b, 1, 1, 0, 1, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 2, 10000); /* the second one's */
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 2, AT);
        wait(&b, 1, 1, 2, 2, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        for (uint32_t m = 3; m <= 5;
             m++) /* the third, the fourth, and the second once more: it is full, and all held */
            call(&b, 2, SBT_TRACE_MUTEX_LOCK, m, m == 3 ? 60000 : 1000);
        for (uint32_t m = 3; m <= 5; m++)
            call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, m, m == 3 ? MS : 0);
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, 20000);
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 2, at);
        end_all(&b, 3);
        struct sim_config config = config_of(SIM_SUBUTAI);
        config.width = config.height = 2;
        config.n_control = 2;
        config.recorded_order = number == 1;
        struct sim *sim = simulate(&config, build_close(&b), 1);
        bool slept = sim_summary(sim).n_futex_waits != 0;
        n_before += !slept;
        n_after += slept;
        sim_free(sim);
        build_discard();
    }
    ck_assert_uint_gt(n_before, 50); /* the sweep covers the wait's beginning */
    ck_assert_uint_gt(n_after, 50);
}
