/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sections that travel to servers, on the host: cases as host.h says. A way is the 0.1 us of a cache line. */
#include "host.h"

enum { WAY = 100 };

static struct sim_config served(uint32_t n_cores, uint32_t n_servers) {
    struct sim_config config = host_of(SIM_DELEGATE, n_cores);
    config.host.n_servers = n_servers;
    config.host.line_ns = WAY;
    return config;
}

static void section(struct build *b, uint32_t thread, uint32_t mutex, uint64_t before, uint64_t inside) {
    call(b, thread, SBT_TRACE_MUTEX_LOCK, mutex, before);
    call(b, thread, SBT_TRACE_MUTEX_UNLOCK, mutex, inside);
}

TEST(a_section_costs_a_way_to_the_server_and_back) {
    struct build b;
    build_open(&b);
    section(&b, 0, 0, 10 * US, 5 * US);
    section(&b, 0, 0, 1 * US, 5 * US);
    end(&b, 0, 3 * US);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(2, 1);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 24 * US + 4 * WAY);
    config.host.lock_ns = 20;
    config.host.unlock_ns = 30;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 24 * US + 4 * WAY + 2 * 50);
    config.host.fiber_ns = 70; /* the worker and, the first time, the server change to it */
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 24 * US + 4 * WAY + 2 * 50 + 2 * 70);
    config.host.effects &= ~(uint32_t)SIM_HOST_LINES;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 24 * US + 2 * 50 + 2 * 70);
}

/* Threads 1 and 2 have a section each, of 5 us, after 10 us. */
static const struct sbt_trace *two_sections(uint32_t mutex_of_2) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    section(&b, 1, 0, 10 * US, 5 * US);
    end(&b, 1, 0);
    section(&b, 2, mutex_of_2, 10 * US, 5 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    return build_close(&b);
}

static void check_ends(const struct sim_config *config, const struct sbt_trace *trace, uint64_t first, uint64_t last) {
    uint64_t one = run_one(config, trace, 1, NULL).to_ns, two = run_one(config, trace, 2, NULL).to_ns;
    ck_assert_uint_eq(one < two ? one : two, first);
    ck_assert_uint_eq(one < two ? two : one, last);
}

/* The second one's way to the server is behind the first one's section: the server fetches the line. */
TEST(a_server_runs_sections_one_after_another) {
    struct sim_config config = served(4, 1);
    check_ends(&config, two_sections(0), 15 * US + 2 * WAY, 20 * US + 3 * WAY);
    check_ends(&config, two_sections(1), 15 * US + 2 * WAY, 20 * US + 3 * WAY); /* of independent mutexes, too */
}

/* A thread waits in a server's queue for a second. No carrier may take it, so none of those that search has a look. */
TEST(a_server_with_a_queue_costs_few_steps) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    section(&b, 1, 0, 10 * US, 1000 * MS);
    end(&b, 1, 0);
    section(&b, 2, 1, 20 * US, 5 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    struct sim_config config = served(16, 1);
    struct sim_summary s;
    config.host.search_ns = 1000 * MS;
    config.host.slice_ns = 3600 * 1000 * MS;
    ck_assert_uint_eq(run_one(&config, build_close(&b), 2, &s).to_ns, 1000 * MS + 15 * US + 3 * WAY);
    ck_assert_uint_le(s.n_steps, 1000);
}

TEST(mutexes_have_different_servers) {
    struct sim_config config = served(5, 2);
    check_ends(&config, two_sections(1), 15 * US + 2 * WAY, 15 * US + 2 * WAY);
    check_ends(&config, two_sections(0), 15 * US + 2 * WAY, 20 * US + 3 * WAY);
}

/* Thread 1 has mutex 0 and sleeps; thread 2 comes for it, and is handed it. Thread 3's section does not wait. */
TEST(a_section_that_sleeps_keeps_no_other_mutex) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    sleep_for(&b, 1, 100 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 1, 0);
    section(&b, 2, 0, 10 * US, 5 * US);
    end(&b, 2, 0);
    section(&b, 3, 1, 20 * US, 5 * US);
    end(&b, 3, 0);
    join_all(&b, 4, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(5, 1);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 100 * US + 2 * WAY);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 105 * US + 2 * WAY);
    ck_assert_uint_eq(run_one(&config, trace, 3, NULL).to_ns, 25 * US + 2 * WAY);
}

/* It is on the inner one's server until it has unlocked both: there, between, and back. */
TEST(one_inside_the_other) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 1 * US);
    section(&b, 0, 1, 1 * US, 1 * US);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * US);
    end(&b, 0, 1 * US);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(3, 1);
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 5 * US + 2 * WAY);
    config.host.n_servers = 2;
    ck_assert_uint_eq(run_one(&config, trace, 0, NULL).to_ns, 5 * US + 3 * WAY);
}

/* Behind the inner section the outer one goes on there: thread 2's section waits for it. */
TEST(the_outer_one_goes_on_there) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 10 * US);
    section(&b, 1, 1, 1 * US, 1 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * US);
    end(&b, 1, 0);
    section(&b, 2, 2, 14 * US, 1 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(4, 1);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 17 * US + 2 * WAY);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 18 * US + 3 * WAY);
}

/*
 * Thread 1 locks another lock in its section and keeps that for 1 ms beyond it, which is not the server's time. So
 * thread 2's section of another mutex does not wait for it.
 */
static void check_inner(uint32_t lock, uint32_t unlock) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 10 * US);
    call(&b, 1, lock, 1, 1 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * US);
    call(&b, 1, unlock, 1, 1000 * US);
    end(&b, 1, 0);
    section(&b, 2, 5, 100 * US, 1 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(4, 1);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 101 * US + 2 * WAY);
}

TEST(other_locks_keep_no_thread_on_a_server) {
    check_inner(SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK_UNLOCK);
    check_inner(SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN_UNLOCK);
}

/*
 * As the_outer_one_goes_on_there, but thread 1 comes with an rwlock and unlocks that there first: its line goes two
 * more ways, to the worker and to the server.
 */
TEST(a_lock_from_before_sends_no_thread_back) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_RWLOCK_WRLOCK, 3, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 10 * US);
    call(&b, 1, SBT_TRACE_RWLOCK_UNLOCK, 3, 0);
    section(&b, 1, 1, 1 * US, 1 * US);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * US);
    end(&b, 1, 0);
    section(&b, 2, 2, 14 * US, 1 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(4, 1);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 17 * US + 4 * WAY);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 18 * US + 5 * WAY);
}

/*
 * Thread 1 joins thread 2 in its section, of the mutex that thread 2 waits for. That wait is let pass as it begins, at
 * 10 us and a way. Thread 1 unlocks in vain, and goes on on a worker: thread 3's section does not wait for it.
 */
TEST(an_unlock_in_vain_goes_back) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    join(&b, 1, 2, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 1 * US);
    end(&b, 1, 1000 * US);
    section(&b, 2, 0, 10 * US, 5 * US);
    end(&b, 2, 0);
    join(&b, 3, 2, 0);
    section(&b, 3, 1, 20 * US, 1 * US);
    end(&b, 3, 0);
    join(&b, 0, 1, 0);
    join(&b, 0, 3, 0);
    end(&b, 0, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(5, 1);
    struct sim_summary summary;
    config.let_pass = true;
    ck_assert_uint_eq(run_one(&config, trace, 3, &summary).to_ns, 36 * US + 4 * WAY);
    ck_assert_uint_eq(summary.n_deviations[SIM_LET_PASS], 1);
    ck_assert_uint_eq(run_one(&config, trace, 1, NULL).to_ns, 1016 * US + 3 * WAY);
}

TEST(other_work_is_not_a_servers) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    for (uint32_t i = 1; i < 4; i++)
        end(&b, i, 100 * US);
    join_all(&b, 4, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(4, 3);
    uint64_t last = 0;
    for (uint32_t i = 1; i < 4; i++) {
        uint64_t to = run_one(&config, trace, i, NULL).to_ns;
        last = to > last ? to : last;
    }
    ck_assert_uint_eq(last, 300 * US);
}

/* Thread 1 waits at condition 1 with mutex 0; thread 2 signals it in a section. The wait ends on the server. */
TEST(a_condition_wait_travels_again) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    wait(&b, 1, 1, 0, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * US);
    end(&b, 1, 0);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 10 * US);
    signal_(&b, 2, SBT_TRACE_COND_SIGNAL, 1, 1, 0);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 5 * US);
    end(&b, 2, 0);
    join_all(&b, 3, 0);
    const struct sbt_trace *trace = build_close(&b);
    struct sim_config config = served(4, 1);
    ck_assert_uint_eq(run_one(&config, trace, 2, NULL).to_ns, 15 * US + 2 * WAY);
    ck_assert_uint_ge(run_one(&config, trace, 1, NULL).to_ns, 20 * US + 2 * WAY);
    ck_assert_uint_le(run_one(&config, trace, 1, NULL).to_ns, 20 * US + 4 * WAY);
}

TEST(a_machine_of_servers_alone_is_refused) {
    struct sim_error error;
    struct sim_config config = served(4, 4);
    ck_assert_ptr_null(sim_new(&config, &error));
    config.host.n_servers = UINT32_MAX;
    ck_assert_ptr_null(sim_new(&config, &error));
    config.host.n_servers = 3;
    struct sim *sim = sim_new(&config, &error);
    ck_assert_ptr_nonnull(sim);
    sim_free(sim);
}
