/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine: cases that can be computed by hand. What a case does not name costs nothing: no call, no switch, no
 * wake-up. The scheduler's tick is 4 ms, its slice 1.4 ms. A new thread goes to an idle core.
 */
#ifndef SIM_TESTS_HOST_H
#define SIM_TESTS_HOST_H

#include "build.h"

#define US UINT64_C(1000)

static inline struct sim_config host_of(enum sim_sync sync, uint32_t n_cores) {
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

static inline struct sim_thread_result run_one(const struct sim_config *config, const struct sbt_trace *trace,
                                               uint32_t thread, struct sim_summary *summary) {
    struct sim *sim = simulate(config, trace, 1);
    struct sim_thread_result r = result_of(sim, 0, thread);
    if (summary != NULL)
        *summary = sim_summary(sim);
    sim_free(sim);
    return r;
}

static inline void sem(struct build *b, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint64_t order,
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
static inline void sleep_for(struct build *b, uint32_t thread, uint64_t ns) {
    build_event(b, thread,
                (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                         .type = SBT_TRACE_SEM,
                                         .object = 9,
                                         .other = SBT_TRACE_NONE,
                                         .result = ETIMEDOUT,
                                         .took_ns = ns});
}

/* Thread 0 works for so long, and joins 1 to n - 1. */
static inline void join_all(struct build *b, uint32_t n, uint64_t work) {
    for (uint32_t i = 1; i < n; i++)
        join(b, 0, i, i == 1 ? work : 0);
    end(b, 0, 0);
}

/* Threads 0 to n - 1, each with its work. */
static inline const struct sbt_trace *that_compute(uint32_t n, const uint64_t *work) {
    struct build b;
    build_open(&b);
    create_all(&b, n);
    for (uint32_t i = 1; i < n; i++)
        end(&b, i, work[i]);
    join_all(&b, n, work[0]);
    return build_close(&b);
}

#endif
