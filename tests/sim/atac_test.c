/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Barriers and broadcasts of recorded programs on an optical network beside the mesh. */
#include "build.h"
#include "lib/suite.h"
#include "run.h"
#include "subutai/atac.h"

static struct sim_config chip_of(enum sim_sync sync, uint32_t n_cores) {
    struct sim_config config = config_of(sync);
    config.width = n_cores > 32 ? 32 : n_cores;
    config.height = (n_cores + 31) / 32;
    return config;
}

/* ---- the same barrier in a program of simulated threads ---- */

enum { EPISODES = 12, MOST = 64 };

struct loop {
    uint32_t n;
    uint64_t work[MOST][EPISODES], ended[MOST];
    BarrierMaster *master;
};

static void prepare(struct sim_program *chip, void *argument) {
    struct loop *loop = argument;
    (void)chip;
    loop->master = BarrierMaster_new((int)loop->n);
}

static void body(struct sim_program *p, void *argument) {
    struct loop *loop = argument;
    Barrier *barrier = BarrierMaster_generate_barrier(loop->master);
    uint32_t self = sim_self(p);
    for (int k = 0; k < EPISODES; k++) {
        sim_compute(p, loop->work[self][k]);
        Barrier_wait(barrier);
    }
    loop->ended[self] = sim_cycles(p);
    Barrier_delete(barrier);
}

/* n threads come to a barrier of so many, again and again: thread i works work[i][k] before its kth time. */
static const struct sbt_trace *meetings(uint32_t n, uint32_t of, int n_episodes, uint64_t (*work)[EPISODES]) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, of);
    create_all(&b, n);
    for (int k = 0; k < n_episodes; k++)
        for (uint32_t i = 0; i < n; i++)
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, work[i][k]);
    for (uint32_t i = 1; i < n; i++)
        end(&b, i, 0);
    end(&b, 0, 0); /* without a join */
    return build_close(&b);
}

static const struct sbt_trace *trace_of(struct loop *loop) {
    return meetings(loop->n, loop->n, EPISODES, loop->work);
}

/* At the first episode all threads come before the first message, so that all ports are there as in the program. */
TEST_EACH(a_replay_is_the_program, 24, "to the cycle, for each thread: 2 to 64 cores, random work") {
    static struct loop loop;
    loop.n = 2u << number % 6;
    uint32_t x = 12345 + (uint32_t)number;
    for (uint32_t i = 0; i < loop.n; i++)
        for (int k = 0; k < EPISODES; k++) {
            x = x * 1664525 + 1013904223;
            loop.work[i][k] = k == 0 ? x >> 25 : (x >> 16) % (number < 6 ? 1 : number < 12 ? 700 : 40000);
        }
    struct atac_config program = atac_config_default();
    struct sim_config replay = chip_of(number / 6 % 2 == 0 ? SIM_ATAC : SIM_OPTICAL, loop.n);
    program.chip.n_cores = loop.n;
    if (number >= 18) { /* other costs */
        replay.optical.transport_cycles = program.chip.optical.transport_cycles = 77;
        replay.optical.controller_cycles = program.chip.optical.controller_cycles = 130;
        replay.optical.check_cycles = program.chip.optical.check_cycles = 19;
        replay.interface_cycles = program.settings.software_cycles = 41;
        for (uint32_t i = 0; i < loop.n; i++)
            loop.work[i][0] = 0;
    }
    struct sim_error error;
    uint64_t cycles;
    ck_assert_int_eq(atac_run(&program, prepare, body, &loop, &cycles, &error), SIM_OK);
    BarrierMaster_delete(loop.master);
    struct sim *sim = simulate(&replay, trace_of(&loop), 1);
    for (uint32_t i = 0; i < loop.n; i++)
        ck_assert_uint_eq(result_of(sim, 0, i).to_ns, loop.ended[i]);
    struct sim_summary s = sim_summary(sim);
    ck_assert_uint_eq(s.n_messages, (uint64_t)EPISODES * loop.n);
    ck_assert_uint_eq(s.n_retrieved, (uint64_t)EPISODES * loop.n * (loop.n - 1));
    ck_assert_uint_eq(s.n_without_channel, 0);
    sim_free(sim);
}

/* ---- by hand ---- */

/*
 * Two threads that come at 0 and `late`.
 *
 * Together: 300 to send, 15 on the way, 3 for the look, 300 to retrieve; each cost by itself.
 * A late one finds the other's message: 300 to send, 303 to retrieve. The early one waits for its: 15 more.
 * On one core: thread 0 comes at 300 and keeps the core for its patience of 1000, the core changes in 1000, and thread
 * 1 comes 300 later: it counts two, and goes. Thread 0 comes back by an interrupt, with a look: 185 + 3.
 */
static const struct {
    uint32_t n_cores;
    uint64_t late;
    uint32_t transport, controller, check, interface; /* more than the default */
    uint64_t to_ns[2];
} pairs[] = {
    {2, 0, 0, 0, 0, 0, {618, 618}},
    {2, 0, 95, 0, 0, 0, {618 + 95, 618 + 95}},
    {2, 0, 0, 40, 0, 0, {618 + 40, 618 + 40}},
    {2, 0, 0, 0, 7, 0, {618 + 7, 618 + 7}},
    {2, 0, 0, 0, 0, 50, {618 + 2 * 50, 618 + 2 * 50}},
    {2, 5000, 0, 0, 0, 0, {5618, 5603}},
    {1, 0, 0, 0, 0, 0, {2600 + 188, 300 + 1000 + 1000 + 300}},
};

TEST_EACH(two_threads, sizeof pairs / sizeof *pairs, "come together, one late, or share a core") {
    static uint64_t work[2][EPISODES];
    struct sim_config config = chip_of(SIM_ATAC, pairs[number].n_cores);
    config.optical = hw_optical_config_default();
    config.optical.transport_cycles += pairs[number].transport;
    config.optical.controller_cycles += pairs[number].controller;
    config.optical.check_cycles += pairs[number].check;
    config.interface_cycles += pairs[number].interface;
    work[1][0] = pairs[number].late;
    struct sim *sim = simulate(&config, meetings(2, 2, 1, work), 1);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_uint_eq(result_of(sim, 0, i).to_ns, pairs[number].to_ns[i]);
    bool shared = pairs[number].n_cores == 1;
    ck_assert_uint_eq(sim_summary(sim).n_retrieved, shared ? 0 : 2);
    ck_assert_uint_eq(sim_summary(sim).max_lambda, shared ? 0 : 1);
    sim_free(sim);
}

TEST_EACH(more_threads_than_cores, 6, "each episode has all threads, also where they change their cores") {
    static struct loop loop;
    uint32_t n_cores = 1u << number % 3;
    loop.n = 24;
    for (uint32_t i = 0; i < loop.n; i++)
        for (int k = 0; k < EPISODES; k++)
            loop.work[i][k] = (i * 7919 + (uint32_t)k * 104729) % 5000;
    struct sim_config config = chip_of(SIM_ATAC, n_cores);
    config.migrate = number >= 3;
    config.let_pass = false;
    struct sim *sim = simulate(&config, trace_of(&loop), 1);
    ck_assert_uint_eq(sim_call(sim, SIM_BARRIER).n, (uint64_t)EPISODES * loop.n);
    ck_assert_uint_eq(sim_summary(sim).n_messages, (uint64_t)EPISODES * loop.n);
    /* No thread's last episode is over before the work of all threads for it. */
    uint64_t slowest = 0;
    for (int k = 0; k < EPISODES; k++) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < loop.n; i++)
            most = loop.work[i][k] > most ? loop.work[i][k] : most;
        slowest += most;
    }
    for (uint32_t i = 0; i < loop.n; i++)
        ck_assert_uint_ge(result_of(sim, 0, i).to_ns, slowest);
    sim_free(sim);
}

/*
 * Threads 0 and 2 share core 0, thread 1 has core 1. Thread 2 has come last on its core and is awake: it takes thread
 * 1's message, which is there 315 after thread 1 has come, and 303 later it goes. Thread 0 then gets the core, in 1000,
 * and needs 188 for its way back.
 */
TEST(the_last_thread_of_a_core_takes_the_messages) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 3);
    create_all(&b, 3);
    for (uint32_t i = 0; i < 3; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, i == 1 ? 100000 : 0);
    for (uint32_t i = 0; i < 3; i++)
        end(&b, i, i == 2 ? 5000 : 0); /* thread 2 keeps the core a while */
    struct sim_config config = chip_of(SIM_ATAC, 2);
    config.migrate = false;
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_eq(result_of(sim, 0, 2).to_ns, 100000 + 300 + 15 + 303 + 5000);
    ck_assert_uint_eq(result_of(sim, 0, 0).to_ns, 100000 + 300 + 15 + 303 + 5000 + 188);
    ck_assert_uint_eq(result_of(sim, 0, 1).to_ns, 100000 + 300 + 2 * 303);
    sim_free(sim);
}

/* Threads 2 and 3 meet once, threads 0 and 1 then often: the cores of the former do not go on to listen. */
TEST(a_core_that_does_not_wait_any_more_does_not_listen) {
    enum { N = 200 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    create_all(&b, 4);
    for (uint32_t i = 2; i < 4; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
    for (int k = 0; k < N; k++)
        for (uint32_t i = 0; i < 2; i++)
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, k == 0 ? 5000 : 0);
    end_all(&b, 4);
    struct sim_config config = chip_of(SIM_ATAC, 4);
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_ge(sim_summary(sim).n_transferred, 2 * N);
    ck_assert_uint_le(sim_summary(sim).n_transferred, 2 * N + 16);
    sim_free(sim);
}

/* ---- channels ---- */

/*
 * A slow controller still has a message of the first barrier for core 2 when that is destroyed. It is none of the
 * second barrier's, which has the same channel: there thread 2 comes first to the second episode, and waits for
 * thread 3.
 */
TEST(messages_of_a_destroyed_barrier) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    create_all(&b, 4);
    for (uint32_t i = 2; i < 4; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
    for (uint32_t i = 0; i < 2; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 10000);
    destroy(&b, 0, SBT_TRACE_BARRIER, 0);
    for (uint32_t i = 2; i < 4; i++) {
        init(&b, i, SBT_TRACE_BARRIER, 1, 2);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 1, 15000);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 1, i == 2 ? 0 : MS);
    }
    end_all(&b, 4);
    struct sim_config config = chip_of(SIM_ATAC, 4);
    config.optical.n_channels = 1;
    config.optical.controller_cycles = 4000;
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_eq(sim_summary(sim).n_without_channel, 0);
    ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, MS);
    sim_free(sim);
}

TEST(barriers_without_a_channel_are_the_nis) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    init(&b, 0, SBT_TRACE_BARRIER, 1, 2);
    create_all(&b, 2);
    for (uint32_t i = 0; i < 2; i++) {
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 1, 0);
    }
    end_all(&b, 2);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = chip_of(SIM_ATAC, 2);
    for (uint32_t n_channels = 1; n_channels <= 2; n_channels++) {
        config.optical.n_channels = n_channels;
        struct sim *sim = simulate(&config, trace, 1);
        struct sim_summary s = sim_summary(sim);
        ck_assert_uint_eq(s.n_without_channel, 2 - n_channels);
        ck_assert_uint_eq(s.n_messages, 2 * n_channels);
        ck_assert_int_eq(s.n_fsm_steps > 0, n_channels == 1);
        sim_free(sim);
    }
}

TEST(a_destroyed_barriers_channel_is_another_barriers) {
    enum { N = 300 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    create_all(&b, 2);
    for (uint32_t k = 1; k <= N; k++) {
        init(&b, 0, SBT_TRACE_BARRIER, k, 2);
        call(&b, 0, SBT_TRACE_BARRIER_WAIT, 0, 10);
        call(&b, 1, SBT_TRACE_BARRIER_WAIT, 0, k);
        for (uint32_t i = 0; i < 2; i++) {
            call(&b, i, SBT_TRACE_BARRIER_WAIT, k, 10);
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 10);
        }
        destroy(&b, 0, SBT_TRACE_BARRIER, k);
    }
    end_all(&b, 2);
    struct sim_config config = chip_of(SIM_ATAC, 2);
    config.optical.n_channels = 2;
    config.let_pass = false;
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_eq(sim_summary(sim).n_without_channel, 0);
    ck_assert_uint_eq(sim_summary(sim).n_messages, 6 * N);
    sim_free(sim);
}

TEST(a_network_that_cannot_be) {
    struct sim_error error;
    for (int way = 0; way < 5; way++) {
        struct sim_config config = chip_of(SIM_ATAC, 4);
        config.optical.n_channels = way == 0 ? 0 : way == 1 ? HW_OPTICAL_MAX_CHANNELS + 1 : 64;
        config.optical.transport_cycles = way == 2 ? HW_OPTICAL_MAX_CYCLES + 1 : 5;
        config.interface_cycles = way == 3 ? HW_OPTICAL_MAX_CYCLES + 1 : 300;
        config.optical.lambda_limit = way == 4;
        ck_assert_ptr_null(sim_new(&config, &error));
        ck_assert_ptr_nonnull(strstr(error.text, "optical network"));
    }
}

/* ---- waits that nothing would end ---- */

TEST_EACH(a_barrier_that_a_thread_never_reaches, 2) {
    static uint64_t work[2][EPISODES] = {{0, 100}, {100, 100}};
    const struct sbt_trace *trace = meetings(2, 3, 2, work);
    struct sim_config config = chip_of(SIM_ATAC, 2);
    struct sim_error error;
    config.let_pass = number == 0;
    struct sim *sim = sim_new(&config, &error);
    ck_assert_int_eq(sim_add(sim, trace, "test", &error), SIM_OK);
    ck_assert_int_eq(sim_run(sim, &error), number == 0 ? SIM_OK : SIM_STUCK);
    ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], number == 0 ? 2 : 0);
    sim_free(sim);
}

/* ---- broadcasts ---- */

/* Threads 1 to n wait; thread 0 broadcasts after a millisecond. */
static const struct sbt_trace *broadcast_to(uint32_t n) {
    struct build b;
    build_open(&b);
    create_all(&b, n + 1);
    for (uint32_t i = 1; i <= n; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, i * 1000);
        wait(&b, i, 1, 0, 1, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, MS);
    end_all(&b, n + 1);
    return build_close(&b);
}

TEST(a_broadcast_is_one_message) {
    const struct sbt_trace *trace = broadcast_to(15);
    struct sim_config config = chip_of(SIM_ATAC, 16), mesh = chip_of(SIM_SUBUTAI, 16);
    struct sim *sim = simulate(&config, trace, 1), *other = simulate(&mesh, trace, 1);
    ck_assert_uint_eq(sim_summary(sim).n_messages, 1);
    ck_assert_uint_eq(sim_summary(other).n_messages, 0);
    ck_assert_uint_eq(sim_call(sim, SIM_COND_WAIT).n, 15);
    ck_assert_uint_eq(sim_call(sim, SIM_BROADCAST).max_ns, 300);
    /*
     * It costs its thread 300 instead of 60, and then goes the way to the own NI: 300 later than without the network.
     * The first waiter comes back as from an NI, since its 303 are longer. The other 14 are back when they are granted.
     */
    ck_assert_uint_eq(sim_summary(sim).makespan_ns + 14 * config.timing.resume_cycles,
                      sim_summary(other).makespan_ns + 300);
    sim_free(sim);
    sim_free(other);
}

/*
 * Without NIs. The message is for all waiters at once, so each comes back at the same time, through the kernel; they
 * find the mutex free, or taken by another of them. Without the network thread 0 wakes one after another.
 */
TEST(a_broadcast_without_nis) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t i = 1; i <= 2;
         i++) { /* each has its own mutex, so that there is nothing to wait for but the message */
        call(&b, i, SBT_TRACE_MUTEX_LOCK, i, 0);
        wait(&b, i, 3, i, 1, 0);
    }
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 3, 1, MS);
    end_all(&b, 3);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = chip_of(SIM_OPTICAL, 3);
    config.costs.attempt_ns = 1000;
    config.costs.kernel_ns = 5000;
    config.costs.line_flits = 0;
    config.timing.router_cycles = config.timing.link_cycles = 0;
    struct sim *sim = simulate(&config, trace, 1);
    ck_assert_uint_eq(sim_summary(sim).n_messages, 1);
    ck_assert_uint_eq(sim_summary(sim).n_futex_wakes, 0);
    ck_assert_uint_eq(sim_call(sim, SIM_BROADCAST).max_ns, 1000 + 300);
    /* Sent at 1300, there at 15 more, 303 to take, 5000 out of the kernel, 1000 to lock the own mutex. */
    for (uint32_t i = 1; i <= 2; i++)
        ck_assert_uint_eq(result_of(sim, 0, i).to_ns, MS + 1300 + 15 + 303 + 5000 + 1000);
    sim_free(sim);
}

TEST(without_waiters_nothing_is_sent) {
    struct build b;
    build_open(&b);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, 100);
    end(&b, 0, 0);
    struct sim_config config = chip_of(SIM_ATAC, 4);
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_eq(sim_summary(sim).n_messages, 0);
    ck_assert_uint_eq(sim_call(sim, SIM_WAKE_SKIPPED).n, 1);
    ck_assert_uint_eq(result_of(sim, 0, 0).to_ns, 100);
    sim_free(sim);
}

/*
 * The condition is at tile 1, where thread 1 waits. A signal ends its wait while a slow broadcast is on its way to that
 * tile: thread 2 is still woken by it.
 */
TEST(a_broadcast_under_way_reaches_its_ni) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 5, 0); /* at tile 0 */
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 5, 0);
    for (uint32_t i = 1; i < 3; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, i * 5000);
        wait(&b, i, 1, 0, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, MS);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 2, 0);
    end_all(&b, 3);
    struct sim_config config = chip_of(SIM_ATAC, 3);
    config.let_pass = false;
    config.optical.transport_cycles = 20000;
    config.interface_cycles = 0; /* it is sent before the signal has reached the NI */
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_lt(result_of(sim, 0, 1).to_ns, MS + 2000);
    ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, MS + 20000);
    sim_free(sim);
}

/*
 * Threads 1 and 3 share core 1; the mutexes and the condition are at tile 0, as thread 0 is.
 *  1. Thread 1 waits with mutex 0. Thread 0 takes that mutex, and broadcasts at 1 ms: thread 1 waits for the mutex.
 *  2. Thread 3 waits with mutex 6 from 10 us later on. Its core listens already, for thread 1.
 *  3. The message of step 1 comes to that core.
 *  4. Thread 0 signals: thread 3 comes back as from an NI, whether step 3 was before step 2 or after it.
 */
TEST(a_thread_that_waits_after_the_sending_is_not_told) {
    uint64_t back[2];
    for (int slow = 0; slow < 2; slow++) {
        struct build b;
        build_open(&b);
        create_all(&b, 4);
        for (uint32_t mutex = 0; mutex <= 6; mutex += 6) {
            call(&b, 0, SBT_TRACE_MUTEX_LOCK, mutex, 0);
            call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, mutex, 0);
        }
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 5000);
        wait(&b, 1, 1, 0, 1, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, MS);
        signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, 0);
        call(&b, 3, SBT_TRACE_MUTEX_LOCK, 6, MS + 10000);
        wait(&b, 3, 1, 6, 2, 0);
        call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 6, 0);
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 2, 50000);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 50000);
        end_all(&b, 4);
        struct sim_config config = chip_of(SIM_ATAC, 2);
        config.migrate = false;
        if (slow)
            config.optical.transport_cycles = 20000;
        struct sim *sim = simulate(&config, build_close(&b), 1);
        ck_assert_uint_eq(sim_summary(sim).n_messages, 1);
        back[slow] = result_of(sim, 0, 3).to_ns;
        sim_free(sim);
    }
    ck_assert_uint_gt(back[0], MS + 50000);
    ck_assert_uint_eq(back[0], back[1]);
}

/* ---- large ---- */

TEST(a_thousand_cores) {
    enum { N = 1024 };
    static uint64_t work[N][EPISODES];
    const struct sbt_trace *trace = meetings(N, N, 2, work);
    struct sim_config config = chip_of(SIM_ATAC, N);
    struct sim *sim = simulate(&config, trace, 1);
    /* Each thread sends, waits 15 for the first message, and takes 1023: the controller is faster than the thread. */
    ck_assert_uint_eq(sim_summary(sim).makespan_ns, 2 * (300 + 15 + 1023 * 303));
    ck_assert_uint_eq(sim_summary(sim).n_transferred, 2 * N * (N - 1));
    sim_free(sim);
    config.interface_cycles = 0; /* then it is not: the last message comes at 5 + 1023 * 10 */
    sim = simulate(&config, trace, 1);
    ck_assert_uint_eq(sim_summary(sim).makespan_ns, 2 * (5 + 1023 * 10 + 3));
    sim_free(sim);
}
