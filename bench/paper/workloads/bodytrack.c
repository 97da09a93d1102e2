/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bodytrack, Fig. 9 and its text. T0 is the master, T1 ... T(n-2) are workers, T(n-1) does input and output and meets
 * T0 only. One round:
 *
 *   T0: defines the work (one phase), locks the dispatch mutex, broadcasts, unlocks
 *   workers: lock the dispatch mutex; an early one waits for the broadcast, a late one finds the work there; unlock
 *   all of them: a barrier that acknowledges the request
 *   workers: compute (one phase), in between lock the work mutex; T0 waits
 *   all of them: the barrier of the finished round
 *
 * Mutexes (Table V has 3): dispatch, work, input/output. Barriers (4): ready (once, at the start), acknowledge, done,
 * and one for T0 and T(n-1). What the fourth barrier and the third mutex are for, the paper does not say; here they are
 * the one request to the input/output thread, 8 events, of which the paper has at most 10.
 *
 * Rounds: Table VI's barrier events leave 34, 34 and 53 of them, each 4 (n-1) packets, after 2 (n-1) of the start and 4
 * for input. Its condition events are a broadcast for each round and waits: 447 - 34 of 476 possible ones, 716 of 1020,
 * 1476 of 3286. Its mutex events give the number of sections in the workers' phases.
 */
#include "emit.h"

static const struct {
    uint32_t rounds;
    uint64_t mutex_events, condition_events; /* Table VI */
} table_vi[WORKLOAD_N_SIZES] = {{34, 9000, 447}, {34, 10472, 750}, {53, 8677, 1529}};

enum { SHARE_MILLIONTHS = 51200 }; /* section VIII-D: 5.12 % */

struct objects {
    uint32_t dispatch, work, io, request, ready, acknowledge, done, io_barrier;
};

static void start(struct workload *w, struct objects *o) {
    uint32_t n = w->request->n_threads;
    workload_work(w, 0, w->request->phase_ns);
    o->dispatch = workload_init(w, SBT_TRACE_MUTEX, 0);
    o->work = workload_init(w, SBT_TRACE_MUTEX, 0);
    o->io = workload_init(w, SBT_TRACE_MUTEX, 0);
    o->request = workload_init(w, SBT_TRACE_COND, 0);
    o->ready = workload_init(w, SBT_TRACE_BARRIER, n - 1);
    o->acknowledge = workload_init(w, SBT_TRACE_BARRIER, n - 1);
    o->done = workload_init(w, SBT_TRACE_BARRIER, n - 1);
    o->io_barrier = workload_init(w, SBT_TRACE_BARRIER, 2);
    for (uint32_t i = 1; i < n; i++)
        workload_create(w, i);
    for (uint32_t i = 0; i < n - 1; i++)
        workload_barrier(w, i, o->ready);
    workload_section(w, 0, o->io);
    workload_barrier(w, 0, o->io_barrier);
    workload_barrier(w, n - 1, o->io_barrier);
    workload_section(w, n - 1, o->io);
}

static void compute(struct workload *w, uint32_t thread, uint32_t mutex, uint64_t n_sections) {
    uint64_t ns = workload_draw(w, w->request->worker_ns), inside = n_sections * w->held;
    uint64_t outside = ns > inside ? ns - inside : 0;
    for (uint64_t i = 0; i < n_sections; i++) {
        workload_work(w, thread, workload_part(outside, n_sections + 1, i));
        workload_section(w, thread, mutex);
    }
    workload_work(w, thread, workload_part(outside, n_sections + 1, n_sections));
}

void workload_bodytrack(struct workload *w) {
    uint32_t n = w->request->n_threads, n_workers = n - 2, rounds = table_vi[w->size].rounds;
    uint64_t n_sections = table_vi[w->size].mutex_events / 2;
    uint64_t in_compute = n_sections - (uint64_t)rounds * (1 + n_workers) - 2;
    uint64_t n_waits = table_vi[w->size].condition_events - rounds;
    uint64_t path = w->request->phase_ns + rounds * (w->request->phase_ns + workload_slowest(w, n_workers));
    workload_set_held(w, path, SHARE_MILLIONTHS, n_sections);

    struct objects o;
    start(w, &o);
    for (uint32_t round = 0; round < rounds; round++) {
        /* The early ones, another set each round. */
        uint64_t n_early = workload_part(n_waits, rounds, round);
        bool early[WORKLOAD_MAX_THREADS];
        for (uint32_t i = 0; i < n_workers; i++)
            early[1 + i] = (i + n_workers - round % n_workers) % n_workers < n_early;
        for (uint32_t i = 1; i <= n_workers; i++)
            if (early[i])
                workload_lock(w, i, o.dispatch);

        workload_work(w, 0, w->request->phase_ns);
        workload_lock(w, 0, o.dispatch);
        workload_hold(w, 0);
        uint64_t broadcast = workload_broadcast(w, 0, o.request);
        workload_unlock(w, 0, o.dispatch);
        workload_barrier(w, 0, o.acknowledge);

        for (uint32_t i = 1; i <= n_workers; i++) {
            if (early[i])
                workload_wait(w, i, o.request, o.dispatch, broadcast);
            else
                workload_lock(w, i, o.dispatch);
            workload_hold(w, i);
            workload_unlock(w, i, o.dispatch);
            workload_barrier(w, i, o.acknowledge);
        }
        for (uint32_t i = 1; i <= n_workers; i++) {
            uint64_t which = (uint64_t)round * n_workers + i - 1;
            compute(w, i, o.work, workload_part(in_compute, (uint64_t)rounds * n_workers, which));
            workload_barrier(w, i, o.done);
        }
        workload_barrier(w, 0, o.done);
    }
    workload_finish(w);
}
