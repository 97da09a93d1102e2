/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The setting of Table XI in the simulator: producer.c's calls as a trace, one producer, five consumers, on both
 * machines; and the fit of the software-only model's constants (sim/costs.c) to the paper's SW column.
 *
 *   producer-sim [--between NS] [ROUNDS]
 *                           what the calls cost, as JSON; with so much of the program's own work before each
 *   producer-sim --fit      the constants, from the SW column and nothing else; half a minute
 *   producer-sim --check    is the whole column within 10 %? (exit status)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { N_CONSUMERS = 5, N_ROWS = 6, N_COSTS = 4, N_ROUNDS = 200 };
enum { FIT_POINTS = 160, FIT_FIRST = 20, FIT_GENERATIONS = 150 };
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

static uint64_t between_ns; /* of work before each call; the paper does not say */

static void add_call(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, enum sbt_trace_type type,
                     uint32_t object, uint64_t order) {
    add(w, thread,
        (struct sbt_trace_event){.op = (uint8_t)op,
                                 .type = (uint8_t)type,
                                 .object = object,
                                 .other = op == SBT_TRACE_COND_WAIT ? MUTEX : SBT_TRACE_NONE,
                                 .work_ns = between_ns,
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

static const double near = 0.2, a_little = 0.01;

static uint32_t *cost(struct sim_costs *costs, int i) {
    uint32_t *all[N_COSTS] = {&costs->attempt_ns, &costs->futex_ns, &costs->kernel_ns, &costs->wake_ns};
    return all[i];
}

static double worst_row(const struct sbt_trace *trace, const struct sim_costs *costs) {
    struct sim_latency latency[N_ROWS];
    double worst = 0;
    simulate(trace, SIM_SOFTWARE, costs, latency);
    for (int i = 0; i < N_ROWS; i++)
        worst = fmax(worst, fabs(latency[i].mean_ns / rows[i].software_ns - 1));
    return worst;
}

/* The worst row, also when a constant is off by a little: no match on the edge of a race. */
static double distance(const struct sbt_trace *trace, const struct sim_costs *costs) {
    double worst = worst_row(trace, costs);
    for (int i = 0; worst < near && i < N_COSTS * 2; i++) {
        struct sim_costs off = *costs;
        *cost(&off, i / 2) = (uint32_t)(*cost(&off, i / 2) * (i % 2 == 0 ? 1 + a_little : 1 - a_little));
        worst = fmax(worst, worst_row(trace, &off));
    }
    return worst;
}

static const double least_ns = 500, most_ns = 100000;

static double random_below(double limit) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / 0x1p53 * limit;
}

struct point {
    double x[N_COSTS]; /* logarithms */
    double off;
};

static struct sim_costs costs_at(const struct point *p) {
    struct sim_costs costs = sim_costs_default();
    for (int i = 0; i < N_COSTS; i++)
        *cost(&costs, i) = (uint32_t)(exp(p->x[i]) + 0.5);
    return costs;
}

static void measure(const struct sbt_trace *trace, struct point *p) {
    struct sim_costs costs = costs_at(p);
    p->off = distance(trace, &costs);
}

static struct point random_point(void) {
    struct point p;
    for (int i = 0; i < N_COSTS; i++)
        p.x[i] = log(least_ns) + random_below(log(most_ns / least_ns));
    p.x[0] = log(rows[0].software_ns); /* the first row says that, but for the cache line */
    return p;
}

/* `p` moved by the difference of two others, and maybe towards the best one. */
static struct point changed(const struct point *p, const struct point *a, const struct point *b,
                            const struct point *best) {
    double by = 0.3 + random_below(0.6), towards = random_below(1) < 0.4 ? random_below(1) : 0;
    double share = random_below(1) < 0.5 ? 0.9 : 0.4;
    int one = (int)random_below(N_COSTS);
    struct point next = *p;
    for (int i = 0; i < N_COSTS; i++)
        if (i == one || random_below(1) < share) {
            next.x[i] += towards * (best->x[i] - p->x[i]) + by * (a->x[i] - b->x[i]) + random_below(0.02) - 0.01;
            next.x[i] = fmin(fmax(next.x[i], log(least_ns)), log(most_ns));
        }
    return next;
}

/*
 * Who wins a race depends on the constants, so the distance has many valleys: differential evolution, the same way each
 * time.
 */
static void fit(const struct sbt_trace *trace) {
    static struct point points[FIT_POINTS];
    int first = 0;
    for (int i = 0; i < FIT_POINTS; i++) {
        points[i].off = INFINITY;
        for (int k = 0; k < FIT_FIRST; k++) {
            struct point p = random_point();
            measure(trace, &p);
            points[i] = p.off < points[i].off ? p : points[i];
        }
        first = points[i].off < points[first].off ? i : first;
    }
    for (int n = 0; n < FIT_GENERATIONS * FIT_POINTS; n++) {
        struct point *p = &points[n % FIT_POINTS], next;
        const struct point *a = &points[(int)random_below(FIT_POINTS)], *b = &points[(int)random_below(FIT_POINTS)];
        next = changed(p, a, b, &points[first]);
        measure(trace, &next);
        if (next.off > p->off)
            continue;
        *p = next;
        first = p->off < points[first].off ? n % FIT_POINTS : first;
    }
    struct sim_costs best = costs_at(&points[first]);
    printf("attempt %u ns, futex %u ns, kernel %u ns, wake %u ns; worst row %.1f %%, %.1f %% when one is %.0f %% off\n",
           best.attempt_ns, best.futex_ns, best.kernel_ns, best.wake_ns, worst_row(trace, &best) * 100,
           points[first].off * 100, a_little * 100);
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

/* Status 1: a row of the software-only column is more than a tenth off. */
static int check(const struct sbt_trace *trace) {
    struct sim_costs costs = sim_costs_default();
    double worst = worst_row(trace, &costs);
    printf("worst row of the software-only column: %.1f %%\n", worst * 100);
    return worst > 0.1;
}

static uint64_t number(const char *text) {
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 ? n : UINT64_MAX;
}

int main(int argc, char **argv) {
    uint64_t n_rounds = N_ROUNDS;
    bool fits = false, checks = false;
    if (argc > 2 && strcmp(argv[1], "--between") == 0) {
        between_ns = number(argv[2]);
        argc -= 2, argv += 2;
    }
    if (argc == 2 && strcmp(argv[1], "--fit") == 0)
        fits = true;
    else if (argc == 2 && strcmp(argv[1], "--check") == 0)
        checks = true;
    else if (argc == 2)
        n_rounds = number(argv[1]);
    bool wrong = argc > 2 || n_rounds == 0 || n_rounds > UINT32_MAX || between_ns > 1000000;
    if (wrong || ((fits || checks) && between_ns != 0)) {
        fprintf(stderr, "usage: producer-sim [--between NS] [ROUNDS] | --fit | --check\n");
        return 2;
    }
    const struct sbt_trace *trace = record(n_rounds);
    if (checks)
        return check(trace);
    if (fits)
        fit(trace);
    else
        print(trace);
    return 0;
}
