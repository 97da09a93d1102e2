/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The workload models against the paper: Tables V and VI counted from the events, the structure of Fig. 9, the shares
 * of critical sections, and that the traces can have happened: replayed without costs, and in the recorded order of
 * locks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
#include "workload_replay.h"

enum { PHASE_NS = 300000 };

static struct workload_request request_of(const char *application, uint32_t n_threads) {
    return (struct workload_request){.application = application,
                                     .n_threads = n_threads,
                                     .phase_ns = PHASE_NS,
                                     .worker_ns = PHASE_NS,
                                     .spread_permille = 250,
                                     .seed = 1};
}

static struct memory_trace *generate(const struct workload_request *request, struct workload_counts *counts) {
    struct memory_trace *m = calloc(1, sizeof *m);
    const char *why;
    ck_assert_ptr_nonnull(m);
    m->n_threads = request->n_threads;
    ck_assert_int_eq(workload_generate(request, keep, m, counts, &why), 0);
    ck_assert_uint_eq(counts->n_events, m->n_events);
    return m;
}

/* ---- counting ---- */

static bool is_between(uint8_t op, enum sbt_trace_op from, enum sbt_trace_op to) {
    return op >= from && op <= to;
}

/* Table VI's three numbers, from the events. */
static void count(const struct memory_trace *m, uint64_t counts[3]) {
    memset(counts, 0, 3 * sizeof *counts);
    for (uint32_t i = 0; i < m->n_threads; i++)
        for (size_t k = 0; k < m->threads[i].n; k++) {
            uint8_t op = m->threads[i].events[k].op;
            counts[0] += op == SBT_TRACE_BARRIER_WAIT ? 2 : 0;
            counts[1] += is_between(op, SBT_TRACE_COND_WAIT, SBT_TRACE_COND_BROADCAST);
            counts[2] += op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_UNLOCK;
        }
}

static void ck_within_2_percent(uint64_t ours, uint64_t paper, const char *what) {
    uint64_t off = ours > paper ? ours - paper : paper - ours;
    ck_assert_msg(off * 50 <= paper, "%s: ours %lu, the paper's %lu", what, (unsigned long)ours, (unsigned long)paper);
}

static const struct {
    const char *application;
    uint32_t primitives[3]; /* Table V: mutexes, conditions, barriers */
    uint64_t events[3][3];  /* Table VI: barrier, condition, mutex for 16, 32, 64 threads */
    double share;           /* of critical sections */
} paper[] = {
    {"bodytrack", {3, 1, 4}, {{2101, 447, 9000}, {4293, 750, 10472}, {13416, 1529, 8677}}, 0.0512},
    {"streamcluster", {1, 1, 1}, {{208048, 381, 510}, {364480, 802, 1054}, {728960, 1274, 2142}}, 0.0026},
    {"x264", {95, 95, 0}, {{0, 86, 4154}, {0, 310, 4340}, {0, 354, 4344}}, 0.0929},
};
enum { N_PAPER = sizeof paper / sizeof *paper, N_CASES = N_PAPER * WORKLOAD_N_SIZES };

TEST_EACH(tables_v_and_vi, N_CASES) {
    uint32_t application = (uint32_t)number / WORKLOAD_N_SIZES, size = (uint32_t)number % WORKLOAD_N_SIZES;
    struct workload_request request = request_of(paper[application].application, workload_sizes[size]);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);

    uint32_t made[SBT_TRACE_N_TYPES] = {0};
    for (size_t k = 0; k < m->threads[0].n; k++)
        if (m->threads[0].events[k].op == SBT_TRACE_INIT)
            made[m->threads[0].events[k].type]++;
    ck_assert_uint_eq(made[SBT_TRACE_MUTEX], paper[application].primitives[0]);
    ck_assert_uint_eq(made[SBT_TRACE_COND], paper[application].primitives[1]);
    ck_assert_uint_eq(made[SBT_TRACE_BARRIER], paper[application].primitives[2]);
    ck_assert_uint_eq(counts.n_mutexes, made[SBT_TRACE_MUTEX]);
    ck_assert_uint_eq(counts.n_conditions, made[SBT_TRACE_COND]);
    ck_assert_uint_eq(counts.n_barriers, made[SBT_TRACE_BARRIER]);

    uint64_t events[3];
    count(m, events);
    ck_within_2_percent(events[0], paper[application].events[size][0], "barrier events");
    ck_within_2_percent(events[1], paper[application].events[size][1], "condition events");
    ck_within_2_percent(events[2], paper[application].events[size][2], "mutex events");
    ck_assert_uint_eq(counts.barrier_events, events[0]);
    ck_assert_uint_eq(counts.condition_events, events[1]);
    ck_assert_uint_eq(counts.mutex_events, events[2]);
    discard(m);
}

/* ---- what could have happened ---- */

TEST_EACH(shares_of_critical_sections, N_CASES) {
    uint32_t application = (uint32_t)number / WORKLOAD_N_SIZES, size = (uint32_t)number % WORKLOAD_N_SIZES;
    struct workload_request request = request_of(paper[application].application, workload_sizes[size]);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);
    uint64_t held_ns, end = replay(m, false, &held_ns);
    ck_assert_uint_eq(counts.held_ns, held_ns);
    double share = (double)held_ns / (double)end;
    ck_assert_msg(share > paper[application].share * 0.95 && share < paper[application].share * 1.05,
                  "%s, %u threads: %.4f", request.application, request.n_threads, share);
    discard(m);
}

TEST_EACH(could_have_happened, workload_n_models *WORKLOAD_N_SIZES) {
    uint32_t model = (uint32_t)number / WORKLOAD_N_SIZES, size = (uint32_t)number % WORKLOAD_N_SIZES;
    struct workload_request request = request_of(workload_models[model].name, workload_sizes[size]);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);
    uint64_t held_ns, free_ns = replay(m, false, &held_ns);
    replay(m, true, &held_ns);
    ck_assert_uint_eq(counts.held_ns, held_ns);
    ck_assert_uint_gt(free_ns, 30 * PHASE_NS);
    discard(m);
}

/* ---- structure ---- */

TEST_EACH(bodytrack_rounds, WORKLOAD_N_SIZES) {
    uint32_t n = workload_sizes[number];
    struct workload_request request = request_of("bodytrack", n);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);
    /* T0: broadcast, acknowledge, done, and again. */
    uint32_t rounds = 0, phase = 0;
    for (size_t k = 0; k < m->threads[0].n; k++) {
        const struct sbt_trace_event *e = &m->threads[0].events[k];
        if (e->op == SBT_TRACE_COND_BROADCAST) {
            ck_assert_uint_eq(phase, 0);
            rounds++;
            phase = 1;
        } else if (e->op == SBT_TRACE_BARRIER_WAIT && rounds) {
            phase = (phase + 1) % 3;
        }
    }
    ck_assert_uint_eq(phase, 0);
    /* Each worker: ready, then two barriers a round; a wait is ended by its round's broadcast; many do not wait. */
    uint32_t skipped = 0;
    for (uint32_t i = 1; i < n - 1; i++) {
        uint32_t barriers = 0, waits = 0;
        for (size_t k = 0; k < m->threads[i].n; k++) {
            const struct sbt_trace_event *e = &m->threads[i].events[k];
            barriers += e->op == SBT_TRACE_BARRIER_WAIT;
            if (e->op == SBT_TRACE_COND_WAIT) {
                waits++;
                ck_assert_uint_eq(e->order, (barriers - 1) / 2 + 1);
            }
        }
        ck_assert_uint_eq(barriers, 1 + 2 * rounds);
        skipped += rounds - waits;
    }
    ck_assert_uint_gt(skipped, 0);
    /* The last thread meets T0 only, in at most 10 events. */
    uint32_t events = 0;
    for (size_t k = 0; k < m->threads[n - 1].n; k++)
        events += m->threads[n - 1].events[k].type != SBT_TRACE_NO_OBJECT;
    ck_assert_uint_gt(events, 0);
    ck_assert_uint_le(2 * events, 10);
    discard(m);
}

TEST_EACH(streamcluster_barriers, WORKLOAD_N_SIZES) {
    uint32_t n = workload_sizes[number];
    struct workload_request request = request_of("streamcluster", n);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);
    uint32_t barriers = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t own = 0, locks = 0;
        for (size_t k = 0; k < m->threads[i].n; k++) {
            own += m->threads[i].events[k].op == SBT_TRACE_BARRIER_WAIT;
            locks += m->threads[i].events[k].op == SBT_TRACE_MUTEX_LOCK;
        }
        if (i == 0)
            barriers = own;
        ck_assert_uint_eq(own, barriers);
        ck_assert_uint_eq(locks, i == 0 ? 0 : 17);
    }
    discard(m);
}

TEST_EACH(x264_pipeline, WORKLOAD_N_SIZES) {
    uint32_t n = workload_sizes[number], idle = 0;
    struct workload_request request = request_of("x264", n);
    struct workload_counts counts;
    struct memory_trace *m = generate(&request, &counts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t calls = 0;
        for (size_t k = 0; k < m->threads[i].n; k++) {
            const struct sbt_trace_event *e = &m->threads[i].events[k];
            ck_assert_int_ne(e->op, SBT_TRACE_BARRIER_WAIT);
            calls += e->op != SBT_TRACE_INIT && e->op != SBT_TRACE_DESTROY && e->type != SBT_TRACE_NO_OBJECT;
        }
        idle += calls == 0;
    }
    ck_assert_uint_eq(idle, n > 48 ? n - 48 : 0);
    /* Frame after frame on one core would be 47 * 22 rows: the pipeline is real, and no wider than the threads. */
    uint64_t held_ns, end = replay(m, false, &held_ns);
    ck_assert_uint_gt(end, 47 * 22 * PHASE_NS / (n - 1));
    ck_assert_uint_lt(end, 47 * 22 * PHASE_NS / 8);
    discard(m);
}

/* ---- requests ---- */

TEST_EACH(same_request_same_trace, workload_n_models) {
    struct workload_request request = request_of(workload_models[number].name, 16);
    struct workload_counts counts;
    struct memory_trace *a = generate(&request, &counts), *b = generate(&request, &counts);
    request.seed++;
    struct memory_trace *c = generate(&request, &counts);
    ck_assert_uint_eq(a->n_events, c->n_events);
    bool differs = false;
    for (uint32_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(a->threads[i].n, b->threads[i].n);
        for (size_t k = 0; k < a->threads[i].n; k++) {
            const struct sbt_trace_event *x = &a->threads[i].events[k], *y = &b->threads[i].events[k];
            ck_assert(x->op == y->op && x->object == y->object && x->other == y->other && x->work_ns == y->work_ns &&
                      x->order == y->order && x->relock == y->relock);
            differs |= k < c->threads[i].n && x->work_ns != c->threads[i].events[k].work_ns;
        }
    }
    ck_assert(differs);
    discard(a);
    discard(b);
    discard(c);
}

TEST(refusals) {
    struct workload_counts counts;
    const char *why;
    struct workload_request good = request_of("x264", 32), bad;
    struct memory_trace *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
#define REFUSED(field, value)                                                                                          \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        bad.field = (value);                                                                                           \
        ck_assert_int_eq(workload_generate(&bad, keep, m, &counts, &why), EINVAL);                                     \
        ck_assert_ptr_nonnull(why);                                                                                    \
    } while (0)
    REFUSED(application, "ferret");
    REFUSED(application, "");
    REFUSED(n_threads, 0);
    REFUSED(n_threads, 48);
    REFUSED(n_threads, 128);
    REFUSED(phase_ns, 0);
    REFUSED(worker_ns, 0);
    REFUSED(worker_ns, UINT64_MAX);
    REFUSED(spread_permille, 1000);
#undef REFUSED
    ck_assert_uint_eq(m->n_events, 0);
    m->fail_at = 1000;
    ck_assert_int_eq(workload_generate(&good, keep, m, &counts, &why), ENOSPC);
    ck_assert_uint_eq(m->n_events, 999);
    discard(m);
}
