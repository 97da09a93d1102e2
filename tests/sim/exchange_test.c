/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals on the host that wake another waiter than in the trace: the tables, and cases as host.h says. */
#include "chip.h"
#include "earliest.h"
#include "exchange.h"
#include "host.h"
#include "page.h"
#include "random.h"
#include "ranges.h"

/*
 * Thread 2 waits from the beginning for the second signal, and works for 1 ms behind its wait. Thread 1, which waited
 * for the first, gets a mutex from thread 3 at 12 ms, and comes then. Thread 0 gets another one at 10 ms, and signals
 * at 11 ms and at 14 ms, or first waits for thread 1's end. A chip on which the mutexes are free may have the signals
 * at 2 ms and at 5 ms; but if thread 0 works until 10 ms, no chip has them earlier.
 */
static const struct sbt_trace *a_late_waiter(enum sbt_trace_op second, bool joins_first, bool by_mutex) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    call(&b, 3, SBT_TRACE_MUTEX_LOCK, 2, 0);
    call(&b, 3, SBT_TRACE_MUTEX_LOCK, 3, 0);
    call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 2, 10 * MS);
    call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 3, 2 * MS);
    end(&b, 3, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 2, by_mutex ? 1 * MS : 10 * MS);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 3, 1 * MS);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 3, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
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
    join(&b, 0, 3, 0);
    end(&b, 0, 0);
    return build_close(&b);
}

/* A signal wakes the thread that waits, and the late one waits for the next. Not where the next is a broadcast or
 * cannot come as early on any chip, in the recorded order, or on the paper's machine. */
TEST(a_signal_wakes_a_waiter_that_is_there) {
    static const struct {
        enum sim_sync sync;
        bool recorded;
        enum sbt_trace_op second;
        bool by_mutex;
        uint64_t late_ends, other_ends, n_skipped;
    } cases[] = {
        {SIM_GLIBC, false, SBT_TRACE_COND_SIGNAL, true, 14 * MS, 12 * MS, 0},
        {SIM_DIRECT, false, SBT_TRACE_COND_SIGNAL, true, 14 * MS, 12 * MS, 0},
        {SIM_SWITCH, false, SBT_TRACE_COND_SIGNAL, true, 14 * MS, 12 * MS, 0},
        {SIM_GLIBC, false, SBT_TRACE_COND_SIGNAL, false, 12 * MS, 15 * MS, 1},
        {SIM_DIRECT, false, SBT_TRACE_COND_SIGNAL, false, 12 * MS, 15 * MS, 1},
        {SIM_SWITCH, false, SBT_TRACE_COND_SIGNAL, false, 12 * MS, 15 * MS, 1},
        {SIM_GLIBC, false, SBT_TRACE_COND_BROADCAST, true, 12 * MS, 15 * MS, 1},
        {SIM_GLIBC, true, SBT_TRACE_COND_SIGNAL, true, 12 * MS, 15 * MS, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_config config = host_of(cases[i].sync, 4);
        config.recorded_order = cases[i].recorded;
        for (int spins = 0; spins < 2; spins++) { /* under the engine direct it waits asleep, or looks */
            config.host.spin_ns = spins ? 20 * MS : 0;
            struct sim *sim = simulate_surveyed(&config, a_late_waiter(cases[i].second, false, cases[i].by_mutex), 1);
            ck_assert_uint_eq(result_of(sim, 0, 1).to_ns / US, cases[i].late_ends / US);
            ck_assert_uint_eq(result_of(sim, 0, 2).to_ns / US, cases[i].other_ends / US);
            ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, cases[i].n_skipped);
            sim_free(sim);
        }
    }
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate_surveyed(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, false, true), 1);
        ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, 1);
        sim_free(sim);
    }
}

/* Which signals are broadcasts is not known without a survey. */
TEST(without_a_survey_no_signal_is_exchanged) {
    struct sim_config config = host_of(SIM_GLIBC, 4);
    struct sim *sim = simulate(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, false, true), 1);
    ck_assert_uint_eq(result_of(sim, 0, 1).to_ns, 12 * MS);
    ck_assert_uint_eq(result_of(sim, 0, 2).to_ns, 15 * MS);
    sim_free(sim);
}

/* Thread 0 gives the second signal when the late thread has ended, which waits for it: its own has come. Nothing is let
 * pass, which would fail here. */
TEST(an_exchange_ends_before_no_thread_can_go_on) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT, SIM_SWITCH};
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
        struct sim_config config = host_of(syncs[i], 4);
        config.let_pass = false;
        struct sim *sim = simulate_surveyed(&config, a_late_waiter(SBT_TRACE_COND_SIGNAL, true, true), 1);
        uint64_t to_ns = result_of(sim, 0, 1).to_ns; /* the engine's thread has looked for some microseconds */
        ck_assert(to_ns >= 12 * MS && to_ns <= 12 * MS + 40 * US);
        ck_assert_uint_eq(result_of(sim, 0, 2).to_ns / US, 12 * MS / US);
        ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], 0);
        sim_free(sim);
    }
}

/*
 * Thread 1 awaits the first signal, 2 the second, 3 the third; each has it from another one. Thread 7 makes the order,
 * by a mutex for each step: at 10 ms the first signal, for which only thread 2 is there; at 11 thread 1 comes; at 12
 * the third signal, which wakes thread 1; at 13 the second signal, which is the one for thread 3; at 20 that comes.
 */
static const struct sbt_trace *signals_in_a_ring(void) {
    static const uint32_t thread_of[] = {4, 1, 5, 6, 3}, signal_of[] = {1, 0, 3, 2, 0};
    static const uint64_t at_ms[] = {10, 11, 12, 13, 20};
    struct build b;
    uint64_t ms = 0;
    build_open(&b);
    create_all(&b, 8);
    for (uint32_t i = 0; i < 5; i++)
        call(&b, 7, SBT_TRACE_MUTEX_LOCK, 10 + i, 0);
    for (uint32_t i = 0; i < 5; i++) {
        call(&b, 7, SBT_TRACE_MUTEX_UNLOCK, 10 + i, (at_ms[i] - ms) * MS);
        ms = at_ms[i];
        call(&b, thread_of[i], SBT_TRACE_MUTEX_LOCK, 10 + i, 1 * MS);
        call(&b, thread_of[i], SBT_TRACE_MUTEX_UNLOCK, 10 + i, 0);
        if (signal_of[i] != 0)
            signal_(&b, thread_of[i], SBT_TRACE_COND_SIGNAL, 1, signal_of[i], 0);
    }
    for (uint32_t i = 1; i < 4; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 0);
        wait(&b, i, 1, 0, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    for (uint32_t i = 1; i < 8; i++)
        end(&b, i, 0);
    join_all(&b, 8, 50 * MS);
    return build_close(&b);
}

TEST(a_signal_that_has_come_is_not_exchanged_again) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT, SIM_SWITCH};
    static const uint64_t ends_ms[] = {12, 10, 20};
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
        struct sim_config config = host_of(syncs[i], 8);
        struct sim *sim = simulate_surveyed(&config, signals_in_a_ring(), 1);
        for (uint32_t t = 1; t < 4; t++)
            ck_assert_uint_eq(result_of(sim, 0, t).to_ns / US, ends_ms[t - 1] * MS / US);
        sim_free(sim);
    }
}

/*
 * Some threads signal, others wait, each wait for a signal of its own. Each signal is given by any of the threads that
 * do, and is awaited by any of the others, or by none; some are broadcasts. A mutex makes signals late.
 */
static const struct sbt_trace *some_signals(uint32_t n_threads) {
    enum { N_SIGNALS = 60 };
    uint32_t n_waiters = 1 + below(n_threads - 2);
    struct build b;
    build_open(&b);
    create_all(&b, n_threads);
    for (uint32_t k = 1; k <= N_SIGNALS; k++) {
        uint32_t signaller = 1 + n_waiters + below(n_threads - 1 - n_waiters), waiter = 1 + below(n_waiters);
        bool is_late = below(3) == 0, broadcast = below(20) == 0;
        if (is_late)
            call(&b, signaller, SBT_TRACE_MUTEX_LOCK, 2, below(100) * US);
        signal_(&b, signaller, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 1, k, below(1000) * US);
        if (is_late)
            call(&b, signaller, SBT_TRACE_MUTEX_UNLOCK, 2, below(1000) * US);
        if (below(8) == 0)
            continue;
        call(&b, waiter, SBT_TRACE_MUTEX_LOCK, 0, below(1000) * US);
        wait(&b, waiter, 1, 0, k, 0);
        call(&b, waiter, SBT_TRACE_MUTEX_UNLOCK, 0, below(10) * US);
    }
    end_all(&b, n_threads);
    return build_close(&b);
}

enum { N_TALKS = 80 };

/*
 * Each thread signals, and waits for others' signals. As recorded, signal k was given while its waiter was there, so
 * that the threads could go on in the order of the numbers. A mutex makes some late.
 */
static const struct sbt_trace *some_talk(uint32_t n_threads, bool broadcasts) {
    struct build b;
    build_open(&b);
    create_all(&b, n_threads);
    for (uint32_t k = 1; k <= N_TALKS; k++) {
        uint32_t signaller = 1 + below(n_threads - 1), waiter = 1 + below(n_threads - 2);
        waiter += waiter >= signaller;
        bool is_late = below(3) == 0, broadcast = broadcasts && below(20) == 0;
        if (is_late)
            call(&b, signaller, SBT_TRACE_MUTEX_LOCK, 2, below(100) * US);
        signal_(&b, signaller, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 1, k, below(300) * US);
        if (is_late)
            call(&b, signaller, SBT_TRACE_MUTEX_UNLOCK, 2, below(1000) * US);
        if (below(8) == 0)
            continue;
        call(&b, waiter, SBT_TRACE_MUTEX_LOCK, 0, below(300) * US);
        wait(&b, waiter, 1, 0, k, 0);
        call(&b, waiter, SBT_TRACE_MUTEX_UNLOCK, 0, below(10) * US);
    }
    end_all(&b, n_threads);
    return build_close(&b);
}

/*
 * All waits end, though none is let pass, and all signals have been given. A signal that comes gives one number, so
 * none has been given twice, but for exchanges that were ended.
 */
TEST(no_signal_is_lost) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT, SIM_SWITCH};
    for (uint64_t round = 0; round < 300; round++) {
        random_begin(round);
        uint32_t n_threads = 3 + below(10);
        const struct sbt_trace *trace = some_talk(n_threads, below(2));
        for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
            struct sim_config config = host_of(syncs[i], 1 + below(n_threads));
            config.let_pass = false;
            config.host.spin_ns = below(2) * 20 * US;
            struct sim *sim = simulate_surveyed(&config, trace, 1);
            struct sim_object *c = sim_page_object(sim, &sim->apps[0], 1);
            if (sim->n_exchanged != 0 || c->signals.below != N_TALKS)
                ck_abort_msg("round %ju, %zu: %ju exchanged, given up to %ju", (uintmax_t)round, i,
                             (uintmax_t)sim->n_exchanged, (uintmax_t)c->signals.below);
            ck_assert_uint_ge(sim_summary(sim).makespan_ns, bounds_of(trace, false).path_ns);
            sim_free(sim);
        }
        build_discard();
    }
}

/* And exchanged they are: fewer waits find their signal given than without a survey. */
TEST(with_exchanged_signals_the_critical_path_is_a_bound) {
    static const enum sim_sync syncs[] = {SIM_GLIBC, SIM_DIRECT, SIM_SWITCH};
    uint64_t n_skipped[2] = {0}; /* without, with */
    for (uint64_t round = 0; round < 60; round++) {
        random_begin(round);
        uint32_t n_threads = 3 + below(10);
        const struct sbt_trace *trace = some_signals(n_threads);
        for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
            struct sim_config config = host_of(syncs[i], 1 + below(n_threads));
            for (int surveyed = 0; surveyed < 2; surveyed++) {
                struct sim *sim = surveyed ? simulate_surveyed(&config, trace, 1) : simulate(&config, trace, 1);
                ck_assert_uint_ge(sim_summary(sim).makespan_ns, bounds_of(trace, false).path_ns);
                ck_assert_uint_eq(sim->n_exchanged, 0);
                n_skipped[surveyed] += sim_call(sim, SIM_COND_SKIPPED).n;
                sim_free(sim);
            }
        }
        build_discard();
    }
    ck_assert_uint_lt(n_skipped[1], n_skipped[0]);
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
            ck_assert_int_eq(sim_exchange_has(e, value), found > 0);
            uint64_t comes = sim_exchange_for(e, value);
            ck_assert(found > 0 ? counts_as[comes] == value : comes == value);
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

/* Threads may be far ahead of others: then the table is large, and each exchange looks one number up in it. */
TEST(a_large_table_is_searched_by_either_number) {
    enum { N = 1 << 18 };
    struct sim_exchange *e = NULL;
    for (uint64_t k = 1; k <= N; k++) {
        ck_assert(sim_exchange_put(&e, 2 * k, 2 * k - 1));
        ck_assert_uint_eq(sim_exchange_for(e, 2 * k), 2 * k);
    }
    for (uint64_t k = 1; k <= N; k++)
        ck_assert_uint_eq(sim_exchange_for(e, 2 * k - 1), 2 * k);
    for (uint64_t k = N; k >= 1; k--)
        ck_assert_uint_eq(sim_exchange_take(e, 2 * k), 2 * k - 1);
    ck_assert_uint_eq(e->n, 0);
    ck_assert(!sim_exchange_has(e, 1));
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

/* Each signal has its own time, as long as there is room; then the latest of some in a row. */
TEST(earliest_times_are_bounded_in_memory) {
    struct sim_earliest e = {0}, copy;
    ck_assert_uint_eq(sim_earliest_of(&e, 0, 1), 0);
    for (uint64_t number = 1; number <= 3 * UINT64_C(0x10000); number++)
        for (uint32_t c = 0; c < 2; c++) {
            ck_assert(sim_earliest_put(&e, c, number, 10 * number + c));
            if (sim_earliest_of(&e, c, number) != 10 * number + c)
                ck_abort_msg("condition %u, signal %ju", c, (uintmax_t)number);
        }
    ck_assert(sim_earliest_put(&e, 0, 1000, 1)); /* the later one counts */
    ck_assert_uint_eq(e.n_places, 2 * SIM_EARLIEST_MOST);
    ck_assert_uint_eq(e.shift, 2);
    ck_assert(sim_earliest_copy(&copy, &e));
    for (uint64_t number = 1; number <= 3 * UINT64_C(0x10000); number++)
        for (uint32_t c = 0; c < 2; c++)
            if (sim_earliest_of(&copy, c, number) < 10 * number + c ||
                sim_earliest_of(&copy, c, number) > 10 * (number | 3) + c)
                ck_abort_msg("condition %u, signal %ju", c, (uintmax_t)number);
    ck_assert_uint_eq(sim_earliest_of(&e, 3, 1), 0);
    free(copy.entry);
    free(e.entry);
}

TEST(with_too_many_conditions_no_time_is_known) {
    struct sim_earliest e = {0}, copy;
    for (uint32_t c = 0; c < SIM_EARLIEST_MOST + 10; c++)
        ck_assert(sim_earliest_put(&e, c, 1, 5));
    ck_assert(sim_earliest_copy(&copy, &e));
    ck_assert_uint_eq(sim_earliest_of(&copy, 0, 1), UINT64_MAX);
    free(e.entry);
}

/* Of two that are 2^32 apart none has the other's time, and no block loses its place as blocks become coarser. */
TEST(of_numbers_beyond_32_bits_no_time_is_known) {
    struct sim_earliest e = {0};
    ck_assert(sim_earliest_put(&e, 0, UINT32_MAX, 5));
    ck_assert_uint_eq(sim_earliest_of(&e, 0, UINT32_MAX), 5);
    ck_assert(sim_earliest_put(&e, 0, UINT64_C(1) << 32, 7));
    ck_assert_uint_eq(sim_earliest_of(&e, 0, UINT64_C(1) << 32), UINT64_MAX);
    ck_assert_uint_eq(sim_earliest_of(&e, 0, 1), UINT64_MAX);
    free(e.entry);
}
