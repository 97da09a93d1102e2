/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals on the host that wake another waiter than in the trace: the tables, and cases as host.h says. */
#include "exchange.h"
#include "host.h"
#include "random.h"
#include "ranges.h"

/* With its survey, from which the broadcasts are known. */
static struct sim *replay(const struct sim_config *config, const struct sbt_trace *trace) {
    struct sim_error error = {.text = ""};
    enum sim_status status;
    struct sim_survey *survey = sim_survey_new(trace, "test", config->recorded_order, false, &status, &error);
    ck_assert_msg(survey != NULL, "%s", error.text);
    struct sim *sim = sim_new(config, &error);
    ck_assert_msg(sim != NULL, "%s", error.text);
    ck_assert_int_eq(sim_add_surveyed(sim, trace, survey, "test", &error), SIM_OK);
    sim_survey_free(survey);
    ck_assert_msg(sim_run(sim, &error) == SIM_OK, "%s", error.text);
    return sim;
}

/*
 * Thread 2 waits from the beginning for the second signal, and works for 1 ms behind its wait. Thread 1, which waited
 * for the first, comes at 2 ms. Thread 0 signals at 1 ms and at 4 ms, or first waits for thread 1's end.
 */
static const struct sbt_trace *a_late_waiter(enum sbt_trace_op second, bool joins_first) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 2 * MS);
    wait(&b, 1, 1, 0, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 1, 0);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 2, 1, 0, 2, 0);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 2, 1 * MS);
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, 1 * MS);
    if (joins_first)
        join(&b, 0, 1, 0);
    signal_(&b, 0, second, 1, 2, 3 * MS);
    if (!joins_first)
        join(&b, 0, 1, 0);
    join(&b, 0, 2, 0);
    end(&b, 0, 0);
    return build_close(&b);
}

/* A signal wakes the thread that waits, and the late one waits for the next. Not where the next is a broadcast, in the
 * recorded order, or on the paper's machine. */
TEST(a_signal_wakes_a_waiter_that_is_there) {
    static const struct {
        enum sim_sync sync;
        bool recorded;
        enum sbt_trace_op second;
        uint64_t late_ends, other_ends, n_skipped;
    } cases[] = {
        {SIM_GLIBC, false, SBT_TRACE_COND_SIGNAL, 4 * MS, 2 * MS, 0},
        {SIM_DIRECT, false, SBT_TRACE_COND_SIGNAL, 4 * MS, 2 * MS, 0},
        {SIM_SWITCH, false, SBT_TRACE_COND_SIGNAL, 4 * MS, 2 * MS, 0},
        {SIM_GLIBC, false, SBT_TRACE_COND_BROADCAST, 2 * MS, 5 * MS, 1},
        {SIM_GLIBC, true, SBT_TRACE_COND_SIGNAL, 2 * MS, 5 * MS, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_config config = host_of(cases[i].sync, 3);
        config.recorded_order = cases[i].recorded;
        for (int spins = 0; spins < 2; spins++) { /* under the engine direct it waits asleep, or looks */
            config.host.spin_ns = spins ? 10 * MS : 0;
            struct sim *sim = replay(&config, a_late_waiter(cases[i].second, false));
            ck_assert_uint_eq(result_of(sim, 0, 1).to_ns / US, cases[i].late_ends / US);
            ck_assert_uint_eq(result_of(sim, 0, 2).to_ns / US, cases[i].other_ends / US);
            ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, cases[i].n_skipped);
            sim_free(sim);
        }
    }
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = replay(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, false));
        ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, 1);
        sim_free(sim);
    }
}

/* Which signals are broadcasts is not known without a survey. */
TEST(without_a_survey_no_signal_is_exchanged) {
    struct sim_config config = host_of(SIM_GLIBC, 3);
    struct sim *sim = simulate(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, false), 1);
    ck_assert_uint_eq(result_of(sim, 0, 1).to_ns, 2 * MS);
    ck_assert_uint_eq(result_of(sim, 0, 2).to_ns, 5 * MS);
    sim_free(sim);
}

/* Thread 0 gives the second signal when the late thread has ended, which waits for it: its own has come. Nothing is let
 * pass, which would fail here. */
TEST(an_exchange_ends_before_no_thread_can_go_on) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT, SIM_SWITCH};
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
        struct sim_config config = host_of(syncs[i], 3);
        config.let_pass = false;
        struct sim *sim = replay(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, true));
        uint64_t to_ns = result_of(sim, 0, 1).to_ns; /* the engine's thread has looked for some microseconds */
        ck_assert(to_ns >= 2 * MS && to_ns <= 2 * MS + 40 * US);
        ck_assert_uint_eq(result_of(sim, 0, 2).to_ns / US, 2 * MS / US);
        ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], 0);
        sim_free(sim);
    }
}

/*
 * As a_mutex_of_a_condition_is_not_acquired_long_before_its_turn, beside n threads that have nothing to do with the
 * mutex: it has two threads all the same, and 8 places. With 130 threads in all a bit stands for 130 / 64 threads: 5
 * instead of 2, and 20 places.
 */
TEST(only_the_threads_of_a_mutex_come_early) {
    static const struct {
        uint32_t n_others;
        uint64_t order, ends;
    } cases[] = {{0, 12, 1 * MS},   {0, 13, 11 * MS},  {20, 12, 1 * MS},
                 {20, 13, 11 * MS}, {128, 24, 1 * MS}, {128, 25, 11 * MS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n = 2 + cases[i].n_others;
        struct build b;
        build_open(&b);
        create_all(&b, n);
        for (uint32_t k = 2; k < n; k++)
            sleep_for(&b, k, 20 * MS);
        lock_nth(&b, 1, 0, 1, 0);
        wait(&b, 1, 1, 0, 1, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        lock_nth(&b, 1, 0, 4, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        lock_nth(&b, 1, 0, cases[i].order, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        lock_nth(&b, 0, 0, 2, 1 * MS);
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        lock_nth(&b, 0, 0, 5, 10 * MS);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end_all(&b, n);
        struct sim_config config = host_of(SIM_GLIBC, 2);
        ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, cases[i].ends);
    }
}

/* ---- the tables ---- */

enum { N_NUMBERS = 300 };

TEST(a_table_of_exchanges_has_what_was_put_in) {
    struct sim_exchange *e = NULL;
    uint64_t counts_as[N_NUMBERS + 1] = {0}; /* 0: not in it */
    random_begin(1);
    for (int step = 0; step < 200000; step++) {
        uint64_t number = 1 + below(N_NUMBERS), found = 0, put = below(3);
        if (put == 0 && counts_as[number] == 0) {
            counts_as[number] = 1000 + below(50);
            ck_assert(sim_exchange_put(&e, number, counts_as[number]));
        } else if (put == 1) {
            ck_assert_uint_eq(sim_exchange_take(e, number), counts_as[number] != 0 ? counts_as[number] : number);
            counts_as[number] = 0;
        } else if (put == 2 && step % 8 == 0) {
            uint64_t value = 1000 + below(50), n = e != NULL ? e->n : 0;
            for (uint64_t k = 1; k <= N_NUMBERS; k++)
                found += counts_as[k] == value;
            ck_assert_int_eq(sim_exchange_end(e, value), found > 0);
            ck_assert_uint_eq(e != NULL ? e->n : 0, n - (found > 0));
            for (uint64_t k = 1; found > 0 && k <= N_NUMBERS; k++) /* which of them is the table's to say */
                if (counts_as[k] == value) {
                    uint64_t left = sim_exchange_take(e, k);
                    if (left == value)
                        ck_assert(sim_exchange_put(&e, k, value));
                    else
                        counts_as[k] = 0;
                }
        }
    }
    sim_exchange_free(e);
}

TEST(ranges_have_their_numbers) {
    struct sim_ranges r = {0}, copy;
    uint32_t last[3] = {0};
    for (uint64_t number = 1; number < 100; number++)
        for (uint32_t object = 0; object < 3; object++)
            if (number % (object + 2) != 0)
                ck_assert(sim_ranges_add(&r, object, number, &last[object]));
    ck_assert(sim_ranges_may_have(&r, 0, 2)); /* not known yet */
    sim_ranges_done(&r);
    ck_assert_uint_eq(r.n, 50 + 33 + 25);
    ck_assert(sim_ranges_copy(&copy, &r));
    for (uint64_t number = 1; number < 100; number++)
        for (uint32_t object = 0; object < 4; object++)
            ck_assert_int_eq(sim_ranges_may_have(&copy, object, number), object < 3 && number % (object + 2) != 0);
    free(r.range);
    free(copy.range);
}

TEST(too_many_ranges_may_have_all_numbers) {
    struct sim_ranges r = {0};
    for (uint64_t i = 0; i < SIM_RANGES_MOST + UINT64_C(10); i++)
        ck_assert(sim_ranges_add(&r, 0, 2 * i + 1, &(uint32_t){0}));
    sim_ranges_done(&r);
    ck_assert_uint_eq(r.n, SIM_RANGES_MOST);
    ck_assert(sim_ranges_may_have(&r, 0, 2));
    free(r.range);
}
