/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits by calling and by looking, on the host: cases as host.h says. */
#include "host.h"

/* Thread 1 has mutex 0 for `held`. Thread 0 tries from 1 us on: it fails three times, `gap` apart, and then has it. */
static const struct sbt_trace *that_polls(uint64_t held, uint64_t gap, bool succeeds) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    for (int i = 0; i < 3; i++)
        trylock(&b, 0, 0, i == 0 ? 1 * US : gap, EBUSY);
    if (succeeds) {
        trylock(&b, 0, 0, gap, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    join_all(&b, 2, 5 * US);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, held);
    end(&b, 1, 0);
    return build_close(&b);
}

TEST(a_poll_ends_when_the_mutex_is_free) {
    static const struct {
        uint64_t held, gap, ends, polls;
        bool succeeds;
    } cases[] = {
        {10 * US, 100, 15 * US, 3, true},        /* held for longer than in the trace */
        {500, 100, 6 * US, 3, true},             /* free when the poll begins: no trylock fails */
        {500, 1001, 6 * US + 3003, 0, true},     /* too much work between two: no poll */
        {500, 100, 6 * US + 200, 0, false},      /* the thread gave up: no poll */
        {5 * MS, 100, 5 * MS + 5 * US, 3, true}, /* it polls for all that time */
    };
    for (enum sim_sync sync = SIM_GLIBC; sync <= SIM_SWITCH; sync++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct sim_config config = host_of(sync, 2);
            struct sim_summary s;
            const struct sbt_trace *trace = that_polls(cases[i].held, cases[i].gap, cases[i].succeeds);
            ck_assert_uint_eq(run_one(&config, trace, 0, &s).to_ns, cases[i].ends);
            ck_assert_uint_eq(s.n_polls, cases[i].polls);
            ck_assert_uint_eq(s.n_futex_waits, 0);
            ck_assert_uint_eq(s.n_events, sbt_trace_info(trace)->n_events);
            ck_assert_uint_le(bounds_of(trace, false).path_ns, cases[i].ends);
        }
}

/* The owner sleeps for an hour. Yields that find no other thread are one step. */
TEST(a_long_poll_takes_few_steps) {
    for (enum sim_sync sync = SIM_GLIBC; sync <= SIM_SWITCH; sync++) {
        struct build b;
        build_open(&b);
        create(&b, 0, 1, 0);
        trylock(&b, 0, 0, 1 * US, EBUSY);
        trylock(&b, 0, 0, 0, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        join_all(&b, 2, 0);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
        sleep_for(&b, 1, 3600 * 1000 * MS);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end(&b, 1, 0);
        struct sim_config config = host_of(sync, 2);
        struct sim_summary s;
        ck_assert_uint_eq(run_one(&config, build_close(&b), 0, &s).to_ns, 3600 * 1000 * MS);
        ck_assert_uint_le(s.n_steps, 100);
    }
}

TEST(the_chip_replays_trylocks_as_they_were) {
    for (enum sim_sync sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of(sync);
        struct sim *sim = simulate(&config, that_polls(10 * US, 100, true), 1);
        ck_assert_uint_eq(sim_call(sim, SIM_TRYLOCK).n, 3);
        ck_assert_uint_eq(sim_summary(sim).n_polls, 0);
        sim_free(sim);
    }
}

/*
 * One core. Thread 1 has the mutex and 100 us of work, and thread 0, which it has woken, polls. Under glibc that lasts
 * until the tick at 4 ms. The engine yields after four trylocks that failed (4 x 100 ns). Its semaphore takes 40 ns to
 * sleep.
 */
TEST(polling_threads_yield_under_the_engine) {
    static const uint64_t ends[] = {4 * MS + 100 * US, 100 * US + 440};
    for (int i = 0; i < 2; i++) {
        struct build b;
        build_open(&b);
        init(&b, 0, SBT_TRACE_SEM, 1, 0);
        create(&b, 0, 1, 0);
        sem(&b, 0, SBT_TRACE_SEM_WAIT, 1, 1, 0);
        trylock(&b, 0, 0, 0, EBUSY);
        trylock(&b, 0, 0, 100, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end(&b, 0, 0);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
        sem(&b, 1, SBT_TRACE_SEM_POST, 1, 1, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 100 * US);
        end(&b, 1, 0);
        struct sim_config config = host_of(i == 0 ? SIM_GLIBC : SIM_DIRECT, 1);
        /* Thread 0 takes the core when it is woken. */
        config.host.effects &= ~(uint32_t)(SIM_HOST_PROTECT | SIM_HOST_DELAY);
        ck_assert_uint_eq(run_one(&config, build_close(&b), 0, NULL).to_ns, ends[i]);
    }
}

/*
 * One core. Thread 0 takes the mutex by trylock and releases it; it has 10 us to work, and thread 1, which is ready,
 * has 100. While threads are switched the unlock gives the core away; a thread of the kernel's keeps it: no trylock
 * failed.
 */
TEST(an_unlock_behind_a_trylock_yields_to_fibers) {
    static const uint64_t ends[] = {10 * US, 10 * US, 110 * US};
    for (enum sim_sync sync = SIM_GLIBC; sync <= SIM_SWITCH; sync++) {
        struct build b;
        build_open(&b);
        create(&b, 0, 1, 0);
        trylock(&b, 0, 0, 0, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end(&b, 0, 10 * US);
        end(&b, 1, 100 * US);
        struct sim_config config = host_of(sync, 1);
        ck_assert_uint_eq(run_one(&config, build_close(&b), 0, NULL).to_ns, ends[sync - SIM_GLIBC]);
    }
}

/* Thread 0 looks for `looks` without mutex 0, takes it by trylock, and waits. Thread 1 broadcasts after `works`. */
static const struct sbt_trace *that_looks(uint64_t looks, uint64_t works) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    trylock(&b, 0, 0, looks, 0);
    wait(&b, 0, 1, 0, 1, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 0, 5 * US);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, works);
    signal_(&b, 1, SBT_TRACE_COND_BROADCAST, 1, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 1, 0);
    return build_close(&b);
}

TEST(a_look_ends_with_the_signal) {
    static const struct {
        uint64_t looks, works, ends;
    } cases[] = {
        {100 * US, 30 * US, 35 * US},   /* the look is cut short */
        {100 * US, 200 * US, 205 * US}, /* it is over, and the thread waits */
    };
    for (enum sim_sync sync = SIM_GLIBC; sync <= SIM_SWITCH; sync++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct sbt_trace *trace = that_looks(cases[i].looks, cases[i].works);
            struct sim_config config = host_of(sync, 2);
            struct sim *sim = simulate(&config, trace, 1);
            /* Thread 1 has the mutex at that moment. A fiber that waits is moved. */
            uint64_t queue_ns = (i == 0 && sync != SIM_GLIBC) || sync == SIM_DIRECT ? 40 : 0;
            ck_assert_uint_eq(result_of(sim, 0, 0).to_ns, cases[i].ends + queue_ns);
            ck_assert_uint_eq(sim_summary(sim).n_looks, 1);
            ck_assert_uint_eq(sim_call(sim, SIM_COND_SKIPPED).n, i == 0);
            sim_free(sim);
            ck_assert_uint_eq(bounds_of(trace, false).path_ns, cases[i].works + 5 * US);
            config.recorded_order = true;
            sim = simulate(&config, trace, 1);
            ck_assert_uint_eq(sim_summary(sim).n_looks, 0);
            sim_free(sim);
        }
}

/* One core: the tick at 4 ms takes it from the look, for thread 1 with its 1 ms. The look has ended when it is back. */
TEST(a_look_without_a_core_ends_with_the_signal) {
    struct sim_config config = host_of(SIM_GLIBC, 1);
    ck_assert_uint_eq(run_one(&config, that_looks(10 * MS, 1 * MS), 0, NULL).to_ns, 5 * MS + 5 * US);
}

/* Other work between an unlock and a trylock: the wait behind it is of another mutex, or there is none. */
TEST(work_before_a_trylock_is_work) {
    for (int other = 0; other < 2; other++) {
        struct build b;
        build_open(&b);
        create(&b, 0, 1, 0);
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 2, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        trylock(&b, 0, 2, 100 * US, 0);
        if (other)
            wait(&b, 0, 1, 0, 1, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end(&b, 0, 0);
        signal_(&b, 1, SBT_TRACE_COND_BROADCAST, 1, 1, 30 * US);
        end(&b, 1, 0);
        struct sim_config config = host_of(SIM_GLIBC, 2);
        struct sim_summary s;
        ck_assert_uint_eq(run_one(&config, build_close(&b), 0, &s).to_ns, 100 * US);
        ck_assert_uint_eq(s.n_looks, 0);
    }
}
