/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends that are not the usual ones: of threads that hold something, of replays that cannot go on, of virtual time. */
#include <string.h>

#include "build.h"
#include "events.h"
#include "lib/suite.h"

#define US UINT64_C(1000)

/* Must not succeed. Its message, and which threads wait for what, is in `text`. */
static enum sim_status failure(const struct sim_config *config, const struct sbt_trace *trace, char *text,
                               size_t size) {
    struct sim_error error = {.text = ""};
    struct sim *sim = sim_new(config, &error);
    ck_assert_msg(sim != NULL, "%s", error.text);
    ck_assert_msg(sim_add(sim, trace, "test", &error) == SIM_OK, "%s", error.text);
    enum sim_status status = sim_run(sim, &error);
    ck_assert_int_ne(status, SIM_OK);
    FILE *out = fmemopen(text, size, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%s\n", error.text);
    sim_stuck(sim, out, 10);
    fclose(out);
    sim_free(sim);
    return status;
}

static void expect_stuck(const struct sbt_trace *trace, const char *why) {
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        char text[2000];
        if (sync ==
            SIM_DELEGATE) /* one alone runs a thread's sections before another one's, and there is no deadlock */
            config.host.n_servers = 2;
        ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_STUCK);
        ck_assert_msg(strstr(text, why) != NULL, "%s: '%s' is not in: %s", sim_sync_name(config.sync), why, text);
    }
}

static bool stop(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    (void)context;
    (void)application;
    (void)mutex;
    (void)thread;
    return false;
}

/* Thread 1 gets a mutex, and the run is stopped. Then threads 0 and 2 are ready or run, and thread 3 sleeps for a time.
 */
TEST(only_waiting_threads_are_said_to_wait) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, MS);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 1, 5 * MS);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 1, 0);
    build_event(&b, 3,
                (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                         .type = SBT_TRACE_NO_OBJECT,
                                         .object = SBT_TRACE_NONE,
                                         .other = SBT_TRACE_NONE,
                                         .result = ETIMEDOUT,
                                         .took_ns = 10 * MS});
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 2, 5 * MS);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++)
        for (uint32_t width = 1; width <= 4; width += 3) {
            struct sim_config config = config_of((enum sim_sync)sync);
            char text[2000];
            config.width = width;
            config.height = 1;
            config.host.n_servers = sync == SIM_DELEGATE && width > 1;
            config.on_grant = stop;
            ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_STOPPED);
            ck_assert_msg(strstr(text, "thread 0") == NULL && strstr(text, "thread 2") == NULL, "%s", text);
            ck_assert_msg(strstr(text, "thread 3 waits for a time") != NULL || width == 1, "%s", text);
        }
}

/*
 * Under the engine direct, and in hardware, a broadcast moves the waiter to the queue of the mutex that is held. It
 * waits for that, and no more for the signal. Under glibc it is woken, and finds the mutex held.
 */
TEST(a_woken_waiter_waits_for_the_mutex) {
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 1, 1, 0, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 1, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, MS);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, 0);
    end(&b, 0, MS);
    expect_stuck(build_close(&b), "thread 1 waits for mutex 0 held by thread 0, which has ended");
}

/* ---- an owner that has ended ---- */

TEST_EACH(the_ended_owner_is_named, 3) {
    static const struct {
        enum sbt_trace_op taken, wanted;
        const char *what;
    } kinds[] = {
        {SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX_LOCK, "mutex 7 held by thread 1, which has ended"},
        {SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK_RDLOCK, "rwlock 7 held by thread 1, which has ended"},
        {SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN_LOCK, "spin lock 7 held by thread 1, which has ended"},
    };
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    call(&b, 1, kinds[number].taken, 7, 0);
    end(&b, 1, 0);
    join(&b, 0, 1, 0);
    call(&b, 0, kinds[number].wanted, 7, 0);
    end(&b, 0, 0);
    expect_stuck(build_close(&b), kinds[number].what);
}

/* ---- the end of time ---- */

/* The reader takes any 64 bits: with these, the end of the wait would be before its beginning. */
TEST_EACH(no_wait_lasts_for_ever, 3) {
    static const struct sbt_trace_event waits[] = {
        {.op = SBT_TRACE_MUTEX_LOCK, .type = SBT_TRACE_MUTEX, .object = 0, .other = SBT_TRACE_NONE},
        {.op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = 1, .other = SBT_TRACE_NONE},
        {.op = SBT_TRACE_COND_WAIT, .type = SBT_TRACE_COND, .object = 2, .other = SBT_TRACE_NONE}};
    static const uint64_t times[] = {UINT64_MAX - 999, UINT64_MAX - 3 * MS, UINT64_MAX / 2};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        struct build b;
        struct sbt_trace_event event = waits[number];
        build_open(&b);
        create_all(&b, 2);
        event.work_ns = 5000;
        event.result = ETIMEDOUT;
        event.took_ns = times[k];
        build_event(&b, 1, event);
        end_all(&b, 2);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            char text[2000];
            ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_DAMAGED);
            ck_assert_ptr_nonnull(strstr(text, "thread 1 waits for more than a hundred years"));
        }
    }
}

TEST(time_does_not_run_backwards) {
    struct sim_events *events = malloc(sizeof *events);
    struct sim_event event = {.kind = SIM_EV_TIMER};
    enum sim_event_kind kind = SIM_EV_CORE;
    ck_assert(sim_events_init(events));
    sim_events_put(events, 10000, &event);
    ck_assert_ptr_nonnull(sim_events_take(events, &kind));
    ck_assert_int_eq(kind, SIM_EV_TIMER);
    ck_assert_uint_eq(events->now, 10000);
    sim_events_put(events, 10000, &event);
    ck_assert(!events->past);
    sim_events_put(events, 9999, &event);
    ck_assert(events->past);
    ck_assert_ptr_nonnull(sim_events_take(events, &kind));
    ck_assert_ptr_null(sim_events_take(events, &kind));
    ck_assert_uint_eq(events->now, 10000);
    sim_events_free(events);
    free(events);
}

/* ---- stuck for ever, with something to try again ---- */

static void expect_stuck_config(struct sim_config config, const struct sbt_trace *trace, const char *why) {
    for (int policy = 0; policy < CSA_N_POLICIES; policy++) {
        char text[2000];
        config.sched.policy = (enum csa_policy)policy;
        ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_STUCK);
        ck_assert_msg(strstr(text, why) != NULL, "%s: '%s' is not in: %s", sim_sync_name(config.sync), why, text);
    }
}

/* More threads wait for signals than there are queue elements: thread i for that of the number last - step * i. */
enum { N_MANY = 131 };

static struct build many_threads(uint64_t last, uint64_t step) {
    struct build b;
    build_open(&b);
    create_all(&b, N_MANY);
    for (uint32_t i = 1; i < N_MANY; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 0);
        wait(&b, i, 1, 0, last - step * i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    }
    return b;
}

TEST_EACH(no_signal_and_no_element, 2) {
    struct build b = many_threads(7, 0);
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 1, MS);
    end_all(&b, N_MANY);
    struct sim_config config = config_of(SIM_SUBUTAI);
    config.strict_paper = number == 1;
    expect_stuck_config(config, build_close(&b), "thread 1 waits for signal 7 of condition 1, which has not happened");
}

/* A waiter that finds no element looks at the predicate before it waits in software: its signal may be there by then.
 */
TEST_EACH(a_signal_and_no_element, 2) {
    struct build b = many_threads(N_MANY, 1);
    for (uint32_t i = 1; i < N_MANY; i++)
        signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, i, i == 1 ? 10 * MS : 20 * US);
    end_all(&b, N_MANY);
    struct sim_config config = config_of(SIM_SUBUTAI);
    config.strict_paper = number == 1;
    struct sim *sim = simulate(&config, build_close(&b), 1);
    ck_assert_uint_ge(result_of(sim, 0, 1).to_ns, 10 * MS);
    ck_assert_uint_le(result_of(sim, 0, 1).to_ns, 20 * MS);
    sim_free(sim);
}

/* As on the paper's chip, but there no line would say so. */
TEST(told_eagain_for_ever) {
    enum { N = 5 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 1, 3);
    init(&b, 0, SBT_TRACE_BARRIER, 2, 3);
    create_all(&b, N);
    for (uint32_t i = 1; i < N; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 1 + i % 2, i * 10000);
    call(&b, 0, SBT_TRACE_BARRIER_WAIT, 1, MS);
    end_all(&b, N);
    struct sim_config config = config_of(SIM_SUBUTAI);
    config.strict_paper = true;
    config.width = config.height = 1;
    config.n_queue = 3;
    expect_stuck_config(config, build_close(&b), "waits for barrier 2 of 3 threads");
}

TEST(spinning_for_ever) {
    enum { N = 5 };
    struct build b;
    build_open(&b);
    create_all(&b, N);
    call(&b, 1, SBT_TRACE_SPIN_LOCK, 0, 0);
    end(&b, 1, 0);
    join(&b, 0, 1, 0);
    for (uint32_t i = 2; i < N; i++)
        call(&b, i, SBT_TRACE_SPIN_LOCK, 0, MS);
    for (uint32_t i = 2; i < N; i++) {
        end(&b, i, 0);
        join(&b, 0, i, 0);
    }
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        config.width = config.height = 1;
        expect_stuck_config(config, trace, "thread 2 waits for spin lock 0 held by thread 1, which has ended");
    }
}

/* ---- events that end before the program does ---- */

/* exit() while a worker is in a section: in the trace main had been there before, here it comes after. */
TEST_EACH(a_worker_inside_a_section_at_exit, 3) {
    static const struct {
        enum sbt_trace_op in, out;
    } kinds[] = {{SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX_UNLOCK},
                 {SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK_UNLOCK},
                 {SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN_UNLOCK}};
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    call(&b, 1, kinds[number].in, 0, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 1, 2 * MS);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 1, 0);
    call(&b, 0, kinds[number].in, 0, MS);
    call(&b, 0, kinds[number].out, 0, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_eq(sim_application(sim, 0)->n_cut, 1);
        ck_assert_uint_ge(result_of(sim, 0, 0).to_ns, 2 * MS);
        ck_assert_uint_eq(sim_summary(sim).n_calls, 5);
        ck_assert_uint_eq(sim_summary(sim).n_events, 7);
        sim_free(sim);
    }
}

/* More levels than a stack has room for frames. */
TEST(a_mutex_locked_again_and_again_at_exit) {
    enum { DEPTH = 1 << 20 };
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    for (uint32_t i = 0; i < DEPTH; i++)
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, MS);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = simulate(&config, trace, 1);
        ck_assert_uint_eq(sim_application(sim, 0)->n_cut, 1);
        ck_assert_uint_eq(sim_application(sim, 0)->sections.n, 2);
        sim_free(sim);
    }
}

/* On many pages, all of which are given back. */
TEST(many_mutexes_locked_at_exit) {
    enum { N = 20000 };
    struct build b;
    build_open(&b);
    for (uint32_t i = 0; i < N; i++)
        call(&b, 0, SBT_TRACE_MUTEX_LOCK, i, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = config_of(SIM_SOFTWARE);
    struct sim *sim = simulate(&config, trace, 1);
    ck_assert_uint_eq(sim_application(sim, 0)->n_cut, 1);
    ck_assert_uint_eq(sim_application(sim, 0)->sections.n, N);
    sim_free(sim);
}

/* Main waited at the barrier with the others and called exit() before they had recorded it. */
TEST(a_barrier_that_others_have_not_recorded) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 3);
    create_all(&b, 3);
    for (uint32_t i = 0; i < 3; i++)
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, MS);
    call(&b, 0, SBT_TRACE_BARRIER_WAIT, 0, MS);
    call(&b, 1, SBT_TRACE_BARRIER_WAIT, 0, 2 * MS);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        for (int policy = 0; policy < CSA_N_POLICIES; policy++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            config.sched.policy = (enum csa_policy)policy;
            config.let_pass = true;
            struct sim *sim = simulate(&config, trace, 2);
            ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], 2);
            ck_assert_uint_eq(sim_summary(sim).n_events, 2 * sbt_trace_info(trace)->n_events);
            for (uint32_t i = 0; i < 2; i++) {
                const struct sim_application *a = sim_application(sim, i);
                struct sim_thread_result r = result_of(sim, i, 0);
                ck_assert_uint_eq(a->n_cut, 2);
                ck_assert_uint_ge(a->to_ns - a->from_ns, MS);
                ck_assert_uint_le(a->to_ns - a->from_ns, 4 * MS);
                ck_assert_uint_le(r.to_ns, a->to_ns);
            }
            sim_free(sim);
        }
}

/* One at a time: the second application finds a chip on which no thread waits any more, in no NI and on no core. */
TEST_EACH(let_pass_one_after_another, 2) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 4);
    init(&b, 0, SBT_TRACE_BARRIER, 1, 2);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 2, 1000);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 2, 1000);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, number == 1 && i == 3, 10000);
    }
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        for (uint32_t side = 1; side <= 2; side++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            config.sched.policy = CSA_OAT;
            config.width = config.height = side;
            config.n_control = 3;
            config.n_queue = 4;
            config.let_pass = true;
            struct sim *sim = simulate(&config, trace, 3);
            ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], number == 1 ? 6 : 3);
            const struct sim_application *first = sim_application(sim, 0);
            for (uint32_t i = 0; i < 3; i++) {
                const struct sim_application *a = sim_application(sim, i);
                /* from other cores on, and in NIs with the primitives of others */
                ck_assert_uint_le(a->to_ns - a->from_ns, first->to_ns * 2);
            }
            sim_free(sim);
        }
}

/* Main's events end early, which is no excuse for two that hold what the other one wants. */
TEST(a_deadlock_beside_a_cut_thread) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t i = 1; i < 3; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 3 - i, MS);
        end(&b, i, 0);
    }
    expect_stuck(build_close(&b), "thread 1 waits for mutex 2 held by thread 2");
}

/* Killed: main's few events were never written, the others end at different places. */
TEST_EACH(a_killed_program, 2) {
    enum { N = 8, ROUNDS = 12000 };
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 1, N - 1);
    create_all(&b, N);
    for (uint32_t k = 0; k < ROUNDS; k++)
        for (uint32_t i = 1; i < N; i++) {
            for (uint32_t n = 0; n < 1 + i % 3; n++)
                call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 100 + i), call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 50);
            if (number == 1)
                build_event(&b, i,
                            (struct sbt_trace_event){.op = SBT_TRACE_BARRIER_WAIT,
                                                     .type = SBT_TRACE_BARRIER,
                                                     .object = 1,
                                                     .other = SBT_TRACE_NONE,
                                                     .size = N - 1});
        }
    const struct sbt_trace *trace = build_kill(&b);
    uint64_t n_events = sbt_trace_info(trace)->n_events;
    ck_assert_uint_gt(n_events, N * ROUNDS);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        config.let_pass = true;
        struct sim *sim = simulate(&config, trace, 2);
        for (uint32_t i = 0; i < 2; i++) {
            const struct sim_application *a = sim_application(sim, i);
            ck_assert_uint_eq(a->n_threads, N);
            ck_assert_uint_eq(a->n_cut, N);
            ck_assert_uint_gt(a->to_ns, ROUNDS * 100);
        }
        ck_assert_uint_eq(sim_summary(sim).n_events, 2 * n_events); /* all that there is */
        ck_assert((sim_summary(sim).n_deviations[SIM_LET_PASS] > 0) == (number == 1));
        sim_free(sim);
    }
}
