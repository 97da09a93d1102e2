/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traces by hand, for tests: events are appended thread by thread, the file is written, opened and unlinked. */
#ifndef SIM_TESTS_BUILD_H
#define SIM_TESTS_BUILD_H

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/suite.h"
#include "sim.h"

struct build {
    struct sbt_trace_writer *writer;
    char path[64];
};

/* Most tests leave theirs open until the end of their process; with these that is no leak. */
static struct sbt_trace *build_opened[256];
static unsigned build_n_opened;

static inline void build_open(struct build *b) {
    snprintf(b->path, sizeof b->path, "%s/subutai-sim.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    int fd = mkstemp(b->path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    b->writer = sbt_trace_create(b->path, "test");
    ck_assert_ptr_nonnull(b->writer);
}

static inline void build_event(struct build *b, uint32_t thread, struct sbt_trace_event e) {
    e.site = SBT_TRACE_NONE;
    ck_assert_int_eq(sbt_trace_append(b->writer, thread, &e), 0);
}

static inline const struct sbt_trace *build_close(struct build *b) {
    struct sbt_trace_error error;
    ck_assert_int_eq(sbt_trace_finish(b->writer), 0);
    struct sbt_trace *trace = sbt_trace_open(b->path, &error);
    ck_assert_msg(trace != NULL, "%s", error.reason);
    unlink(b->path);
    build_opened[build_n_opened++ % 256] = trace;
    return trace;
}

/* The one that was opened last. */
static inline void build_discard(void) {
    sbt_trace_close(build_opened[--build_n_opened % 256]);
}

/* As if the program had been killed now: with the blocks that are full. */
static inline const struct sbt_trace *build_kill(struct build *b) {
    struct sbt_trace_error error;
    struct stat written;
    ck_assert_int_eq(stat(b->path, &written), 0);
    ck_assert_int_eq(sbt_trace_finish(b->writer), 0);
    ck_assert_int_eq(truncate(b->path, written.st_size), 0);
    struct sbt_trace *trace = sbt_trace_open(b->path, &error);
    ck_assert_msg(trace != NULL, "%s", error.reason);
    ck_assert(!sbt_trace_info(trace)->whole);
    unlink(b->path);
    build_opened[build_n_opened++ % 256] = trace;
    return trace;
}

static inline uint8_t build_type(enum sbt_trace_op op) {
    return op <= SBT_TRACE_THREAD_END       ? SBT_TRACE_NO_OBJECT
           : op <= SBT_TRACE_MUTEX_UNLOCK   ? SBT_TRACE_MUTEX
           : op <= SBT_TRACE_COND_BROADCAST ? SBT_TRACE_COND
           : op == SBT_TRACE_BARRIER_WAIT   ? SBT_TRACE_BARRIER
           : op <= SBT_TRACE_RWLOCK_UNLOCK  ? SBT_TRACE_RWLOCK
           : op <= SBT_TRACE_SEM_POST       ? SBT_TRACE_SEM
           : op <= SBT_TRACE_SPIN_UNLOCK    ? SBT_TRACE_SPIN
                                            : SBT_TRACE_FUTEX;
}

/* The usual events: `work` ns, then the call. */
static inline void call(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint64_t work) {
    build_event(
        b, thread,
        (struct sbt_trace_event){
            .op = (uint8_t)op, .type = build_type(op), .object = object, .other = SBT_TRACE_NONE, .work_ns = work});
}

static inline void create(struct build *b, uint32_t thread, uint32_t other, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){
                    .op = SBT_TRACE_THREAD_CREATE, .object = SBT_TRACE_NONE, .other = other, .work_ns = work});
}

static inline void join(struct build *b, uint32_t thread, uint32_t other, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){
                    .op = SBT_TRACE_THREAD_JOIN, .object = SBT_TRACE_NONE, .other = other, .work_ns = work});
}

static inline void end(struct build *b, uint32_t thread, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){
                    .op = SBT_TRACE_THREAD_END, .object = SBT_TRACE_NONE, .other = SBT_TRACE_NONE, .work_ns = work});
}

static inline void init(struct build *b, uint32_t thread, enum sbt_trace_type type, uint32_t object, uint32_t size) {
    build_event(
        b, thread,
        (struct sbt_trace_event){
            .op = SBT_TRACE_INIT, .type = (uint8_t)type, .object = object, .other = SBT_TRACE_NONE, .size = size});
}

static inline void destroy(struct build *b, uint32_t thread, enum sbt_trace_type type, uint32_t object) {
    build_event(b, thread,
                (struct sbt_trace_event){
                    .op = SBT_TRACE_DESTROY, .type = (uint8_t)type, .object = object, .other = SBT_TRACE_NONE});
}

/* Ended by signal `number`; holds `mutex`. */
static inline void wait(struct build *b, uint32_t thread, uint32_t condition, uint32_t mutex, uint64_t number,
                        uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                         .type = SBT_TRACE_COND,
                                         .object = condition,
                                         .other = mutex,
                                         .order = number,
                                         .work_ns = work});
}

/* Ended by wake-up `number`, or with that result; a wake-up with that number. */
static inline void futex(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t word, uint64_t number,
                         uint16_t result, uint64_t took, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_FUTEX,
                                         .object = word,
                                         .other = SBT_TRACE_NONE,
                                         .order = number,
                                         .result = result,
                                         .took_ns = took,
                                         .work_ns = work});
}

static inline void signal_(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t condition, uint64_t number,
                           uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_COND,
                                         .object = condition,
                                         .other = SBT_TRACE_NONE,
                                         .order = number,
                                         .work_ns = work});
}

static inline void lock_nth(struct build *b, uint32_t thread, uint32_t mutex, uint64_t number, uint64_t work) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK,
                                         .type = SBT_TRACE_MUTEX,
                                         .object = mutex,
                                         .other = SBT_TRACE_NONE,
                                         .order = number,
                                         .work_ns = work});
}

static inline void trylock(struct build *b, uint32_t thread, uint32_t mutex, uint64_t work, int result) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_TRYLOCK,
                                         .type = SBT_TRACE_MUTEX,
                                         .object = mutex,
                                         .other = SBT_TRACE_NONE,
                                         .result = (uint16_t)result,
                                         .work_ns = work});
}

/* Thread 0 creates and joins 1 to n - 1; to be called around their events. */
static inline void create_all(struct build *b, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        create(b, 0, i, 0);
}

static inline void end_all(struct build *b, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        end(b, i, 0);
        join(b, 0, i, 0);
    }
    end(b, 0, 0);
}

static inline struct sim_survey *survey_of(const struct sbt_trace *trace, bool recorded_order) {
    struct sim_error error = {.text = ""};
    enum sim_status status;
    struct sim_survey *survey = sim_survey_new(trace, "test", recorded_order, false, &status, &error);
    ck_assert_msg(survey != NULL, "%s", error.text);
    return survey;
}

static inline struct sim_bounds bounds_of(const struct sbt_trace *trace, bool recorded_order) {
    struct sim_survey *survey = survey_of(trace, recorded_order);
    struct sim_bounds bounds = sim_survey_bounds(survey);
    sim_survey_free(survey);
    return bounds;
}

#define MS UINT64_C(1000000)

static inline struct sim_host_model model_of(enum sim_sync sync, uint32_t n_cores) {
    struct sim_host_costs costs = sim_host_costs_reference();
    return sim_host_model_of(&costs, (enum sim_host_engine)(sync - SIM_GLIBC), n_cores);
}

static inline struct sim_config config_of(enum sim_sync sync) {
    struct sim_config config = sim_config_default();
    config.sync = sync;
    if (sync >= SIM_N_SYNCS)
        config.host = model_of(sync, config.width * config.height);
    return config;
}

/* Run it n times at once, and fail the test if it does not end well. survey NULL: without. */
static inline struct sim *simulate_with(const struct sim_config *config, const struct sbt_trace *trace,
                                        const struct sim_survey *survey, uint32_t n) {
    struct sim_error error = {.text = ""};
    struct sim *sim = sim_new(config, &error);
    ck_assert_msg(sim != NULL, "%s", error.text);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(sim_add_surveyed(sim, trace, survey, "test", &error) == SIM_OK, "%s", error.text);
    enum sim_status status = sim_run(sim, &error);
    if (status == SIM_STUCK)
        sim_stuck(sim, stderr, 64);
    ck_assert_msg(status == SIM_OK, "%s", error.text);
    return sim;
}

static inline struct sim *simulate(const struct sim_config *config, const struct sbt_trace *trace, uint32_t n) {
    return simulate_with(config, trace, NULL, n);
}

/* As `subutai predict` does it. */
static inline struct sim *simulate_surveyed(const struct sim_config *config, const struct sbt_trace *trace,
                                            uint32_t n) {
    struct sim_survey *survey = survey_of(trace, config->recorded_order);
    struct sim *sim = simulate_with(config, trace, survey, n);
    sim_survey_free(survey);
    return sim;
}

static inline struct sim_thread_result result_of(const struct sim *sim, uint32_t application, uint32_t thread) {
    struct sim_thread_result r;
    ck_assert(sim_thread(sim, application, thread, &r));
    return r;
}

#endif
