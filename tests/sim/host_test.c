/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine: cases that can be computed by hand. What a case does not name costs nothing: no call, no switch, no
 * wake-up. The scheduler's tick is 4 ms, its slice 1.4 ms. A new thread goes to an idle core.
 */
#include "build.h"

#define US UINT64_C(1000)

static struct sim_config host_of(enum sim_sync sync, uint32_t n_cores) {
    struct sim_config config = config_of(sync);
    config.width = n_cores;
    config.height = 1;
    config.host = (struct sim_host_model){.slice_ns = 1400 * US,
                                          .tick_ns = 4 * MS,
                                          .hot_ns = 500 * US,
                                          .balance_ns = 32 * MS,
                                          .deep_after_ns = 200 * US,
                                          .effects = SIM_HOST_ALL};
    return config;
}

static struct sim_thread_result run_one(const struct sim_config *config, const struct sbt_trace *trace, uint32_t thread,
                                        struct sim_summary *summary) {
    struct sim *sim = simulate(config, trace, 1);
    struct sim_thread_result r = result_of(sim, 0, thread);
    if (summary != NULL)
        *summary = sim_summary(sim);
    sim_free(sim);
    return r;
}

static void sem(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint64_t order,
                uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_SEM,
                                         .object = object,
                                         .other = SBT_TRACE_NONE,
                                         .order = order,
                                         .work_ns = work});
}

/* A timed wait that lasted so long: the thread sleeps meanwhile. */
static void sleep_for(struct build *b, uint32_t thread, uint64_t ns) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                         .type = SBT_TRACE_SEM,
                                         .object = 9,
                                         .other = SBT_TRACE_NONE,
                                         .result = ETIMEDOUT,
                                         .took_ns = ns});
}

/* Thread 0 works for so long, and joins 1 to n - 1. */
static void join_all(struct build *b, uint32_t n, uint64_t work) {
    for (uint32_t i = 1; i < n; i++)
        join(b, 0, i, i == 1 ? work : 0);
    end(b, 0, 0);
}

/* Threads 0 to n - 1, each with its work. */
static const struct sbt_trace *that_compute(uint32_t n, const uint64_t *work) {
    struct build b;
    build_open(&b);
    create_all(&b, n);
    for (uint32_t i = 1; i < n; i++)
        end(&b, i, work[i]);
    join_all(&b, n, work[0]);
    return build_close(&b);
}

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
 * of work, takes the core at once. Without that effect thread 0 goes on to the tick at 4 ms if it is within its slice.
 */
TEST_EACH(a_woken_thread_takes_the_core, 2) {
    static const uint64_t work[] = {1 * MS, 2 * MS}, ends[2][2] = {{2 * MS, 3 * MS}, {5 * MS, 3 * MS}};
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
        if (number == 1)
            config.host.effects &= ~(uint32_t)SIM_HOST_PREEMPT;
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
 * One core. Thread 0 sleeps with the spin lock until thread 1 wakes it after 0.5 ms. Thread 1 then spins: under glibc
 * to the tick at 4 ms, also where the scheduler has no slices, because a spin never ends by itself.
 */
TEST(a_spinning_thread_does_not_spin_for_ever) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    create(&b, 0, 1, 0);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 0, 0);
    sem(&b, 0, SBT_TRACE_SEM_WAIT, 1, 1, 0);
    sem(&b, 1, SBT_TRACE_SEM_POST, 1, 1, 500 * US);
    call(&b, 1, SBT_TRACE_SPIN_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 0, 1 * MS);
    call(&b, 1, SBT_TRACE_SPIN_UNLOCK, 0, 0);
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    config.host.effects &= ~(uint32_t)(SIM_HOST_SLICES | SIM_HOST_PREEMPT);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 5 * MS);
    config.sync = SIM_DIRECT; /* it looks for 2 us, and yields */
    config.host.spin_looks_ns = 2 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns,
                      1500 * US + 2 * US + 40); /* 40 ns: into the parking lot's queue */
}

/*
 * One core. Three threads wait at a condition; thread 0 broadcasts with the mutex, works on for 1 ms and unlocks it.
 * Under glibc the first waiter takes the core at once, finds the mutex held and sleeps; thread 0, which has a deadline
 * before the others', goes on, and wakes it when it unlocks. Without preemption all run when the mutex is free. Under
 * the engine direct they are moved to the mutex's queue.
 *
 * A wake-up call costs 1 us. The broadcast calls, and under glibc each unlock of a mutex that was taken after a
 * condition, or while others may sleep: also the last one, in vain. After that a lock and an unlock call no more.
 */
TEST(a_broadcast_with_the_mutex_wakes_in_vain) {
    static const struct {
        enum sim_sync sync;
        uint32_t effects;
        uint64_t n_waits, n_wakes, calls_ns;
    } cases[] = {
        {SIM_GLIBC, SIM_HOST_ALL, 3 + 1, 3 + 1, 5 * 1000},
        {SIM_GLIBC, SIM_HOST_ALL & ~SIM_HOST_PREEMPT, 3, 3, 4 * 1000},
        {SIM_DIRECT, SIM_HOST_ALL, 3, 3, 3 * 1000},
    };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 0);
        wait(&b, i, 2, 0, 1, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end(&b, i, 0);
    }
    sleep_for(&b, 0, 1 * MS);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 2, 1, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * MS);
    for (uint32_t i = 1; i < 4; i++)
        join(&b, 0, i, 0); /* before the last lock */
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_summary s;
        struct sim_config config = host_of(cases[i].sync, 1);
        config.host.effects = cases[i].effects;
        config.host.futex_wake_ns = 1 * US;
        run_one(&config, trace, 0, &s);
        ck_assert_uint_eq(s.n_futex_waits, cases[i].n_waits);
        ck_assert_uint_eq(s.n_futex_wakes, cases[i].n_wakes);
        ck_assert_uint_eq(s.makespan_ns, 2 * MS + cases[i].calls_ns);
    }
}

/*
 * Thread 1 sleeps from the beginning, thread 2 computes on the core where thread 1 was. At 0.5 ms thread 0 wakes thread
 * 1, which has 1 ms of work: with a third core it goes there and begins 5 us later; with two it takes that core at
 * once, or waits for the tick at 4 ms.
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
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1500 * US);
    config.host.wake_idle_ns = 2 * US; /* an interrupt: for the waker, and until it comes */
    config.host.late_busy_ns = 3 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 1505 * US);
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
 * An operation on a line that another core had last pays its way, one core after another: of the threads that come at 1
 * us one gets it at 1.1 us and the other at 1.2. Then thread 0 has it.
 */
TEST(a_cache_line_goes_from_core_to_core) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    create_all(&b, 3);
    sem(&b, 1, SBT_TRACE_SEM_POST, 0, 1, 1 * US);
    end(&b, 1, 0);
    sem(&b, 2, SBT_TRACE_SEM_POST, 0, 2, 1 * US);
    for (uint32_t k = 3; k < 10; k++)
        sem(&b, 2, SBT_TRACE_SEM_POST, 0, k, 0);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 4);
    config.host.line_ns = 100;
    uint64_t to[2] = {run_one(&config, trace, 1, NULL).to_ns, run_one(&config, trace, 2, NULL).to_ns};
    ck_assert_uint_eq(to[0], 1100);
    ck_assert_uint_eq(to[1], 1200);
    config.host.effects &= ~(uint32_t)SIM_HOST_LINES;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 1000);
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
    costs.kernel.wake_idle_ns = 6000;
    costs.kernel.latency_busy_ns = 12000;
    costs.kernel.latency_idle_ns = 20000;
    costs.kernel.switch_ns = 600;
    costs.memory.core_bytes_per_ns = 20;
    costs.memory.all_bytes_per_ns = 30;
    struct sim_host_model model = sim_host_model_of(&costs, SIM_HOST_GLIBC, 2);
    ck_assert_uint_eq(model.slice_ns, 18 * MS);
    ck_assert_uint_eq(model.fall_asleep_ns, 100);
    ck_assert_uint_eq(model.awake_ns, 400);
    ck_assert_uint_eq(model.wake_busy_ns, 700);
    ck_assert_uint_eq(model.late_busy_ns, 12000 - 6000 - 400 - 600);
    ck_assert_uint_eq(model.late_idle_ns, 20000 - 6000 - 400);
    ck_assert_uint_eq(model.memory_cores, 1500);
    ck_assert_uint_eq(model.memory_share, 0);
    costs.memory.all_bytes_per_ns = 19.5; /* by chance */
    ck_assert_uint_eq(sim_host_model_of(&costs, SIM_HOST_GLIBC, 2).memory_cores, 1000);
}

/*
 * glibc's mutex. Thread 1 asks at 1 us and sleeps. Thread 0 frees the mutex at 10 us and takes it again at 11. Thread 1
 * is woken at 10 and runs at 15: it has lost the race, and sleeps. It is woken at 21, and has the mutex at 26.
 */
TEST(a_running_thread_takes_the_mutex_before_a_woken_one) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 1 * US);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 10 * US);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 1 * US);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 10 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_summary s;
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.late_idle_ns = 5 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 26 * US);
    ck_assert_uint_eq(s.n_lost_races, 1);
    ck_assert_uint_eq(s.n_futex_waits, 2);
    config.sync = SIM_DIRECT; /* it spins, and sees the mutex free at once */
    config.host.spin_ns = 50 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, &s).to_ns, 10 * US);
    ck_assert_uint_eq(s.n_futex_waits, 0);
}

/*
 * Four threads on four cores meet; the last comes at 100 us. It calls the kernel for 0.5 us, and wakes one sleeper each
 * microsecond, which runs 5 us later.
 */
TEST(a_barrier_wakes_one_after_another) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 4);
    create_all(&b, 4);
    for (uint32_t i = 0; i < 4; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, i == 0 ? 100 * US : i * US);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 4);
    config.host.futex_wake_ns = 500;
    config.host.wake_idle_ns = 1 * US;
    config.host.late_idle_ns = 5 * US;
    config.host.effects &= ~(uint32_t)SIM_HOST_LINES;
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_uint_eq(run_one(&config, trace, i, NULL).to_ns, 105 * US + 500 + i * US);
}

/*
 * One core, glibc's spin lock. Thread 0 has it from 0 on, for 6 ms of work, and works on. Thread 1 spins from 4 to 8
 * ms, in vain, because thread 0 has no core; it sees the lock free when it has the core again, at 12 ms.
 */
TEST(a_spinning_thread_keeps_the_core_from_the_owner) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_SPIN_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 0, 6 * MS);
    call(&b, 1, SBT_TRACE_SPIN_UNLOCK, 0, 0);
    end(&b, 1, 0);
    join_all(&b, 2, 10 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    struct sim_thread_result r = run_one(&config, trace, 1, NULL);
    ck_assert_uint_eq(r.to_ns, 12 * MS);
    ck_assert_uint_eq(r.in_ns[SIM_CALL], 4 * MS);
    config.sync = SIM_DIRECT; /* it yields as soon as it has looked for a while, and the owner goes on */
    config.host.spin_looks_ns = 2 * US;
    r = run_one(&config, trace, 1, NULL);
    ck_assert_uint_lt(r.in_ns[SIM_CALL], 1 * MS);
}

/* The engine direct at a barrier of two threads on one core: a yield lets the other arrive, and no thread sleeps. */
TEST(a_yield_lets_the_other_thread_arrive) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    create_all(&b, 2);
    for (uint32_t k = 0; k < 50; k++)
        for (uint32_t i = 0; i < 2; i++)
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 1 * US);
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_summary yields, sleeps, fibers;
    struct sim_config config = host_of(SIM_DIRECT, 1);
    config.host.fall_asleep_ns = config.host.awake_ns = 1 * US;
    config.host.n_yields = 12;
    config.host.yield_ns = 100;
    config.host.switch_ns = 500;
    config.host.idle_yields_ns = 40 * US;
    run_one(&config, trace, 0, &yields);
    config.sync = SIM_GLIBC;
    run_one(&config, trace, 0, &sleeps);
    config.sync = SIM_SWITCH;
    config.host.fiber_ns = 50;
    run_one(&config, trace, 0, &fibers);
    ck_assert_uint_le(yields.n_futex_waits, 1); /* the join */
    ck_assert_uint_ge(sleeps.n_futex_waits, 50);
    ck_assert_uint_eq(fibers.n_futex_waits, 0);
    ck_assert_uint_lt(fibers.makespan_ns, yields.makespan_ns);
    ck_assert_uint_lt(yields.makespan_ns, sleeps.makespan_ns);
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

/*
 * Thread 1 is on its way to sleep from 0 to 2 us, when thread 0 posts at 1 us: it goes on without having slept. Then it
 * sleeps in earnest, until the post at 10 us.
 */
TEST(a_wake_up_before_the_sleep_counts_once) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    create(&b, 0, 1, 0);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, 1 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 2, 9 * US);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 0);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 2, 0);
    end_all(&b, 2);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.fall_asleep_ns = 2 * US;
    struct sim_summary s;
    struct sim_thread_result r = run_one(&config, build_close(&b), 1, &s);
    ck_assert_uint_eq(r.to_ns, 10 * US);
    ck_assert_uint_eq(r.in_ns[SIM_WAIT], 6 * US);
    ck_assert_uint_eq(s.n_futex_waits, 2);
    ck_assert_uint_eq(s.n_lost_races, 0);
}

/*
 * One carrier. Fiber 2 waits for fiber 0's spin lock: it looks for 2 us, and yields. Fiber 0 wakes fiber 1, and sleeps.
 * Fiber 2 has been in the run queue for longer, but it has yielded: fiber 1 runs at once.
 */
TEST(a_fiber_that_yielded_comes_behind_the_woken) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    create_all(&b, 3);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 1, 0);
    sleep_for(&b, 0, 100 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 0, 1, 10 * US);
    sleep_for(&b, 0, 100 * US);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 1, 0);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 0, 1, 0);
    end(&b, 1, 1 * US);
    call(&b, 2, SBT_TRACE_SPIN_LOCK, 1, 0);
    call(&b, 2, SBT_TRACE_SPIN_UNLOCK, 1, 0);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = host_of(SIM_SWITCH, 1);
    config.host.spin_looks_ns = 2 * US;
    struct sim_thread_result r = run_one(&config, build_close(&b), 1, NULL);
    ck_assert_uint_eq(r.in_ns[SIM_READY], 0);
    ck_assert_uint_ge(r.to_ns, 111 * US);
    ck_assert_uint_lt(r.to_ns, 114 * US);
}

/* Times of a round of the following test: when the core has a thread to yield to. */
static const uint64_t ROUNDS[] = {100 * MS, 8500 * US, 7500 * US, 9 * MS, 7500 * US, 3 * MS};
enum { N_ROUNDS = sizeof ROUNDS / sizeof *ROUNDS };

/*
 * The yield gate, on one core. In each round thread 0 waits for a semaphore of its own, for 2 ms. It comes 10 us after
 * thread 1, which then computes for 1 ms; so its first yield lasts for 1 ms, in which it is ready. It sleeps after
 * that. Two such yields within 8 ms, the second and the third, close the gate for 16 ms. In the fourth round and
 * in the fifth it sleeps at once.
 */
TEST(long_yields_near_each_other_close_the_gate) {
    struct build b;
    build_open(&b);
    for (uint32_t i = 0; i < N_ROUNDS; i++)
        init(&b, 0, SBT_TRACE_SEM, i, 0);
    create_all(&b, 3);
    for (uint32_t i = 0; i < N_ROUNDS; i++) {
        sleep_for(&b, 0, ROUNDS[i] - 10 * US - (i > 0 ? 2 * MS : 0));
        sem(&b, 0, SBT_TRACE_SEM_WAIT, i, 1, 20 * US);
        sleep_for(&b, 1, ROUNDS[i] - (i > 0 ? 1 * MS + 10 * US : 0));
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 10, 1 * MS); /* a step of its work */
        sleep_for(&b, 2, ROUNDS[i] + (i > 0 ? 0 : 2 * MS));
        sem(&b, 2, SBT_TRACE_SEM_POST, i, 1, 0);
    }
    end(&b, 1, 0);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = host_of(SIM_DIRECT, 1);
    config.host.effects = SIM_HOST_ALL & ~(SIM_HOST_PREEMPT | SIM_HOST_SLICES);
    config.host.idle_yields_ns = 40 * US;
    struct sim_thread_result r = run_one(&config, build_close(&b), 0, NULL);
    ck_assert_uint_eq(r.in_ns[SIM_READY], (N_ROUNDS - 2) * MS);
}

/*
 * Three threads, two cores. Thread 0 holds the mutex for 30 us in each of n rounds; thread 1 comes 5 us after it, and
 * spins for 2 us, which is forced. After eight spins in vain 63 waits are without one.
 */
TEST(forced_spins_in_vain_are_left_out) {
    static const struct {
        uint32_t n_waits, n_spins;
    } cases[] = {{7, 7}, {8, 8}, {9, 8}, {71, 8}, {72, 9}, {79, 16}, {80, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build b;
        build_open(&b);
        create_all(&b, 3);
        for (uint32_t k = 0; k < cases[i].n_waits; k++) {
            call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 20 * US);
            call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 30 * US);
            call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 25 * US);
            call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        }
        sleep_for(&b, 2, 10 * MS);
        end_all(&b, 3);
        struct sim_config config = host_of(SIM_DIRECT, 2);
        config.host.spin_ns = 2 * US;
        struct sim_summary s;
        struct sim_thread_result r = run_one(&config, build_close(&b), 1, &s);
        ck_assert_uint_eq(s.n_futex_waits, cases[i].n_waits);
        /* 40 ns: into the parking lot's queue */
        ck_assert_uint_eq(r.in_ns[SIM_CALL], cases[i].n_spins * 2 * US + cases[i].n_waits * 40);
    }
}

/* One core, and yields that cost nothing: two threads that yield to each other let the third one come. */
TEST(yields_without_a_cost_come_to_an_end) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 3);
    create_all(&b, 3);
    sleep_for(&b, 2, 1 * MS);
    for (uint32_t i = 0; i < 3; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
    end_all(&b, 3);
    struct sim_config config = host_of(SIM_DIRECT, 1);
    config.host.idle_yields_ns = 40 * US;
    struct sim_summary s;
    run_one(&config, build_close(&b), 0, &s);
    ck_assert_uint_eq(s.makespan_ns, 1 * MS);
}

/*
 * In the recorded order. Thread 1 waits for signal 2. The broadcast, signal 1, was before its wait when it was
 * recorded, and is not for it: it acquires the mutex once more, after signal 2.
 */
TEST(a_broadcast_wakes_no_other_waiter_in_recorded_order) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    lock_nth(&b, 1, 0, 1, 0);
    build_event(
        &b, 1,
        (struct sbt_trace_event){
            .op = SBT_TRACE_COND_WAIT, .type = SBT_TRACE_COND, .object = 1, .other = 0, .order = 2, .relock = 2});
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, 1 * MS);
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 2, 1 * MS);
    lock_nth(&b, 0, 0, 3, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = SIM_N_SYNCS; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = host_of((enum sim_sync)sync, 2);
        config.recorded_order = true;
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_eq(sim_application(sim, 0)->sections.n, 3);
        sim_free(sim);
    }
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
 * A trace without times. Under the engine direct thread 1 was moved to the queue of the mutex, which thread 2 holds
 * while it waits for what is not in the trace: that wait ends, and no thread loses a mutex.
 */
TEST(a_moved_waiter_waits_for_the_owner) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 3, 0);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 1, 1, 0, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 1 * MS);
    signal_(&b, 2, SBT_TRACE_COND_BROADCAST, 1, 1, 0);
    sem(&b, 2, SBT_TRACE_SEM_WAIT, 3, 1, 0);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end_all(&b, 3);
    struct sim_config config = host_of(SIM_DIRECT, 4);
    config.let_pass = true;
    struct sim_summary s;
    run_one(&config, build_close(&b), 1, &s);
    ck_assert_uint_eq(s.n_deviations[SIM_LET_PASS], 1);
    ck_assert_uint_eq(s.n_deviations[SIM_NOT_HELD], 0);
}

/*
 * Two carriers. Fiber 0 computes on one of them; four fibers wait there. The other carrier has run its own four, and
 * searches each 5 us: it takes two of the four, then one, then the last, at 0.3 us each time. Each works for 1 us.
 */
TEST(a_carrier_takes_half_of_a_run_queue) {
    uint64_t work[9];
    for (uint32_t i = 0; i < 9; i++)
        work[i] = i == 0 ? 10 * MS : 1 * US;
    const struct sbt_trace *trace = that_compute(9, work);
    struct sim_config config = host_of(SIM_SWITCH, 2);
    config.host.search_ns = 30 * US;
    struct sim_summary s;
    uint64_t last = 0;
    for (uint32_t i = 1; i < 9; i++) {
        uint64_t to = run_one(&config, trace, i, &s).to_ns;
        last = to > last ? to : last;
    }
    ck_assert_uint_eq(s.n_migrations, 4);
    ck_assert_uint_eq(last, 4 * US + 3 * 5300 + 4 * US);
}

/* ---- waits by calling and by looking ---- */

static void trylock(struct build *b, uint32_t thread, uint32_t mutex, uint64_t work, int result) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_TRYLOCK,
                                         .type = SBT_TRACE_MUTEX,
                                         .object = mutex,
                                         .other = SBT_TRACE_NONE,
                                         .result = (uint16_t)result,
                                         .work_ns = work});
}

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
    for (enum sim_sync sync = SIM_GLIBC; sync < SIM_N_ALL_SYNCS; sync++)
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
    for (enum sim_sync sync = SIM_GLIBC; sync < SIM_N_ALL_SYNCS; sync++) {
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
    for (enum sim_sync sync = SIM_GLIBC; sync < SIM_N_ALL_SYNCS; sync++) {
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
    for (enum sim_sync sync = SIM_GLIBC; sync < SIM_N_ALL_SYNCS; sync++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct sbt_trace *trace = that_looks(cases[i].looks, cases[i].works);
            struct sim_config config = host_of(sync, 2);
            struct sim *sim = simulate(&config, trace, 1);
            uint64_t queue_ns = i == 0 && sync != SIM_GLIBC ? 40 : 0; /* thread 1 has the mutex at that moment */
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

/* A plain store frees a spin lock: a waiter on another core has it while the unlock is still under way. */
TEST(a_spin_lock_is_free_before_its_unlock_returns) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 0, 1 * US);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 0, 0);
    end(&b, 0, 0);
    call(&b, 1, SBT_TRACE_SPIN_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_SPIN_UNLOCK, 0, 10 * US);
    end(&b, 1, 0);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.spin_lock_ns = 100;
    const struct sbt_trace *trace = build_close(&b);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 10 * US + 200);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 10 * US + 200); /* its lock at 10.1 us */
}
