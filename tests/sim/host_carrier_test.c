/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carriers that have no fiber, on the host: when one of them comes to the help of another. Cases as host.h says; before
 * a fiber sleeps it takes the 40 ns of the parking lot's queue, and to take fibers from a carrier takes 300 ns.
 */
#include "host.h"

enum { PARKS = 40, TAKES = 300 };

static struct sim_config carriers(uint32_t n, uint64_t search_ns) {
    struct sim_config config = host_of(SIM_SWITCH, n);
    config.host.search_ns = (uint32_t)search_ns;
    return config;
}

/* Fibers 1 to n each wait for a semaphore of their own, and work for 1 us. */
static void begin(struct build *b, uint32_t n) {
    for (uint32_t i = 1; i <= n; i++)
        init(b, 0, SBT_TRACE_SEM, i, 0);
    create_all(b, n + 1);
    for (uint32_t i = 1; i <= n; i++) {
        sem(b, i, SBT_TRACE_SEM_WAIT, i, 1, 0);
        end(b, i, 1 * US);
    }
}

/*
 * Two carriers. Fiber 0 sleeps until 27 us, wakes fiber 1, or fibers 1 and 2, and computes. The other carrier looks at
 * 30 us: too early for a single fiber, which its own carrier may soon take, and not for two. Its next look is at 35 us.
 */
TEST_EACH(more_fibers_wait_for_less_time, 2) {
    struct build b;
    build_open(&b);
    begin(&b, 2);
    sleep_for(&b, 0, 27 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 0);
    sem(&b, 0, SBT_TRACE_SEM_POST, 2, 1, number == 0 ? 1 * MS : 0);
    join_all(&b, 3, 1 * MS);
    struct sim_config config = carriers(2, 40 * US);
    uint64_t taken_at = PARKS + (number == 0 ? 35 : 30) * US;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, taken_at + TAKES + 1 * US);
}

/*
 * Three carriers, of which two sleep. Fiber 0 wakes four fibers at 50 us, and with the first a carrier, and computes.
 * That carrier takes two of them 1 ns later, and wakes the third carrier, which takes another one.
 */
TEST(a_carrier_that_has_taken_several_fibers_wakes_another) {
    struct build b;
    build_open(&b);
    begin(&b, 4);
    sleep_for(&b, 0, 40 * US);
    for (uint32_t i = 1; i <= 4; i++)
        sem(&b, 0, SBT_TRACE_SEM_POST, i, 1, i == 1 ? 10 * US : 0);
    join_all(&b, 5, 1 * MS);
    struct sim_config config = carriers(3, 5 * US);
    ck_assert_uint_eq(run_one(&config, build_close(&b), 3, NULL).to_ns, 50 * US + 2 + TAKES + 1 * US);
}

/*
 * Two carriers. The second has searched for 5 us, and sleeps; its core is idle 48 us later. At 50 us fiber 0 wakes
 * fiber 1, and with it that carrier, for 1 us. It turns back when it is idle, looks 10 us later, and takes the fiber.
 */
TEST(a_carrier_that_is_on_its_way_to_being_idle) {
    struct build b;
    build_open(&b);
    begin(&b, 2);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 50 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 2, 1, 1 * MS);
    join_all(&b, 3, 1 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = carriers(2, 5 * US);
    config.host.wake_idle_ns = 3 * US;
    config.host.late_idle_ns = 40 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, (50 + 40) * US + 1 + TAKES + 1 * US);
    config.host.idle_entry_ns = 48 * US;
    config.host.wake_soon_ns = 1 * US;
    config.host.late_soon_ns = 10 * US;
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns,
                      2 * PARKS + TAKES + (5 + 5 + 48 + 10) * US + 1 + TAKES + 1 * US);
    config.host.idle_entry_ns = 39 * US; /* it is idle by then */
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, (50 + 40) * US + 1 + TAKES + 1 * US);
}

/*
 * As above, and core 1 is idle some 52 us after the beginning, 42 us after its carrier's search: the waker, at 50 us,
 * pays for a carrier on its way. From the time when the core lost its fiber on, the 42 us would be over.
 */
TEST(the_way_to_being_idle_begins_after_the_search) {
    struct build b;
    build_open(&b);
    begin(&b, 2);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 50 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 2, 1, 1 * MS);
    join_all(&b, 3, 1 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = carriers(2, 5 * US);
    config.host.wake_idle_ns = 3 * US;
    config.host.wake_soon_ns = 1 * US;
    uint64_t call_ns = run_one(&config, trace, 0, NULL).in_ns[SIM_CALL];
    config.host.idle_entry_ns = 42 * US;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).in_ns[SIM_CALL], call_ns - 2 * US);
}

/*
 * Two carriers. Fiber 0 wakes fiber 1 and the other carrier at 50 us, and sleeps for a moment: its own carrier runs
 * fiber 1. The other one looks in vain, searches again for 5 us, and is on its way to being idle for 48 us from then
 * on. Fiber 0 is back before that is over, wakes fiber 2, and so finds it on its way.
 */
TEST(a_carrier_that_was_woken_in_vain_is_on_its_way_anew) {
    struct build b;
    build_open(&b);
    begin(&b, 3);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 50 * US);
    sleep_for(&b, 0, 5 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 2, 1, 0);
    sem(&b, 0, SBT_TRACE_SEM_POST, 3, 1, 1 * MS);
    join_all(&b, 4, 1 * MS);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = carriers(2, 5 * US);
    config.host.late_idle_ns = 40 * US;
    config.host.late_soon_ns = 10 * US;
    config.host.idle_entry_ns = 48 * US;
    uint64_t looks_at = 3 * PARKS + TAKES + (5 + 5 + 48 + 10) * US + 1;
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, looks_at + (5 + 48 + 10) * US + 1 + TAKES + 1 * US);
}

/*
 * Two carriers. Fiber 2 has a spin lock, and sleeps. Fiber 0 wakes fiber 1 at 28 us, which the other carrier, at its
 * last look, leaves where it is. Fiber 0 spins for the lock for 4 us and yields: fiber 1 runs, which computes, and the
 * yield wakes the other carrier. That searches again, and takes fiber 0 at its second look, 5 us later.
 */
TEST(a_yield_wakes_a_carrier_that_searches) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    create_all(&b, 3);
    sem(&b, 1, SBT_TRACE_SEM_WAIT, 1, 1, 0);
    end(&b, 1, 1 * MS);
    call(&b, 2, SBT_TRACE_SPIN_LOCK, 2, 0);
    sleep_for(&b, 2, 100 * US);
    call(&b, 2, SBT_TRACE_SPIN_UNLOCK, 2, 0);
    end(&b, 2, 0);
    sleep_for(&b, 0, 26 * US);
    sem(&b, 0, SBT_TRACE_SEM_POST, 1, 1, 2 * US);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 2, 0);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = carriers(2, 30 * US);
    config.host.spin_looks_ns = 4 * US;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 0, NULL).in_ns[SIM_READY], 1 + 5 * US + TAKES);
}

/*
 * One carrier. Fibers 1 and 2 wake each other, 100 times each after 1 us, while fiber 1 has a spin lock. Fiber 0 spins
 * for that for 2 us each time that it has the carrier, and yields: first at 10 us, when ten of the two fibers' turns
 * have begun, and then after 64 of them each time. Fiber 2's first wait does not sleep.
 */
TEST(a_fiber_that_has_yielded_has_its_turn) {
    enum { ROUNDS = 100, BEFORE = 10, TURNS = 1 + (2 * ROUNDS - BEFORE) / 64 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 1, 0);
    init(&b, 0, SBT_TRACE_SEM, 2, 0);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_SPIN_LOCK, 3, 0);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        sem(&b, 1, SBT_TRACE_SEM_POST, 1, i, 1 * US);
        sem(&b, 1, SBT_TRACE_SEM_WAIT, 2, i, 0);
        sem(&b, 2, SBT_TRACE_SEM_WAIT, 1, i, 0);
        sem(&b, 2, SBT_TRACE_SEM_POST, 2, i, 1 * US);
    }
    call(&b, 1, SBT_TRACE_SPIN_UNLOCK, 3, 0);
    end(&b, 1, 0);
    end(&b, 2, 0);
    sleep_for(&b, 0, 10 * US);
    call(&b, 0, SBT_TRACE_SPIN_LOCK, 3, 0);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 3, 0);
    join_all(&b, 3, 0);
    struct sim_config config = carriers(1, 0);
    config.host.spin_looks_ns = 2 * US;
    uint64_t rounds = 2 * ROUNDS * (1 * US + PARKS) - PARKS;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 1, NULL).to_ns, rounds + TURNS * 2 * US);
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
