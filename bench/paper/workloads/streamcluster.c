/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streamcluster: one mutex, one condition, one barrier, and Bodytrack's scheme by barriers (section VI). Here: T0 does
 * one phase alone while the others wait at the barrier, then all of them compute one phase, to the barrier again.
 *
 * Table VI's barrier events are exactly 5695 rounds of all threads, two packets each, for 32 and 64 threads; for 16
 * they are 6501 and a half. Its mutex events are exactly 34 for each thread but one, in all three columns: 17 sections
 * of each worker, none of T0. So 17 times T0 announces something by the condition. Its condition events are more than
 * one wait for each of those sections, so some wait twice: T0 broadcasts in the middle of its phase and at the end. An
 * early thread is woken by the first, finds nothing yet and waits again.
 */
#include "emit.h"

enum { N_ANNOUNCEMENTS = 17, SHARE_MILLIONTHS = 2600 }; /* section VIII-D: 0.26 % */

static const struct {
    uint32_t rounds;
    uint64_t condition_events; /* Table VI */
} table_vi[WORKLOAD_N_SIZES] = {{6501, 381}, {5695, 802}, {5695, 1274}};

void workload_streamcluster(struct workload *w) {
    uint32_t n = w->request->n_threads, rounds = table_vi[w->size].rounds, n_serial = rounds / 2;
    uint64_t n_sections = (uint64_t)N_ANNOUNCEMENTS * (n - 1);
    uint64_t n_twice = table_vi[w->size].condition_events - 2 * N_ANNOUNCEMENTS - n_sections;
    uint64_t path = (1 + n_serial) * w->request->phase_ns + (rounds - n_serial) * workload_slowest(w, n);
    workload_set_held(w, path, SHARE_MILLIONTHS, n_sections);

    workload_work(w, 0, w->request->phase_ns);
    uint32_t mutex = workload_init(w, SBT_TRACE_MUTEX, 0);
    uint32_t condition = workload_init(w, SBT_TRACE_COND, 0);
    uint32_t barrier = workload_init(w, SBT_TRACE_BARRIER, n);
    for (uint32_t i = 1; i < n; i++)
        workload_create(w, i);

    uint32_t announced = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        if (round % 2 == 0) {
            for (uint32_t i = 0; i < n; i++)
                workload_work(w, i, workload_draw(w, w->request->worker_ns));
        } else if (announced < N_ANNOUNCEMENTS &&
                   round / 2 == (uint64_t)(announced + 1) * n_serial / (N_ANNOUNCEMENTS + 1)) {
            for (uint32_t i = 1; i < n; i++)
                workload_lock(w, i, mutex);
            workload_work(w, 0, w->request->phase_ns / 2);
            uint64_t first = workload_broadcast(w, 0, condition);
            workload_work(w, 0, w->request->phase_ns - w->request->phase_ns / 2);
            uint64_t second = workload_broadcast(w, 0, condition);
            for (uint32_t i = 1; i < n; i++) {
                if (workload_part(n_twice, n_sections, (uint64_t)announced * (n - 1) + i - 1))
                    workload_wait(w, i, condition, mutex, first);
                workload_wait(w, i, condition, mutex, second);
                workload_hold(w, i);
                workload_unlock(w, i, mutex);
            }
            announced++;
        } else {
            workload_work(w, 0, w->request->phase_ns);
        }
        for (uint32_t i = 0; i < n; i++)
            workload_barrier(w, i, barrier);
    }
    workload_finish(w);
}
