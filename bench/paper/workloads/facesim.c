/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facesim: the paper has two speed-ups and that it is an application like x264, no more. So this is a guess at its
 * kind, a queue of tasks without barriers, and its counts are ours: 100 groups of one task a worker. T0 prepares a
 * group (one phase), puts it into the queue and waits for its end; each worker takes a task, computes (one phase) and
 * counts it.
 */
#include "emit.h"

enum { N_GROUPS = 100, SHARE_MILLIONTHS = 92900 }; /* x264's share: "like x264" */

void workload_facesim(struct workload *w) {
    uint32_t n = w->request->n_threads, n_workers = n - 1;
    uint64_t path = w->request->phase_ns + N_GROUPS * (w->request->phase_ns + workload_slowest(w, n_workers));
    workload_set_held(w, path, SHARE_MILLIONTHS, N_GROUPS * 2 * ((uint64_t)n_workers + 1));

    workload_work(w, 0, w->request->phase_ns);
    uint32_t queue = workload_init(w, SBT_TRACE_MUTEX, 0);
    uint32_t more = workload_init(w, SBT_TRACE_COND, 0), finished = workload_init(w, SBT_TRACE_COND, 0);
    for (uint32_t i = 1; i < n; i++)
        workload_create(w, i);

    for (uint32_t group = 0; group < N_GROUPS; group++) {
        for (uint32_t i = 1; i < n; i++)
            workload_lock(w, i, queue);
        workload_work(w, 0, w->request->phase_ns);
        workload_lock(w, 0, queue);
        workload_hold(w, 0);
        uint64_t tasks = workload_broadcast(w, 0, more);
        workload_unlock(w, 0, queue);

        uint32_t slowest = 1;
        uint64_t ns[WORKLOAD_MAX_THREADS];
        for (uint32_t i = 1; i < n; i++) {
            workload_wait(w, i, more, queue, tasks);
            workload_hold(w, i);
            workload_unlock(w, i, queue);
            ns[i] = workload_draw(w, w->request->worker_ns);
            workload_work(w, i, ns[i]);
            if (ns[i] > ns[slowest])
                slowest = i;
        }
        workload_lock(w, 0, queue);
        uint64_t done = 0;
        for (uint32_t turn = 1; turn < n; turn++) {
            uint32_t i = turn == n - 1 ? slowest : turn < slowest ? turn : turn + 1;
            workload_lock(w, i, queue);
            workload_hold(w, i);
            if (i == slowest)
                done = workload_signal(w, i, finished);
            workload_unlock(w, i, queue);
        }
        workload_wait(w, 0, finished, queue, done);
        workload_hold(w, 0);
        workload_unlock(w, 0, queue);
    }
    workload_finish(w);
}
