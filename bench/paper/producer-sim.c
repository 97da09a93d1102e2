/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The setting of Table XI in the simulator: producer.c's calls as a trace, one producer, five consumers, on both
 * machines; and the fit of what is fitted to that table.
 *
 *   producer-sim [--piece NS] [--resume NS] [ROUNDS]
 *
 * prints as JSON what the calls cost, with other pieces of work, another way back from a wait.
 *
 *   producer-sim --fit
 *
 * finds the constants of the software-only model (sim/costs.c) from the SW column and nothing else, in half a minute.
 *
 *   producer-sim --fit-subutai
 *
 * finds the piece of work and the way back from a wait (emu_hw/timing.c) from Subutai's column.
 *
 *   producer-sim --check
 *
 * exits with 1 unless both columns are within 10 %; also says what becomes of the first when a constant is 1 % off.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_file.h"
#include "sim.h"

enum { N_CONSUMERS = 5, N_SETS = 32, N_ROWS = 6, N_COSTS = 4, N_ROUNDS = 15, N_FIT_ROUNDS = 200 };
enum { FIT_POINTS = 160, FIT_FIRST = 20, FIT_GENERATIONS = 150 };
enum { MUTEX, FILLED, START, N_KINDS };

static const struct {
    const char *name;
    enum sim_call_kind kind;
    double paper[SIM_N_PAPER_SYNCS];
} rows[N_ROWS] = {{"lock, empty", SIM_LOCK_EMPTY, {1537, 127}}, {"lock, queued", SIM_LOCK_QUEUED, {64178, 916}},
                  {"unlock", SIM_UNLOCK, {4400, 60}},           {"barrier wait", SIM_BARRIER, {102467, 1183}},
                  {"broadcast", SIM_BROADCAST, {25209, 60}},    {"condition wait", SIM_COND_WAIT, {42844, 1022}}};

struct setting {
    uint64_t piece_ns; /* of the program's work, producer.c; the paper does not say */
    uint32_t n_sets;
    uint64_t n_rounds;
};
/* Where the piece is what --fit-subutai finds. */
static const struct setting table = {.piece_ns = 65, .n_sets = N_SETS, .n_rounds = N_ROUNDS};

static void add(struct sbt_trace_writer *w, uint32_t thread, struct sbt_trace_event e) {
    e.site = SBT_TRACE_NONE;
    if (sbt_trace_append(w, thread, &e) != 0)
        exit(1);
}

static void add_call(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, enum sbt_trace_type type,
                     uint32_t object, uint64_t order, uint64_t work_ns) {
    uint32_t set = object / N_KINDS;
    add(w, thread,
        (struct sbt_trace_event){.op = (uint8_t)op,
                                 .type = (uint8_t)type,
                                 .object = object,
                                 .other = op == SBT_TRACE_COND_WAIT ? set * N_KINDS + MUTEX : SBT_TRACE_NONE,
                                 .work_ns = work_ns,
                                 .order = order});
}

static void add_round(struct sbt_trace_writer *w, uint32_t thread, const struct setting *s, uint32_t set,
                      uint64_t round) {
    bool produces = thread == N_CONSUMERS + 1;
    uint32_t first = set * N_KINDS;
    uint64_t work_ns = produces ? 0 : (thread - 1 + round) % N_CONSUMERS * s->piece_ns;
    add_call(w, thread, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, first + START, 0, 0);
    add_call(w, thread, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, first + MUTEX, 0, work_ns);
    add_call(w, thread, produces ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_WAIT, SBT_TRACE_COND, first + FILLED,
             round + 1, 0);
    add_call(w, thread, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, first + MUTEX, 0, 0);
}

static void thread_event(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, uint32_t other) {
    add(w, thread, (struct sbt_trace_event){.op = (uint8_t)op, .object = SBT_TRACE_NONE, .other = other});
}

/* main is thread 0, the consumers 1 to 5, the producer 6, as producer.c creates them. */
static struct sbt_trace *record(const struct setting *s) {
    char path[] = "/tmp/subutai-producer.XXXXXX";
    struct sbt_trace_error error = {.reason = "cannot be written"};
    int fd = mkstemp(path);
    struct sbt_trace_writer *w = fd >= 0 ? sbt_trace_create(path, "producer") : NULL;
    if (w == NULL) {
        perror("producer-sim");
        exit(1);
    }
    for (uint32_t set = 0; set < s->n_sets; set++)
        add(w, 0,
            (struct sbt_trace_event){.op = SBT_TRACE_INIT,
                                     .type = SBT_TRACE_BARRIER,
                                     .object = set * N_KINDS + START,
                                     .other = SBT_TRACE_NONE,
                                     .size = N_CONSUMERS + 1});
    for (uint32_t i = 1; i <= N_CONSUMERS + 1; i++)
        thread_event(w, 0, SBT_TRACE_THREAD_CREATE, i);
    for (uint32_t i = 1; i <= N_CONSUMERS + 1; i++) {
        for (uint32_t set = 0; set < s->n_sets; set++)
            for (uint64_t round = 0; round < s->n_rounds; round++)
                add_round(w, i, s, set, round);
        thread_event(w, i, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
        thread_event(w, 0, SBT_TRACE_THREAD_JOIN, i);
    }
    thread_event(w, 0, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
    struct sbt_trace *trace = sbt_trace_finish(w) == 0 ? sbt_trace_open(path, &error) : NULL;
    close(fd);
    unlink(path);
    if (trace == NULL) {
        fprintf(stderr, "producer-sim: %s\n", error.reason);
        exit(1);
    }
    return trace;
}

static void simulate(const struct sbt_trace *trace, const struct sim_config *config, struct sim_latency *latency) {
    struct sim_error error;
    struct sim *sim = sim_new(config, &error);
    if (sim == NULL || sim_add(sim, trace, "producer", &error) != SIM_OK || sim_run(sim, &error) != SIM_OK) {
        fprintf(stderr, "producer-sim: %s\n", error.text);
        exit(1);
    }
    for (int i = 0; i < N_ROWS; i++)
        latency[i] = sim_call(sim, rows[i].kind);
    sim_free(sim);
}

static struct sim_config config_of(enum sim_sync sync) {
    struct sim_config config = sim_config_default();
    config.sync = sync;
    return config;
}

static double worst_row(const struct sbt_trace *trace, const struct sim_config *config) {
    struct sim_latency latency[N_ROWS];
    double worst = 0;
    simulate(trace, config, latency);
    for (int i = 0; i < N_ROWS; i++)
        worst = fmax(worst, fabs(latency[i].mean_ns / rows[i].paper[config->sync] - 1));
    return worst;
}

/* ---- the fit of the software-only model ---- */

/* No work, one set: a column that is a hundred times as long as the other does not notice. */
static const struct setting fitted_in = {.piece_ns = 0, .n_sets = 1, .n_rounds = N_FIT_ROUNDS};

static const double near = 0.2, a_little = 0.01;

static uint32_t *cost(struct sim_costs *costs, int i) {
    uint32_t *all[N_COSTS] = {&costs->attempt_ns, &costs->futex_ns, &costs->kernel_ns, &costs->wake_ns};
    return all[i];
}

static double worst_with(const struct sbt_trace *trace, const struct sim_costs *costs) {
    struct sim_config config = config_of(SIM_SOFTWARE);
    config.costs = *costs;
    return worst_row(trace, &config);
}

/* The worst row, also when a constant is off by a little: no match on the edge of a race. */
static double distance(const struct sbt_trace *trace, const struct sim_costs *costs) {
    double worst = worst_with(trace, costs);
    for (int i = 0; worst < near && i < N_COSTS * 2; i++) {
        struct sim_costs off = *costs;
        *cost(&off, i / 2) = (uint32_t)(*cost(&off, i / 2) * (i % 2 == 0 ? 1 + a_little : 1 - a_little));
        worst = fmax(worst, worst_with(trace, &off));
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
    p.x[0] = log(rows[0].paper[SIM_SOFTWARE]); /* the first row says that, but for the cache line */
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
 * Which thread wins a race depends on the constants, so the distance has many valleys: differential evolution, the same
 * way each time.
 */
static void fit(void) {
    const struct sbt_trace *trace = record(&fitted_in);
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
           best.attempt_ns, best.futex_ns, best.kernel_ns, best.wake_ns, worst_with(trace, &best) * 100,
           points[first].off * 100, a_little * 100);
}

/* ---- the fit of what Subutai's column needs ---- */

enum { STEP_NS = 5, N_PIECES = 22, N_RESUMES = 62 };

/* Two numbers, so all of them in steps of 5 ns: the least worst row, also when each of the two is a step off. */
static void fit_subutai(void) {
    static double worst[N_PIECES][N_RESUMES];
    struct setting s = table;
    int piece = 1, resume = 1;
    double least = INFINITY;
    for (int i = 0; i < N_PIECES; i++) {
        s.piece_ns = (uint64_t)i * STEP_NS;
        struct sbt_trace *trace = record(&s);
        for (int k = 0; k < N_RESUMES; k++) {
            struct sim_config config = config_of(SIM_SUBUTAI);
            config.timing.resume_cycles = (uint32_t)k * STEP_NS;
            worst[i][k] = worst_row(trace, &config);
        }
        sbt_trace_close(trace);
    }
    for (int i = 1; i < N_PIECES - 1; i++)
        for (int k = 1; k < N_RESUMES - 1; k++) {
            double off = 0;
            for (int n = 0; n < 9; n++)
                off = fmax(off, worst[i - 1 + n / 3][k - 1 + n % 3]);
            if (off < least)
                least = off, piece = i, resume = k;
        }
    printf("piece %d ns, resume %d ns; worst row %.1f %%, %.1f %% when each is %d ns off; without either %.1f %%\n",
           piece * STEP_NS, resume * STEP_NS, worst[piece][resume] * 100, least * 100, STEP_NS, worst[0][0] * 100);
}

/* ---- the table ---- */

static void print(const struct setting *s, uint32_t resume_cycles) {
    const struct sbt_trace *trace = record(s);
    struct sim_latency ours[SIM_N_PAPER_SYNCS][N_ROWS];
    for (int sync = 0; sync < SIM_N_PAPER_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        config.timing.resume_cycles = resume_cycles;
        simulate(trace, &config, ours[sync]);
    }
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_uint(&j, "piece_ns", s->piece_ns);
    json_uint(&j, "resume_ns", resume_cycles);
    json_open(&j, "rows", '[');
    for (int i = 0; i < N_ROWS; i++) {
        json_line(&j);
        json_open(&j, NULL, '{');
        json_text(&j, "operation", rows[i].name);
        json_real(&j, "paper_software_ns", rows[i].paper[SIM_SOFTWARE], 0);
        json_real(&j, "software_ns", ours[SIM_SOFTWARE][i].mean_ns, 1);
        json_uint(&j, "software_calls", ours[SIM_SOFTWARE][i].n);
        json_real(&j, "paper_subutai_ns", rows[i].paper[SIM_SUBUTAI], 0);
        json_real(&j, "subutai_ns", ours[SIM_SUBUTAI][i].mean_ns, 1);
        json_uint(&j, "subutai_calls", ours[SIM_SUBUTAI][i].n);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* Status 1: a row is more than a tenth off. */
static int check(void) {
    const struct sbt_trace *trace = record(&table);
    int status = 0;
    for (int sync = 0; sync < SIM_N_PAPER_SYNCS; sync++) {
        struct sim_config config = config_of((enum sim_sync)sync);
        double worst = worst_row(trace, &config);
        printf("worst row of the column %s: %.1f %%\n", sim_sync_name((enum sim_sync)sync), worst * 100);
        status |= worst > 0.1;
    }
    struct sim_costs costs = sim_costs_default();
    printf("the first when one of its constants is %.0f %% off: %.1f %%\n", a_little * 100,
           distance(trace, &costs) * 100);
    return status;
}

static uint64_t number(const char *text) {
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 ? n : UINT64_MAX;
}

static int usage(void) {
    fprintf(stderr, "usage: producer-sim [--piece NS] [--resume NS] [ROUNDS] | --fit | --fit-subutai | --check\n");
    return 2;
}

int main(int argc, char **argv) {
    struct setting s = table;
    uint64_t resume_cycles = hw_timing_default().resume_cycles; /* of a nanosecond each */
    if (argc == 2 && strcmp(argv[1], "--fit") == 0) {
        fit();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--fit-subutai") == 0) {
        fit_subutai();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return check();
    for (; argc > 2; argc -= 2, argv += 2)
        if (strcmp(argv[1], "--piece") == 0)
            s.piece_ns = number(argv[2]);
        else if (strcmp(argv[1], "--resume") == 0)
            resume_cycles = number(argv[2]);
        else
            return usage();
    if (argc == 2)
        s.n_rounds = number(argv[1]);
    if (s.n_rounds == 0 || s.n_rounds > UINT32_MAX || s.piece_ns > 1000000 || resume_cycles > 1000000)
        return usage();
    print(&s, (uint32_t)resume_cycles);
    return 0;
}
