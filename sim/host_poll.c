/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_poll.h"

#include "page.h"
#include "polling.h"
#include "signals.h"

/* ---- polls ---- */

static void begin_poll(struct sim *sim, struct sim_thread *t, const struct sim_polling *found) {
    struct sim_object *m = sim_page_object(sim, t->app, t->event.object);
    uint64_t gap = found->gaps_ns / found->n_failed;
    t->host.poll_ns = gap > 0 ? (uint32_t)gap : 1;
    sim->summary.n_events += found->n_failed;
    sim->summary.n_polls += found->n_failed;
    if (m != NULL)
        m->polled = true;
}

/* ---- looks: the thread works, and is in the condition's list `gated` ---- */

static void end_look(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->host.looks_for;
    t->host.looks_for = NULL;
    sim_page_left(sim, t, c);
}

static void look_over(struct sim *sim, struct sim_thread *t) {
    if (t->host.looks_for != NULL) {
        sim_list_remove(&t->host.looks_for->gated, t);
        end_look(sim, t);
    }
    sim->call(sim, t);
}

static sim_then *begin_look(struct sim *sim, struct sim_thread *t, const struct sim_polling *found) {
    struct sim_object *c = sim_page_object(sim, t->app, found->condition);
    if (c == NULL || t->event.work_ns == 0)
        return sim->call;
    sim->summary.n_looks++;
    if (sim_signals_has(c, found->signal)) {
        t->event.work_ns = 0;
        return sim->call;
    }
    c->n_calls++; /* it is not given back meanwhile */
    t->awaited = found->signal;
    t->host.looks_for = c;
    sim_list_append(&c->gated, t);
    return look_over;
}

void sim_host_poll_signalled(struct sim *sim, struct sim_object *c) {
    uint64_t way = sim_host_has(sim, SIM_HOST_LINES) ? sim->host->model.line_ns : 0;
    struct sim_list looking = c->gated;
    c->gated = (struct sim_list){0};
    for (struct sim_thread *t; (t = sim_list_shift(&looking)) != NULL;) {
        if (!sim_signals_has(c, t->awaited)) {
            sim_list_append(&c->gated, t);
            continue;
        }
        end_look(sim, t); /* the condition stays: the signalling thread is inside a call on it */
        sim_host_shorten(sim, t, way);
    }
}

sim_then *sim_host_poll_next(struct sim *sim, struct sim_thread *t, const struct sbt_trace_event *before) {
    t->host.poll_ns = 0;
    if (sim->config.recorded_order || sim_polling_goes_on(before, &t->event))
        return sim->call;
    struct sim_polling found = sim_polling_ahead(&t->cursor, before, &t->event);
    if (found.n_failed > 0)
        begin_poll(sim, t, &found);
    return found.condition != SBT_TRACE_NONE ? begin_look(sim, t, &found) : sim->call;
}
