/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's scheduler and carriers, and the model that is made of measured costs: cases as host.h says. */
#include "host.h"

static const struct sbt_trace *two_that_compute(uint64_t work) {
    return that_compute(2, (const uint64_t[]){work, work});
}

static const struct sbt_trace *three_that_compute(uint64_t work0, uint64_t work1, uint64_t work2) {
    return that_compute(3, (const uint64_t[]){work0, work1, work2});
}

/* On one core they take turns at each tick: thread 0 has it from 0, 8, 16, 24 and 32 ms on for 4 ms. */
TEST(two_threads_share_a_core_by_ticks) {
    struct sim_config config = host_of(SIM_GLIBC, 1);
    const struct sbt_trace *trace = two_that_compute(20 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 40 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).in_ns[SIM_READY], 20 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 16 * MS);
    config.host.switch_ns = 1000; /* each turn begins with a switch, so both need a sixth turn */
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 40 * MS + 12 * 1000);
    config.host.switch_ns = 0;
    config.host.effects &= ~(uint32_t)SIM_HOST_SLICES;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 0);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).in_ns[SIM_READY], 20 * MS);
}

TEST(two_cores_do_it_at_once) {
    struct sim_config config = host_of(SIM_GLIBC, 2);
    const struct sbt_trace *trace = two_that_compute(20 * MS);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 20 * MS);
    /* Thread 0 begins when thread 1 has a core. Half of its work waits for memory, and one core takes all that the
     * memory gives. */
    config.host.memory_share = 500;
    config.host.memory_cores = config.host.recorded_cores = 1000;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 30 * MS);
    config.host.memory_cores = 1600; /* 2 / 1.6 as long, in that half */
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 22500 * US);
    config.host.memory_cores = 2000;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 20 * MS);
    config.host.memory_cores = 1000; /* recorded with 2 cores: the work has been slowed down already */
    config.host.recorded_cores = 2000;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 20 * MS);
    config.n_cores = config.width = 1; /* what takes 1.5 there takes 1 here: 2 x 13.3 ms, in turns */
    ck_assert_uint_le(run_one(&config, trace, 1, NULL).to_ns, 26667 * US);
    ck_assert_uint_ge(run_one(&config, trace, 1, NULL).to_ns, 26660 * US);
    config.n_cores = config.width = 2;
    config.host.recorded_cores = 1000;
    config.host.effects &= ~(uint32_t)SIM_HOST_MEMORY;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 20 * MS);
}

/*
 * One core. Thread 1 sleeps, thread 0 has worked for `work` when it wakes thread 1, and works on. Thread 1, with 1 ms
 * of work, takes the core at once if thread 0 is beyond its slice. Else that is protected, and goes on to the tick at 4
 * ms; without that effect it loses the core at once. Without preemption it is as with protection.
 */
TEST_EACH(a_woken_thread_takes_the_core, 3) {
    static const uint64_t work[] = {1 * MS, 2 * MS},
                          ends[3][2] = {{5 * MS, 3 * MS}, {2 * MS, 3 * MS}, {5 * MS, 3 * MS}};
    for (int i = 0; i < 2; i++) {
        struct build b;
        build_open(&b);
        init(&b, 0, SBT_TRACE_SEM, 0, 0);
        init(&b, 0, SBT_TRACE_SEM, 1, 0);
        create(&b, 0, 1, 0);
        sem(&b, 0, SBT_TRACE_SEM_WAIT, 1, 1, 0); /* until thread 1 is there, and about to sleep */
        sem(&b, 1, SBT_TRACE_SEM_POST, 1, 1, 0);
        sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 0);
        sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, work[i]);
        end(&b, 1, 1 * MS);
        join_all(&b, 2, 10 * MS);
        struct sim_config config = host_of(SIM_GLIBC, 1);
        config.host.late_busy_ns = config.host.wake_idle_ns = 7 * US; /* of wake-ups on other cores */
        if (number > 0)
            config.host.effects &= ~(uint32_t)(number == 1 ? SIM_HOST_PROTECT : SIM_HOST_PREEMPT);
        struct sim_summary s;
        ck_assert_uint_eq(run_one(&config, build_close(&b), 1, &s).to_ns, ends[number][i]);
        ck_assert_uint_eq(s.makespan_ns, 11 * MS + work[i]);
    }
}

/*
 * One core. Threads 1 and 2 wake each other after each 100 us of work; thread 3 computes. The pair is one runnable
 * thread, so that it and thread 3 have half of the core each: neither keeps the core from the other.
 */
TEST(a_thread_that_is_woken_often_gets_no_more_than_its_share) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 1);
    init(&b, 0, SBT_TRACE_SEM, 2, 0);
    create_all(&b, 4);
    for (uint32_t k = 0; k < 1000; k++)
        for (uint32_t i = 1; i < 3; i++) {
            sem(&b, i, SBT_TRACE_SEM_WAIT, i, k + (i == 2), 0);
            sem(&b, i, SBT_TRACE_SEM_POST, 3 - i, k + 1, 100 * US);
        }
    end(&b, 1, 0);
    end(&b, 2, 0);
    end(&b, 3, 100 * MS);
    join_all(&b, 4, 0);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    struct sim_thread_result r = run_one(&config, build_close(&b), 3, NULL);
    ck_assert_uint_ge(r.to_ns, 180 * MS);
    ck_assert_uint_le(r.to_ns, 240 * MS);
}

/*
 * Thread 1 sleeps from the beginning, thread 2 computes on the core where thread 1 was. At 0.5 ms thread 0 wakes thread
 * 1, which has 1 ms of work: with a third core it goes there and begins 5 us later; with two it takes that core at
 * once, if thread 2 is not protected, or waits for the tick at 4 ms.
 */
TEST(a_woken_thread_goes_to_an_idle_core) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    create(&b, 0, 1, 0);
    create(&b, 0, 2, 10 * US);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 0);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, 490 * US);
    end(&b, 1, 1 * MS);
    end(&b, 2, 20 * MS);
    join_all(&b, 3, 20 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_summary s;
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.late_deep_ns = 5 * US;
    config.host.effects &= ~(uint32_t)(SIM_HOST_BALANCE | SIM_HOST_PREEMPT);
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 5 * MS);
    config.host.effects |= SIM_HOST_PREEMPT;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 5 * MS);
    config.host.effects &= ~(uint32_t)SIM_HOST_PROTECT;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1500 * US);
    config.host.wake_idle_ns = 2 * US; /* an interrupt: for the waker, and until it comes */
    config.host.late_busy_ns = 3 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1505 * US);
    uint64_t uninterrupted = run_one(&config, trace, 2, NULL).to_ns; /* thread 2 computes there, and loses so much: */
    config.host.interrupt_ns = 9 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 1505 * US);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, uninterrupted + 9 * US);
    config.host.effects &= ~(uint32_t)SIM_HOST_INTERRUPTS;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, uninterrupted);
    config = host_of(SIM_GLIBC, 3);
    config.host.late_deep_ns = 5 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1500 * US + 5 * US);
    config.host.effects &= ~(uint32_t)SIM_HOST_LATENCY;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1500 * US);
}

/* Three threads on two cores: thread 2 shares one. The core of the thread that ends takes it, unless threads are
 * pinned. */
TEST(a_core_that_goes_idle_takes_a_cold_thread) {
    const struct sbt_trace *trace = three_that_compute(20 * MS, 2 * MS, 20 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 22 * MS);
}

/*
 * The same, but thread 1 ends at 4.1 ms. At 4 ms thread 2 has followed thread 0, and the cache of thread 0 is warm
 * at 4.1: the idle core leaves it, and gets it at the tick at 8 ms.
 */
TEST(a_core_that_goes_idle_leaves_a_warm_thread) {
    const struct sbt_trace *trace = three_that_compute(20 * MS, 4100 * US, 20 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 4 * MS);
    config.host.hot_ns = 0;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_READY], 100 * US);
}

/* Three threads that compute on two cores: now and then one changes the core, unless that is left out. */
TEST(busy_cores_exchange_threads) {
    const struct sbt_trace *trace = three_that_compute(300 * MS, 300 * MS, 300 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    struct sim_summary s;
    run_one(&config, trace, 0, &s);
    ck_assert_uint_ge(s.n_migrations, 4);
    config.host.effects &= ~(uint32_t)SIM_HOST_BALANCE;
    run_one(&config, trace, 0, &s);
    ck_assert_uint_le(s.n_migrations, 1); /* when the first thread has ended */
}

/* A thread that is woken finds its own core idle, and stays there: no core changes to another thread. */
TEST(a_woken_thread_stays_on_its_core) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    for (uint32_t k = 0; k < 10; k++)
        for (uint32_t i = 0; i < 2; i++)
            sleep_for(&b, i, 1 * MS);
    end(&b, 1, 0);
    join_all(&b, 2, 1 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 4);
    struct sim_summary s;
    run_one(&config, build_close(&b), 0, &s);
    ck_assert_uint_eq(s.n_switches, 2);
}

/*
 * One core. Thread 0 computes until the tick at 4 ms, then thread 1 for 3 ms, sleeps for 0.1 ms, and has 1 ms to go. It
 * takes the core back from thread 0, which is alone. If thread 2 is there, too, and computes since 7 ms, thread 1 has
 * run more than the mean of 0, 1 and 2 (4, 3 and 0.1 ms) and waits; the mean is above it at the tick at 12 ms.
 */
TEST_EACH(a_debt_is_forgiven_if_no_other_thread_is_ready, 2) {
    struct build b;
    build_open(&b);
    uint32_t n = number == 0 ? 2 : 3;
    create_all(&b, n);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 3 * MS);
    sleep_for(&b, 1, 100 * US);
    end(&b, 1, 1 * MS);
    if (n == 3)
        end(&b, 2, 20 * MS);
    join_all(&b, n, 20 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, number == 0 ? 8100 * US : 13 * MS);
}

/*
 * One core. Thread 0 computes until the tick at 4 ms, then thread 1, until it sleeps at once: with a credit, as the
 * mean is 2 ms. At 5 ms thread 0 wakes it. Thread 0 is within its slice (from 4 to 5.4 ms), but has run more than the
 * mean, so it is not protected: thread 1 has its 1 ms of work at once.
 */
TEST(a_thread_that_has_run_more_than_the_mean_is_not_protected) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    create_all(&b, 2);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 0);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, 5 * MS);
    end(&b, 1, 1 * MS);
    join_all(&b, 2, 20 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, 6 * MS);
}

/*
 * One core. Thread 0 computes until the tick at 4 ms, then thread 1 for 3 ms; thread 1 sleeps, and has 1 ms to go. It
 * has run more than the mean of 4, 3 and 0 ms, so it is delayed. Thread 2 computes from 7 ms on; the mean reaches 3 ms
 * at 9 ms.
 *  - Woken at 7.9 ms thread 1 has its debt still, and waits for the tick at 12 ms, where its deadline is the first.
 *  - Woken at 9.2 ms it has no debt any more. But thread 2 has a new slice, from 1 to 2.4 ms of its time, and has
 * run 2.2 ms: it is protected, to the next tick.
 *  - Woken at 9.5 ms it takes the core.
 *  - At 12 ms the mean is 4 ms, and thread 1 would run next: it is delayed no more, and has no credit. Thread 0 runs.
 * Woken at 13 ms thread 1 comes behind thread 2 of the same deadline, which has the core from 16 to 20 ms. Without
 * delays it has slept its debt of 0.67 ms off at 7.9 ms, and takes the core, since thread 2 is beyond its first slice.
 */
TEST_EACH(a_thread_that_sleeps_with_a_debt_is_delayed, 6) {
    static const struct {
        uint64_t sleeps_us, end_us;
        uint32_t without;
    } cases[] = {{900, 13000, 0},
                 {2200, 13000, 0},
                 {2500, 10500, 0},
                 {2200, 10200, SIM_HOST_PROTECT},
                 {900, 8900, SIM_HOST_DELAY},
                 {6000, 21000, 0}};
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 3 * MS);
    sleep_for(&b, 1, cases[number].sleeps_us * US);
    end(&b, 1, 1 * MS);
    end(&b, 2, 20 * MS);
    join_all(&b, 3, 20 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    config.host.effects &= ~cases[number].without;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, cases[number].end_us * US);
}

/* One core: the thread that opens a barrier wakes three, in 1 us each, before the first of them runs. */
TEST(a_waker_is_preempted_when_it_has_woken_all) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 4);
    create_all(&b, 4);
    sleep_for(&b, 0, 1 * MS); /* the others come first */
    for (uint32_t i = 0; i < 4; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
    for (uint32_t i = 1; i < 4; i++)
        end(&b, i, 0);
    join_all(&b, 4, 3 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    config.host.wake_busy_ns = 1 * US;
    config.host.fall_asleep_ns = 2 * US;
    for (uint32_t i = 1; i < 4; i++) {
        struct sim_thread_result r = run_one(&config, trace, i, NULL);
        ck_assert_uint_eq(r.to_ns, 1003 * US);
        ck_assert_uint_eq(r.in_ns[SIM_CALL], 2 * US);
    }
}

/*
 * Two cores. Threads 1 and 2 wait on core 1. At 100 us thread 0 wakes both. The idle core costs it 2 us, and begins 10
 * us later; thread 2 costs 1 us, since that core has been interrupted, and takes nothing from thread 1, which is first.
 */
TEST(a_core_that_has_not_begun_is_not_interrupted_again) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 3);
    create(&b, 0, 1, 0);
    create(&b, 0, 2, 10 * US);
    for (uint32_t i = 0; i < 3; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, i == 0 ? 90 * US : 0);
    end(&b, 1, 50 * US);
    end(&b, 2, 50 * US);
    join_all(&b, 3, 1 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.wake_idle_ns = 2 * US;
    config.host.wake_busy_ns = 1 * US;
    config.host.late_idle_ns = config.host.late_busy_ns = 10 * US;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_CALL], 3 * US);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 162 * US);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 212 * US);
}

/*
 * Two cores. On core 1 thread 1 computes until thread 2 has it from 4 ms on, for 1 us: as thread 2 sleeps it has a
 * credit. Thread 0 wakes both there, thread 1 first. The core begins 5 us later, and chooses: thread 2 does not wait
 * for thread 1's slice.
 */
TEST(a_core_chooses_when_it_begins) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    create(&b, 0, 3, 10 * US); /* on core 0, so that thread 2 is on core 1 */
    create(&b, 0, 2, 0);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 5 * MS);
    sem(&b, 2, SBT_TRACE_SEM_WAIT, 1, 1, 1 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, 10 * MS);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 1 * US);
    end(&b, 1, 20 * MS);
    end(&b, 2, 1 * MS);
    end(&b, 3, 0);
    join_all(&b, 4, 30 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.late_deep_ns = config.host.late_idle_ns = 5 * US;
    config.host.effects &= ~(uint32_t)SIM_HOST_BALANCE;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 11015 * US);
    config.host.late_deep_ns = config.host.late_idle_ns = 0;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 11011 * US);
}

/*
 * Two cores. Threads 1, 3 and 5 have ended on core 1 at once; 0, 2, 4 and 6 are on core 0, all warm. At the tick at 4
 * ms two of the four change to core 1, and work there until 7 and 10 ms.
 */
TEST(an_idle_core_gets_half_at_a_tick) {
    const struct sbt_trace *trace =
        that_compute(9, (const uint64_t[]){5 * MS, US, 3 * MS, US, 3 * MS, US, 3 * MS, US, 3 * MS});
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.hot_ns = 1000 * MS;
    config.host.effects &= ~(uint32_t)SIM_HOST_BALANCE;
    uint64_t sum = 0, last = 0;
    struct sim_summary s;
    for (uint32_t i = 2; i < 9; i += 2) {
        uint64_t to = run_one(&config, trace, i, &s).to_ns;
        sum += to;
        last = to > last ? to : last;
    }
    ck_assert_uint_eq(s.n_migrations, 2);
    ck_assert_uint_eq(last, 10 * MS);
    ck_assert_uint_eq(sum, 34 * MS);
    config.host.idle_entry_ns =
        5 * MS; /* core 1 is on its way to being idle, from 4 us on; no carrier searches there */
    config.host.search_ns = 30 * US;
    ck_assert_uint_eq(run_one(&config, trace, 6, NULL).to_ns, 11 * MS + 4 * US);
}

/* What is made of measured costs: slices by the number of cores, and differences. */
TEST(the_model_of_measured_costs) {
    static const uint32_t n_cores[] = {1, 2, 3, 4, 8, 64};
    static const uint64_t slices[] = {700 * US, 1400 * US, 1400 * US, 2100 * US, 2800 * US, 2800 * US};
    struct sim_host_costs costs = sim_host_costs_reference();
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, n_cores[i]).slice_ns, slices[i]);
    costs.kernel.slice_ns = 20e6; /* longer than Linux's own by more than ticks explain: a setting */
    costs.kernel.tick_ns = 4e6;
    costs.kernel.sleep_ns = 800;
    costs.kernel.wait_changed_ns = 300;
    costs.kernel.wake_nobody_ns = 200;
    costs.kernel.wake_busy_ns = 900;
    costs.kernel.wake_remote_ns = 2000;
    costs.kernel.interrupt_ns = 1700;
    costs.core.line_after_work_ns = 40;
    costs.kernel.wake_idle_ns = 6000;
    costs.kernel.idle_entry_ns = 8000;
    costs.kernel.wake_soon_ns = 1000;
    costs.kernel.latency_soon_ns = 9000;
    costs.kernel.wake_short_ns = 5000;
    costs.kernel.latency_short_ns = 15000;
    costs.kernel.latency_busy_ns = 12000;
    costs.kernel.latency_idle_ns = 20000;
    costs.kernel.switch_ns = 600;
    costs.glibc.barrier_ns = 206; /* with a call in vain */
    costs.direct.barrier_ns = 7;
    costs.memory.core_bytes_per_ns = 20;
    costs.memory.all_bytes_per_ns = 30;
    struct sim_host_model model = sim_host_model_of(&costs, SIM_HOST_GLIBC, 2);
    ck_assert_uint_eq(model.slice_ns, 18 * MS);
    ck_assert_uint_eq(model.barrier_ns, 6);
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_DIRECT, 2).barrier_ns, 7);
    ck_assert_uint_eq(model.fall_asleep_ns, 100);
    ck_assert_uint_eq(model.awake_ns, 400);
    ck_assert_uint_eq(model.wake_busy_ns, 700);
    ck_assert_uint_eq(model.remote_lines_ns, 1100);
    ck_assert_uint_eq(model.interrupt_ns, 1700);
    ck_assert_uint_eq(model.line_late_ns, 40);
    ck_assert_uint_eq(model.idle_entry_ns, 8000);
    ck_assert_uint_eq(model.wake_soon_ns, 1000 - 200);
    ck_assert_uint_eq(model.late_soon_ns, 9000 - 400);
    ck_assert_uint_eq(model.wake_short_ns, 5000 - 200);
    ck_assert_uint_eq(model.late_short_ns, 15000 - 5000 - 400);
    ck_assert_uint_eq(model.short_ns, 75000);
    ck_assert_uint_eq(model.late_busy_ns, 12000 - 6000 - 400 - 600);
    ck_assert_uint_eq(model.late_idle_ns, 20000 - 6000 - 400);
    ck_assert_uint_eq(model.memory_cores, 1500);
    ck_assert_uint_eq(model.memory_share, 0);
    costs.kernel.wake_remote_ns = costs.kernel.latency_short_ns = 0; /* not known */
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).short_ns, 0);
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).remote_lines_ns, 0);
    costs.kernel.wake_soon_ns = 0; /* without it a core on its way would cost its waker nothing */
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).idle_entry_ns, 0);
    costs.kernel.wake_soon_ns = 1000;
    costs.kernel.latency_soon_ns = 0; /* nor be late */
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).idle_entry_ns, 0);
    costs.kernel.latency_short_ns = 15000;
    costs.kernel.wake_short_ns = 0;
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).short_ns, 0);
    costs.memory.all_bytes_per_ns = 19.5; /* by chance */
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).memory_cores, 1000);
}

/* 1024 cores, each with a thread: all work at once. */
TEST(as_many_cores_as_there_can_be) {
    uint64_t work[1024];
    for (uint32_t i = 0; i < 1024; i++)
        work[i] = 5 * MS;
    struct sim_config config = host_of(SIM_GLIBC, 1);
    config.width = config.height = 32;
    struct sim_summary s;
    run_one(&config, that_compute(1024, work), 0, &s);
    ck_assert_uint_eq(s.makespan_ns, 5 * MS);
    ck_assert_uint_eq(s.n_migrations, 0);
}

/* Hosts in which the time between ticks, or the time of some work, would be none or less. */
TEST(impossible_hosts_are_refused) {
    struct sim_config good = host_of(SIM_GLIBC, 1), bad[4] = {good, good, good, good};
    struct sim_error error;
    bad[0].host.tick_ns = 0;
    bad[1].host.memory_share = 1001;
    bad[2].host.memory_share = 1;
    bad[3].host.memory_share = 1;
    bad[3].host.memory_cores = 999;
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_null(sim_new(&bad[i], &error));
    bad[3].host.memory_cores = 1000;
    struct sim *sim = sim_new(&bad[3], &error);
    ck_assert_ptr_nonnull(sim);
    sim_free(sim);
}

/*
 * Three fibers, two carriers. Carrier 1 is idle when fiber 1 sleeps, at 40 ns. It looks 5 us later, takes fiber 2 in
 * 300 ns, and is idle again from 5380 ns on, when that sleeps: it looks at 10380, 15380, ... Fiber 0 wakes
 * fiber 1 at 10379 or at 10380, and computes. The wake-up takes 1 us or 10 us: then it was put in before the look at
 * 10380. Either way that look finds fiber 1 if it was woken at 10379. If it was woken at 10380 the next look does.
 */
TEST_EACH(a_look_comes_before_all_else, 4) {
    static const uint64_t wakes_ns[] = {10 * US, 1 * US}, woken_at[] = {10379, 10380}, looks[] = {10380, 15380};
    uint64_t wake_ns = wakes_ns[number % 2];
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    init(&b, 0, SBT_TRACE_SEM, 2, 0);
    create_all(&b, 3);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, woken_at[number / 2] - wake_ns);
    sem(&b, 0, SBT_TRACE_SEM_POST, 2, 1, 1 * MS);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 1, 1, 0);
    sem(&b, 2, SBT_TRACE_SEM_WAIT, 2, 1, 0);
    end(&b, 1, 1 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = host_of(SIM_SWITCH, 2);
    config.host.search_ns = 30 * US;
    config.host.fiber_wake_ns = (uint32_t)wake_ns;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, looks[number / 2] + 300 + 1 * US);
}
