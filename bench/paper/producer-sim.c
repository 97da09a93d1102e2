/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The setting of Table XI in the simulator: producer.c's calls as a trace, one producer, five consumers, on both
 * machines; and the fit of the software-only model's constants (sim/costs.c) to the paper's SW column.
 *
 *   producer-sim [ROUNDS]   what the calls cost, as JSON
 *   producer-sim --fit      the constants, from the SW column and nothing else
 *   producer-sim --limit    those whose worst row is best: how near the model can come to all rows
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { N_CONSUMERS = 5, N_ROWS = 6, N_COSTS = 5, FIT_ROUNDS = 30, FIT_POINTS = 5000, FIT_BEST = 20 };
enum { MUTEX, FILLED, START };

static const struct {
    const char *name;
    enum sim_call_kind kind;
    double software_ns, subutai_ns; /* the paper's */
} rows[N_ROWS] = {{"lock, empty", SIM_LOCK_EMPTY, 1537, 127}, {"lock, queued", SIM_LOCK_QUEUED, 64178, 916},
                  {"unlock", SIM_UNLOCK, 4400, 60},           {"barrier wait", SIM_BARRIER, 102467, 1183},
                  {"broadcast", SIM_BROADCAST, 25209, 60},    {"condition wait", SIM_COND_WAIT, 42844, 1022}};

static void add(struct sbt_trace_writer *w, uint32_t thread, struct sbt_trace_event e) {
    e.site = SBT_TRACE_NONE;
    if (sbt_trace_append(w, thread, &e) != 0)
        exit(1);
}

static void add_call(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, enum sbt_trace_type type,
                     uint32_t object, uint64_t order) {
    add(w, thread,
        (struct sbt_trace_event){.op = (uint8_t)op,
                                 .type = (uint8_t)type,
                                 .object = object,
                                 .other = op == SBT_TRACE_COND_WAIT ? MUTEX : SBT_TRACE_NONE,
                                 .order = order});
}

static void add_round(struct sbt_trace_writer *w, uint32_t thread, bool produces, uint64_t round) {
    add_call(w, thread, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, START, 0);
    add_call(w, thread, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, MUTEX, 0);
    add_call(w, thread, produces ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_WAIT, SBT_TRACE_COND, FILLED, round);
    add_call(w, thread, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, MUTEX, 0);
}

static void thread_event(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, uint32_t other) {
    add(w, thread, (struct sbt_trace_event){.op = (uint8_t)op, .object = SBT_TRACE_NONE, .other = other});
}

/* main is thread 0, the consumers 1 to 5, the producer 6, as producer.c creates them. */
static const struct sbt_trace *record(uint64_t n_rounds) {
    char path[] = "/tmp/subutai-producer.XXXXXX";
    struct sbt_trace_error error = {.reason = "cannot be written"};
    int fd = mkstemp(path);
    struct sbt_trace_writer *w = fd >= 0 ? sbt_trace_create(path, "producer") : NULL;
    if (w == NULL) {
        perror("producer-sim");
        exit(1);
    }
    add(w, 0,
        (struct sbt_trace_event){.op = SBT_TRACE_INIT,
                                 .type = SBT_TRACE_BARRIER,
                                 .object = START,
                                 .other = SBT_TRACE_NONE,
                                 .size = N_CONSUMERS + 1});
    for (uint32_t i = 1; i <= N_CONSUMERS + 1; i++)
        thread_event(w, 0, SBT_TRACE_THREAD_CREATE, i);
    for (uint32_t i = 1; i <= N_CONSUMERS + 1; i++) {
        for (uint64_t round = 1; round <= n_rounds; round++)
            add_round(w, i, i == N_CONSUMERS + 1, round);
        thread_event(w, i, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
        thread_event(w, 0, SBT_TRACE_THREAD_JOIN, i);
    }
    thread_event(w, 0, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
    const struct sbt_trace *trace = sbt_trace_finish(w) == 0 ? sbt_trace_open(path, &error) : NULL;
    close(fd);
    unlink(path);
    if (trace == NULL) {
        fprintf(stderr, "producer-sim: %s\n", error.reason);
        exit(1);
    }
    return trace;
}

static void simulate(const struct sbt_trace *trace, enum sim_sync sync, const struct sim_costs *costs,
                     struct sim_latency *latency) {
    struct sim_error error;
    struct sim_config config = sim_config_default();
    config.sync = sync;
    config.costs = *costs;
    struct sim *sim = sim_new(&config, &error);
    if (sim == NULL || sim_add(sim, trace, "producer", &error) != SIM_OK || sim_run(sim, &error) != SIM_OK) {
        fprintf(stderr, "producer-sim: %s\n", error.text);
        exit(1);
    }
    for (int i = 0; i < N_ROWS; i++)
        latency[i] = sim_call(sim, rows[i].kind);
    sim_free(sim);
}

/* ---- the fit ---- */

static bool worst_counts; /* the worst row alone */

static uint32_t *cost(struct sim_costs *costs, int i) {
    uint32_t *all[N_COSTS] = {&costs->attempt_ns, &costs->futex_ns, &costs->kernel_ns, &costs->wake_ns,
                              &costs->resume_ns};
    return all[i];
}

static double distance(const struct sbt_trace *trace, const struct sim_costs *costs) {
    struct sim_latency latency[N_ROWS];
    double sum = 0, worst = 0;
    simulate(trace, SIM_SOFTWARE, costs, latency);
    for (int i = 0; i < N_ROWS; i++) {
        double off = latency[i].n > 0 ? latency[i].mean_ns / rows[i].software_ns : 100;
        sum += log(off) * log(off);
        worst = fmax(worst, fabs(log(off)));
    }
    return worst_counts ? worst : sum;
}

/* One constant at a time, in steps that become smaller. */
static double refine(const struct sbt_trace *trace, struct sim_costs *best) {
    double least = distance(trace, best);
    for (double step = 1.3; step > 1.001; step = 1 + (step - 1) * 0.6)
        for (bool better = true; better;) {
            better = false;
            for (int i = 0; i < N_COSTS * 2; i++) {
                struct sim_costs next = *best;
                uint32_t *value = cost(&next, i / 2);
                *value = (uint32_t)((double)*value * (i % 2 == 0 ? step : 1 / step) + 0.5);
                double d = distance(trace, &next);
                if (d < least) {
                    least = d;
                    *best = next;
                    better = true;
                }
            }
        }
    return least;
}

/* Who wins a race depends on the constants, so the distance has many valleys: random points, and the best refined. */
static void fit(const struct sbt_trace *trace) {
    struct sim_costs tried[FIT_BEST] = {{0}}, best = sim_costs_default();
    double off[FIT_BEST], least = INFINITY;
    uint64_t random = 1;
    for (int i = 0; i < FIT_BEST; i++)
        off[i] = INFINITY;
    for (int point = 0; point < FIT_POINTS; point++) {
        struct sim_costs next = sim_costs_default();
        for (int i = 0; i < N_COSTS; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            /* From 200 ns to 50 us, as many for each octave. */
            *cost(&next, i) = (uint32_t)(200 * exp((double)(random >> 40) / 0x1p24 * log(250)));
        }
        next.attempt_ns = 1480; /* the first row says that, but for the cache line */
        double d = distance(trace, &next);
        int i = FIT_BEST - 1;
        if (d >= off[i])
            continue;
        for (; i > 0 && off[i - 1] > d; i--) {
            off[i] = off[i - 1];
            tried[i] = tried[i - 1];
        }
        off[i] = d;
        tried[i] = next;
    }
    for (int i = 0; i < FIT_BEST; i++) {
        double d = refine(trace, &tried[i]);
        if (d < least) {
            least = d;
            best = tried[i];
        }
    }
    printf("attempt %u ns, futex %u ns, kernel %u ns, wake %u ns, resume %u ns; %s %.1f %%\n", best.attempt_ns,
           best.futex_ns, best.kernel_ns, best.wake_ns, best.resume_ns,
           worst_counts ? "worst row" : "root of the mean square",
           (exp(worst_counts ? least : sqrt(least / N_ROWS)) - 1) * 100);
}

/* ---- the table ---- */

static void print(const struct sbt_trace *trace) {
    struct sim_latency ours[SIM_N_SYNCS][N_ROWS];
    struct sim_costs costs = sim_costs_default();
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        simulate(trace, (enum sim_sync)sync, &costs, ours[sync]);
    printf("{\"rows\": [");
    for (int i = 0; i < N_ROWS; i++)
        printf("%s\n  {\"operation\": \"%s\", \"paper_software_ns\": %.0f, \"software_ns\": %.1f, \"software_calls\": "
               "%ju, "
               "\"paper_subutai_ns\": %.0f, \"subutai_ns\": %.1f, \"subutai_calls\": %ju}",
               i > 0 ? "," : "", rows[i].name, rows[i].software_ns, ours[SIM_SOFTWARE][i].mean_ns,
               (uintmax_t)ours[SIM_SOFTWARE][i].n, rows[i].subutai_ns, ours[SIM_SUBUTAI][i].mean_ns,
               (uintmax_t)ours[SIM_SUBUTAI][i].n);
    printf("\n]}\n");
}

int main(int argc, char **argv) {
    worst_counts = argc == 2 && strcmp(argv[1], "--limit") == 0;
    bool fits = worst_counts || (argc == 2 && strcmp(argv[1], "--fit") == 0);
    uint64_t n_rounds = argc == 2 && !fits ? strtoull(argv[1], NULL, 10) : fits ? FIT_ROUNDS : 200;
    if (argc > 2 || n_rounds == 0) {
        fprintf(stderr, "usage: producer-sim [ROUNDS | --fit | --limit]\n");
        return 2;
    }
    const struct sbt_trace *trace = record(n_rounds);
    if (fits)
        fit(trace);
    else
        print(trace);
    return 0;
}
