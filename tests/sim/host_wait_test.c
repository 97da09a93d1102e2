/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How threads wait on the host, under glibc, the engine direct and switch: cases as host.h says. */
#include "host.h"

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
 * before the others', goes on, and wakes it when it unlocks. Without preemption all run when the mutex is free; so they
 * do if thread 0 is protected, which has not run more than they have. Under
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
        {SIM_GLIBC, SIM_HOST_ALL & ~SIM_HOST_PROTECT, 3 + 1, 3 + 1, 5 * 1000},
        {SIM_GLIBC, SIM_HOST_ALL, 3, 3, 4 * 1000},
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
    config.host.effects &= ~(uint32_t)SIM_HOST_AHEAD;
    uint64_t to[2] = {run_one(&config, trace, 1, NULL).to_ns, run_one(&config, trace, 2, NULL).to_ns};
    ck_assert_uint_eq(to[0], 1100);
    ck_assert_uint_eq(to[1], 1200);
    config.host.effects &= ~(uint32_t)SIM_HOST_LINES;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 1000);
}

/*
 * The way of a line begins while the thread works before its call. Thread 1 has the first semaphore's line when it
 * comes at 1 us, and waits for the second one's for 70 of 100 ns, since it has worked for 30 in between. Thread 2 has
 * the second one's at 1.5 us. Thread 3 comes 10 ns later, and the line cannot leave for it before it has come to
 * thread 2. Where 20 ns of a way cannot be hidden, threads 1 and 2 wait for them after their long work, and not after
 * the short one; thread 3's line leaves 20 ns later.
 */
TEST(a_line_comes_while_the_thread_works) {
    static const struct {
        uint32_t without, late_ns;
        uint64_t to_ns[3];
    } cases[] = {{0, 0, {1100, 1500, 1600}},
                 {0, 20, {1120, 1520, 1620}},
                 {0, 1000, {1230, 1600, 1700}},
                 {SIM_HOST_AHEAD, 20, {1230, 1600, 1700}},
                 {SIM_HOST_LINES, 20, {1030, 1500, 1510}}};
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    create_all(&b, 4);
    sem(&b, 1, SBT_TRACE_SEM_POST, 1, 1, 1 * US);
    sem(&b, 1, SBT_TRACE_SEM_POST, 0, 1, 30);
    sem(&b, 2, SBT_TRACE_SEM_POST, 0, 2, 1500);
    sem(&b, 3, SBT_TRACE_SEM_POST, 0, 3, 1510);
    for (uint32_t t = 1; t < 4; t++)
        end(&b, t, 0);
    join_all(&b, 4, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 4);
    config.host.line_ns = 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config.host.effects = SIM_HOST_ALL & ~cases[i].without;
        config.host.line_late_ns = cases[i].late_ns;
        for (uint32_t t = 1; t < 4; t++)
            ck_assert_uint_eq(run_one(&config, trace, t, NULL).to_ns, cases[i].to_ns[t - 1]);
    }
}

/*
 * The work before a wait is not before what follows the wait. Thread 1 works for 1 us and waits. Thread 2 takes the
 * mutex, and signals at 6 us; thread 1 then waits for the mutex's line.
 */
TEST(a_line_comes_late_after_a_wait) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 1, 1, 0, 1, 1 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 5 * US);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    signal_(&b, 2, SBT_TRACE_COND_SIGNAL, 1, 1, 1 * US);
    end(&b, 1, 0);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = host_of(SIM_GLIBC, 3);
    config.host.line_ns = 100;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, 6100);
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

/* glibc's barrier calls the kernel also if no thread sleeps there. The engine direct knows that none does. */
TEST(a_barrier_of_one_thread_calls_the_kernel) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 1);
    call(&b, 0, SBT_TRACE_BARRIER_WAIT, 0, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = host_of(SIM_GLIBC, 1);
    config.host.futex_wake_ns = 500;
    config.host.barrier_ns = 6;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 506);
    config.sync = SIM_DIRECT;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 6);
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

/*
 * Two cores. Thread 1 waits at a condition until thread 0 signals at 1 ms, with acquisitions 1 to 3 of the mutex. Then
 * it has acquisition 4, by a lock or a poll, and one that came later in the trace; thread 0 has the fifth at 11 ms.
 * Behind the fourth there were 4 acquisitions since thread 1 began to wait, that one included, and one signal or two.
 * Each counts one more, so two threads let an acquisition come 4 x 4 / 2 = 8 places early, or 4 x 4 / 3 = 5; behind the
 * fifth 10 or 6. There is no bound where threads poll, none for a thread that has another mutex, which may be needed
 * before its turn can come, and none but under glibc. Under the engine direct thread 1 is awake while thread 0 has the
 * mutex, and takes 40 ns to queue for it.
 */
TEST(a_mutex_of_a_condition_is_not_acquired_long_before_its_turn) {
    static const struct {
        enum sim_sync sync;
        bool polls, holds;
        uint64_t n_signals, order, ends;
    } cases[] = {
        {SIM_GLIBC, false, false, 1, 12, 1 * MS},       {SIM_GLIBC, false, false, 1, 13, 11 * MS},
        {SIM_GLIBC, false, false, 2, 9, 1 * MS},        {SIM_GLIBC, false, false, 2, 10, 11 * MS},
        {SIM_GLIBC, true, false, 1, 13, 1 * MS},        {SIM_GLIBC, false, true, 1, 13, 1 * MS},
        {SIM_DIRECT, false, false, 1, 13, 1 * MS + 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build b;
        build_open(&b);
        create_all(&b, 2);
        lock_nth(&b, 1, 0, 1, 0);
        wait(&b, 1, 1, 0, 1, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        if (cases[i].polls) {
            trylock(&b, 1, 0, 0, EBUSY);
            trylock(&b, 1, 0, 0, 0);
        } else {
            lock_nth(&b, 1, 0, 4, 0);
        }
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        if (cases[i].holds)
            lock_nth(&b, 1, 2, 1, 0);
        lock_nth(&b, 1, 0, cases[i].order, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        if (cases[i].holds)
            call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        lock_nth(&b, 0, 0, 2, 1 * MS);
        for (uint64_t k = 1; k <= cases[i].n_signals; k++)
            signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, k, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        lock_nth(&b, 0, 0, 5, 10 * MS);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end_all(&b, 2);
        struct sim_config config = host_of(cases[i].sync, 2);
        ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, cases[i].ends);
    }
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

/*
 * Thread 0 signals twice with the mutex, and unlocks it 1 us later. It takes 20 us to wake a thread. With several cores
 * each signal wakes its waiter under the engine direct. With one core both are moved to the mutex's queue: the unlock
 * wakes the first, and that one's unlock the second. Of a broadcast the first is woken, and the second by the unlock.
 */
TEST(each_signal_wakes_a_waiter_where_a_core_may_be_idle) {
    static const struct {
        uint32_t n_cores;
        bool broadcast;
        uint64_t ends[2];
    } cases[] = {{4, false, {20 * US, 20 * US + 40}}, {4, true, {20 * US, 21 * US}}, {1, false, {21 * US, 41 * US}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build b;
        build_open(&b);
        init(&b, 0, SBT_TRACE_SEM, 1, 0);
        create_all(&b, 3);
        for (uint32_t k = 1; k < 3; k++) {
            call(&b, k, SBT_TRACE_MUTEX_LOCK, 0, 0);
            wait(&b, k, 2, 0, cases[i].broadcast ? 1 : k, 0);
            call(&b, k, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
            end(&b, k, 0);
        }
        sleep_for(&b, 0, 1 * MS);
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
        signal_(&b, 0, cases[i].broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 2, 1, 0);
        if (!cases[i].broadcast)
            signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 2, 2, 0);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * US);
        end_all(&b, 1);
        struct sim_config config = host_of(SIM_DIRECT, cases[i].n_cores);
        config.host.awake_ns = 20 * US;
        const struct sbt_trace *trace = build_close(&b);
        for (uint32_t k = 0; k < 2; k++)
            ck_assert_uint_eq(run_one(&config, trace, k + 1, NULL).to_ns, 1 * MS + cases[i].ends[k]);
    }
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

/* Each of two threads spins while the other has the mutex: the end of a spin that is over before is no step. */
TEST(a_spin_that_succeeds_is_one_step) {
    enum { N = 500 };
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t t = 1; t <= 2; t++) {
            call(&b, t, SBT_TRACE_MUTEX_LOCK, 0, 500);
            call(&b, t, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * US);
        }
    end(&b, 1, 0);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = host_of(SIM_DIRECT, 3);
    struct sim_summary s;
    config.host.spin_ns = 2 * US;
    config.host.line_ns = 100;
    run_one(&config, build_close(&b), 0, &s);
    ck_assert_uint_eq(s.n_futex_waits, 0);
    ck_assert_uint_lt(s.n_steps, 5500);
}

/*
 * Thread 0 runs to 4 ms, thread 2 on the same core to 8 ms, thread 0 to 9 ms: 5 ms, and thread 2 4 ms. So it sleeps
 * with a debt, to 50 ms. The tick at 12 ms finds it paid: thread 0 goes to the other core, idle since 10 ms.
 */
TEST(a_thread_whose_debt_a_tick_found_paid_goes_to_an_idle_core) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * MS);
    sleep_for(&b, 0, 41 * MS);
    end(&b, 1, 10 * MS);
    end(&b, 2, 60 * MS);
    join_all(&b, 3, 1 * MS);
    struct sim_config config = host_of(SIM_GLIBC, 2);
    config.host.effects &= ~(uint32_t)SIM_HOST_BALANCE;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 2, NULL).to_ns, 65 * MS);
}
