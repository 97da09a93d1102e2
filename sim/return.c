/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "return.h"

#include "host_poll.h"
#include "page.h"

static inline __attribute__((always_inline)) void next_event(struct sim *sim, struct sim_thread *t, uint64_t extra) {
    struct sbt_trace_error error;
    struct sbt_trace_event before;
    if (__builtin_expect(sim->host != NULL, 0))
        before = t->event;
    int r = t->cut ? 0 : sbt_trace_next(&t->cursor, &t->event, &error);
    if (__builtin_expect(r > 0 && sbt_trace_still_runs(&t->event), 0)) {
        r = 0; /* what it did until the program's end binds nothing */
        sim->summary.n_events++;
    }
    if (r < 0) {
        sim_fail(sim, SIM_DAMAGED, "%s: at byte %ju: %s", t->app->result.name, (uintmax_t)error.offset, error.reason);
        return;
    }
    if (r == 0) {
        if (extra != 0)
            sim_core_run(sim, t, extra, sim->cut);
        else
            sim->cut(sim, t);
        return;
    }
    /* So that no sum of these and the present time overflows 64 bits. */
    if (__builtin_expect((t->event.work_ns | t->event.took_ns | sim_now(sim)) > SIM_RETURN_LONGEST, 0)) {
        sim_fail(sim, SIM_DAMAGED, "%s: thread %u %s for more than a hundred years", t->app->result.name, t->number,
                 t->event.took_ns > SIM_RETURN_LONGEST ? "waits" : "works");
        return;
    }
    if (__builtin_expect(sim->host != NULL, 0)) {
        sim_then *then = t->event.op == SBT_TRACE_MUTEX_TRYLOCK ? sim_host_poll_next(sim, t, &before) : sim->call;
        uint64_t work = sim_host_work_ns(sim, t->event.work_ns);
        t->host.ahead_ns = work < sim->host->model.line_ns ? (uint32_t)work : sim->host->model.line_ns;
        sim_host_run(sim, t, extra + work, then);
        return;
    }
    sim_core_run(sim, t, extra + t->event.work_ns, sim->call);
}

static void count_call(struct sim *sim, struct sim_thread *t, uint64_t ns) {
    if (t->cut)
        return;
    sim_histogram_add(&sim->latency[t->kind], ns);
    if (t->kind == SIM_THREAD)
        return;
    sim->summary.n_calls++;
    t->result.n_calls++;
    t->result.sync_ns += ns;
}

void sim_return_after(struct sim *sim, struct sim_thread *t, uint64_t extra) {
    t->app->last_ns = sim_now(sim) + extra;
    count_call(sim, t, t->app->last_ns - t->called_at);
    t->called = false;
    struct sim_object *object = t->object;
    t->object = NULL;
    if (object != NULL && t->event.op == SBT_TRACE_COND_WAIT && t->mutex != NULL)
        sim_page_left(sim, t, t->mutex);
    if (object != NULL)
        sim_page_left(sim, t, object);
    sim_core_show(sim, t, SIM_WORK);
    if (extra != 0) { /* it begins its work that much later */
        t->result.in_ns[SIM_CALL] += extra;
        t->result.in_ns[SIM_WORK] -= extra;
    }
    next_event(sim, t, extra);
}

void sim_return_to_trace(struct sim *sim, struct sim_thread *t, uint64_t extra) {
    next_event(sim, t, extra);
}

void sim_return(struct sim *sim, struct sim_thread *t) {
    sim_return_after(sim, t, 0);
}
