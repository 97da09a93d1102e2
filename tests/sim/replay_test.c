/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a replay keeps and what the chip decides; on both machines where it is the same. */
#include <malloc.h>

#include "build.h"
#include "lib/suite.h"

TEST(work_takes_its_time) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 1000);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 2000);
    end(&b, 0, 3000);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        struct sim_thread_result r = result_of(sim, 0, 0);
        ck_assert_uint_eq(r.in_ns[SIM_WORK], 6000);
        ck_assert_uint_eq(r.in_ns[SIM_READY], 0);
        ck_assert_uint_eq(r.to_ns, 6000 + r.sync_ns);
        ck_assert_uint_eq(sim_summary(sim).makespan_ns, r.to_ns);
        ck_assert_uint_eq(r.n_calls, 2);
        ck_assert_uint_eq(r.n_sections, 1);
        sim_free(sim);
    }
}

/* docs/hardware.md: at its own NI the lock of a free mutex takes 69 ns, in the far corner 192, and an unlock 60. */
TEST(the_hardwares_latencies) {
    for (uint32_t far = 0; far < 2; far++) {
        struct build b;
        build_open(&b);
        for (uint32_t i = 0; i < (far ? 64u : 1u); i++) { /* objects get the NIs in turn */
            call(&b, 0, SBT_TRACE_MUTEX_LOCK, i, 0);
            call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, i, 0);
        }
        for (int i = 0; i < 200; i++) {
            call(&b, 0, SBT_TRACE_MUTEX_LOCK, far ? 63 : 0, 1000);
            call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, far ? 63 : 0, 1000);
        }
        end(&b, 0, 0);
        struct sim_config config = config_of(SIM_SUBUTAI);
        struct sim *sim = simulate(&config, build_close(&b), 1);
        ck_assert_uint_eq(sim_call(sim, SIM_LOCK_EMPTY).median_ns, far ? 192 : 68); /* 69 in steps of 2 */
        ck_assert_uint_eq(sim_call(sim, SIM_UNLOCK).median_ns, 60);
        struct sim_thread_result r = result_of(sim, 0, 0);
        if (!far) /* exactly: all locks but the first take 69 */
            ck_assert_uint_eq(sim_call(sim, SIM_LOCK_EMPTY).max_ns + 200 * 69 + 201 * 60, r.sync_ns);
        sim_free(sim);
    }
}

/* With an optical network a thread that has kept its core sees the messages of a barrier and of a broadcast itself. */
static bool comes_back_from_an_ni(int sync, bool locks) {
    return sync == SIM_SUBUTAI || (sync == SIM_ATAC && locks);
}

/* Back from a wait for others: thread 2 for a mutex, a condition, a barrier. Thread 1, which came last or first, has no
 * wait. */
TEST(a_thread_that_has_waited_takes_longer_to_come_back) {
    enum { MORE = 777, HELD, SIGNALLED, MET, N_WAYS };
    for (int way = HELD; way < N_WAYS; way++) {
        struct build b;
        build_open(&b);
        init(&b, 0, SBT_TRACE_BARRIER, 2, 2);
        create_all(&b, 3);
        if (way == HELD) {
            call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
            call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 9 * MS);
            call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, MS);
        } else if (way == SIGNALLED) {
            signal_(&b, 1, SBT_TRACE_COND_BROADCAST, 1, 1, 9 * MS);
            call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, MS);
            wait(&b, 2, 1, 0, 1, 0);
        } else {
            call(&b, 1, SBT_TRACE_BARRIER_WAIT, 2, 9 * MS);
            call(&b, 2, SBT_TRACE_BARRIER_WAIT, 2, MS);
        }
        if (way != MET)
            call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end_all(&b, 3);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = simulate(&config, trace, 1);
            config.timing.resume_cycles += MORE;
            struct sim *later = simulate(&config, trace, 1);
            ck_assert_uint_eq(result_of(later, 0, 1).to_ns, result_of(sim, 0, 1).to_ns);
            if (!sim_sync_has_optics((enum sim_sync)sync) ||
                way != SIGNALLED) /* there the message has told it: atac_test.c */
                ck_assert_uint_eq(result_of(later, 0, 2).to_ns,
                                  result_of(sim, 0, 2).to_ns +
                                      (comes_back_from_an_ni(sync, way == HELD) ? (uint64_t)MORE : 0));
            sim_free(sim);
            sim_free(later);
        }
    }
}

/* No thread has ever waited: on the hardware it has no ID yet, and nothing is sent. */
TEST(a_signal_without_waiters) {
    for (int broadcast = 0; broadcast < 2; broadcast++) {
        struct build b;
        build_open(&b);
        for (uint64_t i = 1; i <= 100; i++)
            signal_(&b, 0, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 0, i, 500);
        end(&b, 0, 0);
        struct sim_config config = config_of(SIM_SUBUTAI);
        struct sim *sim = simulate(&config, build_close(&b), 1);
        ck_assert_uint_eq(result_of(sim, 0, 0).sync_ns, 0);
        ck_assert_uint_eq(sim_call(sim, SIM_WAKE_SKIPPED).n, 100);
        ck_assert_uint_eq(sim_summary(sim).n_packets, 0);
        sim_free(sim);
    }
}

TEST(creation_and_join_bind) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 5 * MS);
    create(&b, 1, 2, MS);
    end(&b, 1, MS);
    end(&b, 2, 30 * MS);
    join(&b, 0, 1, 0);
    join(&b, 0, 2, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_eq(result_of(sim, 0, 1).from_ns, 5 * MS);
        ck_assert_uint_eq(result_of(sim, 0, 2).from_ns, 6 * MS);
        ck_assert_uint_eq(result_of(sim, 0, 1).to_ns, 7 * MS);
        ck_assert_uint_eq(result_of(sim, 0, 0).to_ns, 36 * MS);
        sim_free(sim);
    }
}

static uint32_t grants[64], n_grants;
static bool note_grant(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    (void)context;
    (void)application;
    if (mutex == 0 && n_grants < 64)
        grants[n_grants++] = thread;
    return true;
}

/* Recorded: 3, 2, 1. In virtual time 1 is there first. */
static const struct sbt_trace *three_lockers(void) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++) {
        lock_nth(&b, i, 0, 4 - i, i * MS);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 10);
    }
    end_all(&b, 4);
    return build_close(&b);
}

TEST(lock_order_is_free_or_as_recorded) {
    const struct sbt_trace *trace = three_lockers();
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        for (int recorded = 0; recorded < 2; recorded++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            config.recorded_order = recorded;
            config.on_grant = note_grant;
            n_grants = 0;
            struct sim *sim = simulate(&config, trace, 1);
            ck_assert_uint_eq(n_grants, 3);
            for (uint32_t i = 0; i < 3; i++)
                ck_assert_uint_eq(grants[i], recorded ? 3 - i : i + 1);
            ck_assert_uint_ge(result_of(sim, 0, 1).to_ns, recorded ? 3 * MS : MS);
            ck_assert_uint_lt(result_of(sim, 0, 1).to_ns, recorded ? 4 * MS : 2 * MS);
            sim_free(sim);
        }
}

TEST(a_mutex_excludes) {
    enum { N = 32, ROUNDS = 20, HELD = 5000 };
    struct build b;
    build_open(&b);
    create_all(&b, N);
    for (uint32_t i = 0; i < N; i++)
        for (int k = 0; k < ROUNDS; k++) {
            call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, i * 13 % 7 * 100);
            call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, HELD);
        }
    end_all(&b, N);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        const struct sim_application *a = sim_application(sim, 0);
        ck_assert_uint_eq(a->sections.n, N * ROUNDS);
        ck_assert_uint_ge(a->sections.sum_ns, UINT64_C(1) * N * ROUNDS * HELD);
        ck_assert_uint_le(a->sections.sum_ns, a->to_ns); /* never two at a time */
        ck_assert_uint_eq(sim_section_ns(sim, 0, 0), a->sections.sum_ns);
        ck_assert_uint_gt(sim_call(sim, SIM_LOCK_QUEUED).n, N * ROUNDS / 2);
        sim_free(sim);
    }
}

static void fails(struct build *b, uint32_t thread, enum sbt_trace_op op, uint16_t result, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_MUTEX,
                                         .object = 0,
                                         .other = SBT_TRACE_NONE,
                                         .result = result,
                                         .work_ns = work});
}

/* One request in hardware, an attempt in software. It fails as it did, also if the mutex is free here. */
TEST(a_failed_trylock) {
    enum { N = 20 };
    for (int held = 0; held < 2; held++) {
        struct build b;
        build_open(&b);
        create_all(&b, 3);
        if (held) {
            call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
            call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 9 * MS);
        }
        for (uint32_t k = 0; k < N; k++)
            fails(&b, 2, SBT_TRACE_MUTEX_TRYLOCK, EBUSY, MS / 10);
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 3 * MS);
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end_all(&b, 3);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = simulate(&config, trace, 1);
            struct sim_latency l = sim_call(sim, SIM_TRYLOCK);
            ck_assert_uint_eq(l.n, N);
            ck_assert_uint_ge(l.median_ns, sync == SIM_SOFTWARE ? 1000 : 60);
            ck_assert_uint_le(l.median_ns, sim_sync_has_nis((enum sim_sync)sync) ? 100 : 2000);
            ck_assert_uint_eq(sim_application(sim, 0)->sections.n, held ? 2 : 1);
            ck_assert_uint_ge(result_of(sim, 0, 0).to_ns, held ? 9 * MS : 3 * MS);
            ck_assert_uint_le(result_of(sim, 0, 0).to_ns, held ? 10 * MS : 4 * MS);
            sim_free(sim);
        }
    }
}

static uint64_t took_ns(const struct sim *sim, enum sim_call_kind kind) {
    struct sim_latency l = sim_call(sim, kind);
    ck_assert_uint_gt(l.n, 0);
    return (uint64_t)(l.mean_ns * (double)l.n + 0.5);
}

/* A trylock that failed in the trace, and finds the mutex free here, unlocks at once: the core hands that over while
 * its thread goes on, and the next trylock after that. The first one allocates. */
TEST(a_core_hands_over_one_request_at_a_time) {
    enum { N = 20 };
    struct build b;
    build_open(&b);
    for (uint32_t k = 0; k < N; k++)
        fails(&b, 0, SBT_TRACE_MUTEX_TRYLOCK, EBUSY, 0);
    end(&b, 0, 0);
    struct sim_config config = config_of(SIM_SUBUTAI);
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_eq(took_ns(sim, SIM_TRYLOCK), 69 + 69 + (N - 1) * (60 + 69));
    sim_free(sim);
}

/* The thread that found it taken gets it at the second attempt, and cannot know that no other has come: its call of the
 * kernel is in vain. */
TEST(a_mutex_that_was_wanted_is_released_in_the_kernel) {
    const struct sim_costs costs = sim_costs_default();
    const uint64_t line = 1000; /* more than a line of memory takes */
    for (int wanted = 0; wanted < 2; wanted++) {
        struct build b;
        build_open(&b);
        create_all(&b, 3);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, MS);
        call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, wanted ? MS - 2 * costs.attempt_ns : 2 * MS);
        call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, MS);
        end_all(&b, 3);
        struct sim_config config = config_of(SIM_SOFTWARE);
        struct sim *sim = simulate(&config, build_close(&b), 1);
        uint64_t unlocks = took_ns(sim, SIM_UNLOCK),
                 expected = 2 * costs.attempt_ns + (wanted ? 2 * costs.kernel_ns : 0);
        ck_assert_uint_ge(unlocks, expected);
        ck_assert_uint_lt(unlocks, expected + 2 * line);
        ck_assert_uint_eq(sim_call(sim, SIM_LOCK_QUEUED).n, (uint64_t)wanted);
        ck_assert_uint_eq(sim_summary(sim).n_futex_waits, (uint64_t)wanted);
        ck_assert_uint_eq(sim_summary(sim).n_futex_wakes, 0);
        sim_free(sim);
    }
}

/* Nothing to attempt in the kernel, in and out; a mutex that is held as long has the second attempt, and a third. */
TEST(a_barrier_is_slept_at_without_an_attempt) {
    const struct sim_costs costs = sim_costs_default();
    for (int mutex = 0; mutex < 2; mutex++) {
        struct build b;
        build_open(&b);
        init(&b, 0, SBT_TRACE_BARRIER, 1, 2);
        create_all(&b, 3);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
        if (!mutex)
            call(&b, 1, SBT_TRACE_BARRIER_WAIT, 1, MS);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, mutex ? MS : 0);
        call(&b, 2, mutex ? SBT_TRACE_MUTEX_LOCK : SBT_TRACE_BARRIER_WAIT, mutex ? 0 : 1, MS / 2);
        if (mutex)
            call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        end_all(&b, 3);
        struct sim_config config = config_of(SIM_SOFTWARE);
        struct sim *sim = simulate(&config, build_close(&b), 1);
        ck_assert_uint_eq(sim_summary(sim).n_futex_waits, 1);
        ck_assert_uint_eq(sim_summary(sim).n_futex_wakes, 1);
        uint64_t end = result_of(sim, 0, 2).to_ns, from = MS + 2 * costs.attempt_ns + costs.kernel_ns + costs.wake_ns;
        uint64_t expected = from + costs.kernel_ns + (mutex ? 2 * costs.attempt_ns + costs.kernel_ns : 0);
        ck_assert_uint_ge(end, expected);
        ck_assert_uint_lt(end, expected + 2000);
        sim_free(sim);
    }
}

TEST(an_unlock_that_failed_releases_nothing) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * MS);
    fails(&b, 2, SBT_TRACE_MUTEX_UNLOCK, EPERM, MS);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end_all(&b, 3);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, 5 * MS);
        sim_free(sim);
    }
}

TEST(a_barrier_opens_for_all_when_the_last_has_come) {
    enum { N = 16, ROUNDS = 10 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, N);
    create_all(&b, N);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < ROUNDS; k++)
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, (i + k) % N == 0 ? MS : 100);
    end_all(&b, N);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        for (uint32_t i = 0; i < N; i++)
            ck_assert_uint_ge(result_of(sim, 0, i).to_ns, ROUNDS * MS);
        ck_assert_uint_eq(sim_call(sim, SIM_BARRIER).n, N * ROUNDS);
        sim_free(sim);
    }
}

TEST(a_recursive_mutex_is_one_section) {
    struct build b;
    build_open(&b);
    for (int i = 0; i < 3; i++)
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 1000);
    for (int i = 0; i < 3; i++)
        call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 1000);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_eq(sim_application(sim, 0)->sections.n, 1);
        ck_assert_uint_ge(sim_application(sim, 0)->sections.sum_ns, 5000);
        sim_free(sim);
    }
}

TEST(readers_share_and_writers_do_not) {
    enum { N = 8 };
    for (int writers = 0; writers < 2; writers++) {
        struct build b;
        build_open(&b);
        create_all(&b, N);
        for (uint32_t i = 0; i < N; i++) {
            call(&b, i, writers ? SBT_TRACE_RWLOCK_WRLOCK : SBT_TRACE_RWLOCK_RDLOCK, 0, 0);
            call(&b, i, SBT_TRACE_RWLOCK_UNLOCK, 0, MS);
        }
        end_all(&b, N);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = simulate(&config, trace, 1);
            uint64_t all = sim_summary(sim).makespan_ns;
            ck_assert_uint_ge(all, writers ? N * MS : MS);
            ck_assert_uint_lt(all, writers ? (N + 1) * MS : 2 * MS);
            sim_free(sim);
        }
    }
}

/* Two spin on one core; the owner is on it, too: it takes slots until it can release. */
TEST(spinning_uses_the_core) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t i = 0; i < 3; i++) {
        call(&b, i, SBT_TRACE_SPIN_LOCK, 0, 0);
        call(&b, i, SBT_TRACE_SPIN_UNLOCK, 0, 3 * MS);
    }
    end_all(&b, 3);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        config.width = config.height = 1;
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_ge(sim_summary(sim).makespan_ns, 3 * 3 * MS + 3 * MS);
        sim_free(sim);
        config.width = config.height = 2;
        sim = simulate(&config, trace, 1);
        ck_assert_uint_lt(sim_summary(sim).makespan_ns, 10 * MS);
        sim_free(sim);
    }
}

/* Objects that come and go, too: what is in use at the end of a run twenty times as long. */
static size_t memory_of(int n_rounds, enum sim_sync sync) {
    enum { N = 8 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, N);
    create_all(&b, N);
    for (int k = 0; k < n_rounds; k++)
        for (uint32_t i = 0; i < N; i++) {
            uint32_t own = 1 + 2 * ((uint32_t)k * N + i), sem = own + 1;
            init(&b, i, SBT_TRACE_SEM, sem, 2); /* of which one is left */
            call(&b, i, SBT_TRACE_SEM_WAIT, sem, 0);
            destroy(&b, i, SBT_TRACE_SEM, sem);
            call(&b, i, SBT_TRACE_MUTEX_LOCK, own, 300);
            call(&b, i, SBT_TRACE_MUTEX_UNLOCK, own, 100);
            destroy(&b, i, SBT_TRACE_MUTEX, own);
            call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 200);
        }
    end_all(&b, N);
    struct sim_config config = config_of(sync);
    const struct sbt_trace *trace = build_close(&b);
    size_t before = mallinfo2().uordblks;
    struct sim *sim = simulate(&config, trace, 1);
    size_t used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    ck_assert_uint_eq(sim_summary(sim).n_calls, (uint64_t)n_rounds * N * 4);
    sim_free(sim);
    return used;
}

TEST(memory_does_not_grow_with_the_trace) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* so that all of it is counted in one place */
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        size_t one = memory_of(500, (enum sim_sync)sync), twenty = memory_of(10000, (enum sim_sync)sync);
        ck_assert_uint_le(twenty, one + 65536); /* 8 bytes for 256 objects, and nothing for an event */
    }
}

/* The results of a run without what it ran with. */
TEST(trimmed) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        enum { N = 4, OBJECTS = 20000 };
        struct build b;
        build_open(&b);
        create_all(&b, N);
        for (uint32_t k = 0; k < OBJECTS; k++) {
            call(&b, k % N, SBT_TRACE_MUTEX_LOCK, k, 100);
            call(&b, k % N, SBT_TRACE_MUTEX_UNLOCK, k, 100);
        }
        end_all(&b, N);
        struct sim_config config = config_of((enum sim_sync)sync);
        const struct sbt_trace *trace = build_close(&b);
        size_t before = mallinfo2().uordblks;
        struct sim *sim = simulate(&config, trace, 2);
        size_t full = mallinfo2().uordblks;
        struct sim_summary s = sim_summary(sim);
        struct sim_thread_result r = result_of(sim, 1, 3);
        struct sim_latency l = sim_call(sim, SIM_LOCK_EMPTY);
        sim_trim(sim);
        if (full != 0) /* a sanitizer's malloc counts nothing */
            ck_assert_uint_gt(full - before, 2 * OBJECTS * 100);
        ck_assert_uint_lt(mallinfo2().uordblks - before, 3000000);
        struct sim_summary s2 = sim_summary(sim);
        struct sim_thread_result r2 = result_of(sim, 1, 3);
        ck_assert_mem_eq(&s, &s2, sizeof s);
        ck_assert_mem_eq(&r, &r2, sizeof r);
        ck_assert_uint_eq(l.max_ns, sim_call(sim, SIM_LOCK_EMPTY).max_ns);
        ck_assert_uint_eq(sim_section_ns(sim, 0, 0), 0);
        sim_free(sim);
    }
}
