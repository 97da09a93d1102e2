/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whatever a program does, and whatever of it a trace lacks, is replayed: what cannot be as it was recorded is counted.
 */
#include <string.h>

#include "build.h"
#include "lib/suite.h"
#include "random.h"

/* With a survey, as `subutai predict` does it. */
static struct sim *replay(const struct sim_config *config, const struct sbt_trace *trace, uint32_t n) {
    struct sim_error error = {.text = ""};
    enum sim_status status;
    struct sim_survey *survey = sim_survey_new(trace, "test", config->recorded_order, false, &status, &error);
    ck_assert_msg(survey != NULL, "%s", error.text);
    struct sim_config passing = *config;
    passing.let_pass = true;
    struct sim *sim = sim_new(&passing, &error);
    ck_assert_msg(sim != NULL, "%s", error.text);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(sim_add_surveyed(sim, trace, survey, "test", &error) == SIM_OK, "%s", error.text);
    status = sim_run(sim, &error);
    if (status == SIM_STUCK)
        sim_stuck(sim, stderr, 10);
    ck_assert_msg(status == SIM_OK, "%s", error.text);
    sim_survey_free(survey);
    return sim;
}

/* On all machines: so many events of one kind are not replayed as recorded, and none of any other. */
static void expect(const struct sbt_trace *trace, enum sim_deviation how, uint64_t n, uint64_t at_least_ns,
                   uint64_t at_most_ns) {
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        struct sim *sim = replay(&config, trace, 1);
        struct sim_summary s = sim_summary(sim);
        for (int i = 0; i < SIM_N_DEVIATIONS; i++)
            ck_assert_msg(s.n_deviations[i] == (i == (int)how ? n : 0), "%s: %ju %s", sim_sync_name(config.sync),
                          (uintmax_t)s.n_deviations[i], sim_deviation_name((enum sim_deviation)i));
        ck_assert_uint_ge(s.makespan_ns, at_least_ns);
        ck_assert_uint_le(s.makespan_ns, at_most_ns);
        sim_free(sim);
    }
}

static void special(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint32_t other, int result,
                    uint64_t took_ns) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = object == SBT_TRACE_NONE ? SBT_TRACE_NO_OBJECT : build_type(op),
                                         .object = object,
                                         .other = other,
                                         .result = (uint16_t)result,
                                         .took_ns = took_ns});
}

/* A join that failed, and a creation that failed, did nothing. */
TEST(failed_joins_and_creations) {
    struct build b;
    build_open(&b);
    special(&b, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, SBT_TRACE_NONE, ESRCH, 9 * MS);
    special(&b, 0, SBT_TRACE_THREAD_CREATE, SBT_TRACE_NONE, 1, EAGAIN, 0);
    create(&b, 0, 2, 0);
    special(&b, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, 2, EINVAL, 0);     /* detached */
    special(&b, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, 2, ETIMEDOUT, MS); /* does not wait for its end */
    end(&b, 0, MS);
    end(&b, 2, 5 * MS);
    const struct sbt_trace *trace = build_close(&b);
    expect(trace, SIM_N_DEVIATIONS, 0, 5 * MS, 5 * MS + MS / 2);
    struct sim_config config = config_of(SIM_SOFTWARE);
    struct sim *sim = replay(&config, trace, 1);
    ck_assert_uint_eq(sim_application(sim, 0)->n_threads, 2);
    ck_assert_uint_ge(result_of(sim, 0, 0).to_ns, 2 * MS);
    ck_assert_uint_lt(result_of(sim, 0, 0).to_ns, 3 * MS);
    sim_free(sim);
}

/* An unlock without the lock has no effect: the writer gets the lock. */
TEST(a_read_write_lock_is_released_without_an_owner) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_RWLOCK_UNLOCK, 0, MS);
    call(&b, 0, SBT_TRACE_RWLOCK_WRLOCK, 0, 0);
    call(&b, 0, SBT_TRACE_RWLOCK_UNLOCK, 0, MS);
    end(&b, 0, 0);
    expect(build_close(&b), SIM_NOT_HELD, 1, 2 * MS, 3 * MS);
}

TEST(a_join_of_an_unknown_thread_lasts_as_long_as_it_did) {
    struct build b;
    build_open(&b);
    special(&b, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, SBT_TRACE_NONE, 0, 3 * MS);
    end(&b, 0, MS);
    expect(build_close(&b), SIM_UNKNOWN_JOIN, 1, 4 * MS, 4 * MS + MS / 2);
}

TEST(a_thread_created_twice_is_one) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, 0);
    create(&b, 0, 1, MS);
    create(&b, 0, SBT_TRACE_NONE, MS);
    end(&b, 1, MS);
    join(&b, 0, 1, 0);
    end(&b, 0, 0);
    expect(build_close(&b), SIM_UNKNOWN_CREATE, 2, 2 * MS, 3 * MS);
}

/* A thread without a creation posts, and then main goes on; a join of it waits for its end. */
TEST(a_thread_that_is_not_created_begins_by_itself) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    special(&b, 0, SBT_TRACE_SEM_WAIT, 0, SBT_TRACE_NONE, 0, 0);
    join(&b, 0, 1, 0);
    end(&b, 0, 0);
    call(&b, 1, SBT_TRACE_SEM_POST, 0, 2 * MS);
    end(&b, 1, 3 * MS);
    expect(build_close(&b), SIM_N_DEVIATIONS, 0, 5 * MS, 6 * MS);
}

TEST(a_thread_that_never_began) {
    struct build b;
    build_open(&b);
    create(&b, 0, 1, MS);
    join(&b, 0, 1, MS);
    end(&b, 0, MS);
    expect(build_close(&b), SIM_N_DEVIATIONS, 0, 3 * MS, 4 * MS);
}

/* Held when the trace began, unlocked by mistake, or the lock was not written. */
TEST(unlocks_of_what_is_not_held) {
    struct build b;
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    call(&b, 0, SBT_TRACE_RWLOCK_UNLOCK, 1, 0);
    call(&b, 0, SBT_TRACE_SPIN_UNLOCK, 2, 0);
    signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 3, 1, 0);
    wait(&b, 0, 3, 4, 1, 0);
    special(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, SBT_TRACE_NONE, EPERM, 0); /* failed, and did nothing */
    special(&b, 0, SBT_TRACE_RWLOCK_UNLOCK, 1, SBT_TRACE_NONE, EPERM, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0); /* the mutex is as good as before */
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end(&b, 0, MS);
    expect(build_close(&b), SIM_NOT_HELD, 4, MS, 2 * MS);
}

TEST(calls_on_unknown_objects_last_as_long_as_they_did) {
    struct build b;
    build_open(&b);
    special(&b, 0, SBT_TRACE_COND_WAIT, SBT_TRACE_NONE, SBT_TRACE_NONE, 0, MS);
    special(&b, 0, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_NONE, SBT_TRACE_NONE, 0, MS);
    special(&b, 0, SBT_TRACE_BARRIER_WAIT, 5, SBT_TRACE_NONE, 0, 2 * MS); /* its count is not known */
    end(&b, 0, 0);
    expect(build_close(&b), SIM_UNKNOWN_OBJECT, 3, 4 * MS, 5 * MS);
}

/* A wait that nothing ends: of each kind. Main works for 5 ms before it waits for the thread. */
TEST_EACH(waits_that_nothing_ends, 8) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_SEM, 0, 0);
    init(&b, 0, SBT_TRACE_BARRIER, 2, 7);
    create_all(&b, 3);
    uint32_t other = 7;
    switch (number) {
    case 0: /* no post */
        build_event(
            &b, 1,
            (struct sbt_trace_event){
                .op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = 0, .other = SBT_TRACE_NONE, .order = 1});
        break;
    case 1: /* no signal */
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, other, 0);
        wait(&b, 1, 1, other, 3, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, other, 0);
        break;
    case 2: /* too few threads */
        call(&b, 1, SBT_TRACE_BARRIER_WAIT, 2, 0);
        break;
    case 3: /* the owner has ended */
        call(&b, 2, SBT_TRACE_MUTEX_LOCK, other, 0);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, other, MS);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, other, 0);
        break;
    case 4:
        call(&b, 2, SBT_TRACE_RWLOCK_RDLOCK, other, 0);
        call(&b, 1, SBT_TRACE_RWLOCK_WRLOCK, other, MS);
        call(&b, 1, SBT_TRACE_RWLOCK_UNLOCK, other, 0);
        break;
    case 5:
        call(&b, 2, SBT_TRACE_SPIN_LOCK, other, 0);
        call(&b, 1, SBT_TRACE_SPIN_LOCK, other, MS);
        call(&b, 1, SBT_TRACE_SPIN_UNLOCK, other, 0);
        break;
    case 6: /* itself */
        join(&b, 1, 1, 0);
        break;
    default: /* a wait without a mutex */
        wait(&b, 1, 1, SBT_TRACE_NONE, 3, 0);
    }
    end(&b, 2, 0);
    end(&b, 1, MS);
    join(&b, 0, 2, 5 * MS);
    join(&b, 0, 1, 0);
    end(&b, 0, 0);
    expect(build_close(&b), SIM_LET_PASS, 1, 5 * MS, 7 * MS);
}

/* Two threads hold what the other one wants: one of them loses it, and unlocks it in vain. */
TEST(a_deadlock) {
    struct build b;
    build_open(&b);
    create_all(&b, 3);
    for (uint32_t i = 1; i < 3; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 3 - i, MS);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 3 - i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, i, 0);
    }
    end_all(&b, 3);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        if (sync ==
            SIM_DELEGATE) /* one alone runs a thread's sections before another one's, and there is no deadlock */
            config.host.n_servers = 2;
        struct sim *sim = replay(&config, trace, 1);
        ck_assert_uint_eq(sim_summary(sim).n_deviations[SIM_LET_PASS], 1);
        ck_assert_uint_eq(sim_summary(sim).n_events, sbt_trace_info(trace)->n_events);
        sim_free(sim);
    }
}

TEST(events_behind_a_threads_end) {
    struct build b;
    build_open(&b);
    end(&b, 0, MS);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    expect(build_close(&b), SIM_NOT_REPLAYED, 2, MS, MS + MS / 2);
}

/* Destroyed while a thread holds it, while others wait for it, and a destroy that failed. */
TEST(objects_destroyed_while_in_use) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 1, 2);
    init(&b, 0, SBT_TRACE_BARRIER, 1, 2); /* twice */
    create_all(&b, 2);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 1, SBT_TRACE_BARRIER_WAIT, 1, 0);
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    special(&b, 0, SBT_TRACE_DESTROY, 0, SBT_TRACE_NONE, EBUSY, 0);
    destroy(&b, 0, SBT_TRACE_MUTEX, 0);
    destroy(&b, 0, SBT_TRACE_BARRIER, 1);
    call(&b, 0, SBT_TRACE_BARRIER_WAIT, 1, MS);
    end_all(&b, 2);
    expect(build_close(&b), SIM_N_DEVIATIONS, 0, MS, 2 * MS);
}

/* The recorder gives each type a number of its own, so this is damage. */
TEST(an_object_of_two_types_is_damage) {
    struct build b;
    struct sim_error error = {.text = ""};
    build_open(&b);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0);
    call(&b, 0, SBT_TRACE_SEM_POST, 0, 0);
    struct sim_config config = config_of(SIM_SOFTWARE);
    config.let_pass = true;
    struct sim *sim = sim_new(&config, &error);
    ck_assert_int_eq(sim_add(sim, build_close(&b), "test", &error), SIM_OK);
    ck_assert_int_eq(sim_run(sim, &error), SIM_DAMAGED);
    ck_assert_str_eq(error.text, "test: object 0 is of two types");
    sim_free(sim);
}

/* ---- a file that is cut ---- */

static bool copy_bytes(const char *from, const char *to, off_t n) {
    char bytes[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    bool ok = in != NULL && out != NULL && fread(bytes, 1, (size_t)n, in) == (size_t)n &&
              fwrite(bytes, 1, (size_t)n, out) == (size_t)n;
    if (in != NULL)
        fclose(in);
    return out != NULL && fclose(out) == 0 && ok;
}

/* At every byte: it is refused with a reason, or what is there is replayed. */
TEST(cut_anywhere) {
    struct build b;
    struct stat whole;
    char cut[80];
    uint32_t n_refused = 0, n_replayed = 0;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 2, 3);
    create_all(&b, 3);
    for (uint32_t i = 0; i < 3; i++) {
        call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 100);
        if (i != 0)
            wait(&b, i, 1, 0, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 100);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 2, 0);
    }
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 1, 0);
    signal_(&b, 0, SBT_TRACE_COND_BROADCAST, 1, 2, 0);
    end_all(&b, 3);
    ck_assert_int_eq(sbt_trace_finish(b.writer), 0);
    ck_assert_int_eq(stat(b.path, &whole), 0);
    ck_assert_int_lt(whole.st_size, 4096);
    snprintf(cut, sizeof cut, "%s.cut", b.path);
    for (off_t n = 0; n <= whole.st_size; n++) {
        struct sbt_trace_error error = {.reason = ""};
        ck_assert(copy_bytes(b.path, cut, n));
        struct sbt_trace *trace = sbt_trace_open(cut, &error);
        if (trace == NULL) {
            ck_assert_str_ne(error.reason, "");
            n_refused++;
            continue;
        }
        const struct sbt_trace_info *info = sbt_trace_info(trace);
        ck_assert(info->whole == (n == whole.st_size));
        for (int sync = 0; sync < SIM_N_ALL_SYNCS && info->n_events > 0; sync++) {
            struct sim_config config = config_of((enum sim_sync)sync);
            struct sim *sim = replay(&config, trace, 1);
            ck_assert_uint_eq(sim_summary(sim).n_events, info->n_events);
            sim_free(sim);
            n_replayed++;
        }
        sbt_trace_close(trace);
    }
    ck_assert_uint_gt(n_refused, 0);
    ck_assert_uint_gt(n_replayed, 0);
    unlink(cut);
    unlink(b.path);
}

/* ---- any calls in any order ---- */

enum { MAX_THREADS = 12, N_TYPES = SBT_TRACE_N_TYPES - SBT_TRACE_MUTEX, MAX_OBJECTS = 7 * N_TYPES };

static enum sbt_trace_type type_of(uint32_t object) {
    return (enum sbt_trace_type)(SBT_TRACE_MUTEX + object % N_TYPES);
}

static uint32_t some_object(enum sbt_trace_type type) {
    return below(MAX_OBJECTS / N_TYPES) * N_TYPES + ((uint32_t)type - SBT_TRACE_MUTEX);
}

static void any_call(struct build *b, uint32_t thread, uint32_t n_threads) {
    static const int results[] = {EBUSY, ETIMEDOUT, EINVAL, EPERM, EAGAIN, EOWNERDEAD, ECANCELED, ESRCH};
    struct sbt_trace_event e = {
        .op = (uint8_t)below(SBT_TRACE_N_OPS), .object = SBT_TRACE_NONE, .other = SBT_TRACE_NONE};
    if (e.op == SBT_TRACE_THREAD_END && below(8) != 0)
        return;
    if (e.op == SBT_TRACE_INIT || e.op == SBT_TRACE_DESTROY)
        e.type = (uint8_t)type_of(below(MAX_OBJECTS));
    else
        e.type = build_type((enum sbt_trace_op)e.op);
    if (e.type != SBT_TRACE_NO_OBJECT && below(50) != 0)
        e.object = some_object((enum sbt_trace_type)e.type);
    if (e.object == SBT_TRACE_NONE)
        e.type = SBT_TRACE_NO_OBJECT;
    if (e.op <= SBT_TRACE_THREAD_JOIN && below(20) != 0)
        e.other = below(n_threads);
    if (e.op == SBT_TRACE_COND_WAIT && below(10) != 0)
        e.other = some_object(below(30) != 0 ? SBT_TRACE_MUTEX : SBT_TRACE_SEM);
    e.result = (uint16_t)(below(5) == 0 ? results[below(8)] : 0);
    e.size = below(6);
    e.order = below(3) == 0 ? 0 : 1 + below(20);
    e.relock = below(20);
    e.work_ns = below(5000);
    e.took_ns = below(3000);
    build_event(b, thread, e);
}

static const struct sbt_trace *write_calls(void) {
    struct build b;
    uint32_t n_threads = 1 + below(MAX_THREADS);
    build_open(&b);
    for (uint32_t i = 1; i < n_threads; i++)
        if (below(6) != 0)
            create(&b, 0, i, below(1000));
    for (uint32_t n = below(400); n > 0; n--)
        any_call(&b, below(n_threads), n_threads);
    for (uint32_t i = 0; i < n_threads; i++)
        if (below(4) != 0)
            end(&b, i, 0);
    call(&b, 0, SBT_TRACE_MUTEX_LOCK, 0, 0); /* something in any case */
    return build_close(&b);
}

static void any_calls(uint64_t round) {
    struct sim_config config;
    random_begin(round);
    const struct sbt_trace *trace = write_calls();
    random_chip(&config);
    config.strict_paper = false; /* which is stuck where an NI is too small for a program */
    uint32_t n = 1 + below(2);
    for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++)
        for (int policy = 0; policy < CSA_N_POLICIES; policy++) {
            struct sim_summary s[2];
            config.sync = (enum sim_sync)sync;
            config.sched.policy = (enum csa_policy)policy;
            if (sync >= SIM_N_SYNCS)
                random_host(&config);
            for (int again = 0; again < 2; again++) {
                struct sim *sim = replay(&config, trace, n);
                s[again] = sim_summary(sim);
                sim_free(sim);
            }
            ck_assert_msg(memcmp(&s[0], &s[1], sizeof *s) == 0, "round %ju, %s, %d: two results", (uintmax_t)round,
                          sim_sync_name(config.sync), policy);
            ck_assert_uint_eq(s->n_events + s->n_deviations[SIM_NOT_REPLAYED], n * sbt_trace_info(trace)->n_events);
        }
    build_discard();
}

TEST_EACH(any_calls_end, 4) {
    const char *only = getenv("SIM_RANDOM");
    for (uint64_t i = 0; only == NULL && i < 150; i++)
        any_calls((uint64_t)number * 150 + i);
    if (only != NULL && number == 0)
        any_calls(strtoull(only, NULL, 10));
}
