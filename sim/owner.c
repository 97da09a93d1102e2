/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "owner.h"

static uint32_t octave(uint64_t ns) {
    return ns == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(ns);
}

/* The acquisitions that may come next ask for the mutex now, and wait for its owner there. */
static void open_gate(struct sim *sim, struct sim_object *m) {
    struct sim_list gated = m->gated;
    m->gated = (struct sim_list){0};
    for (struct sim_thread *g; (g = sim_list_shift(&gated)) != NULL;) {
        if (sim_owner_is_early(sim, g, m))
            sim_list_append(&m->gated, g);
        else
            sim_core_wake(sim, g, 0);
    }
}

/* The recorded order counts acquisitions; free order does where that bounds it. */
static bool counts(const struct sim *sim) {
    return sim->config.recorded_order || sim->config.sync == SIM_GLIBC;
}

void sim_owner_acquired(struct sim *sim, struct sim_thread *t, struct sim_object *m) {
    sim_owner_set(m, t);
    m->n_inside = 1;
    t->n_held++;
    m->since = sim_now(sim);
    sim_core_hold(sim, t);
    if (sim->config.on_grant != NULL &&
        !sim->config.on_grant(sim->config.context, m->application, m->number, t->number))
        sim_fail(sim, SIM_STOPPED, "stopped");
    if (!counts(sim) || t->uncounted)
        return;
    m->users |= UINT64_C(1) << t->number % 64;
    bool names = sim->config.recorded_order && t->order > m->n_acquired;
    m->n_acquired = names ? t->order : m->n_acquired + 1;
    if (m->gated.first != NULL)
        open_gate(sim, m);
}

void sim_owner_pass_order(struct sim *sim, struct sim_object *m, uint64_t order) {
    m->n_acquired = order - 1;
    open_gate(sim, m);
}

void sim_owner_guards(struct sim_object *m, struct sim_object *condition) {
    condition->guard = m->number + 1;
    if (!m->guards)
        m->guards_from = m->n_acquired;
    m->guards = true;
}

void sim_owner_left_out(struct sim *sim, struct sim_object *m) {
    m->n_acquired++;
    if (m->gated.first != NULL)
        open_gate(sim, m);
}

void sim_owner_uncount(const struct sim *sim, struct sim_object *m) {
    if (counts(sim) && !sim->config.recorded_order)
        m->n_acquired--;
}

static void count_section(struct sim_thread *owner, uint64_t ns) {
    struct sim_sections *all = &owner->app->result.sections;
    all->n++;
    all->sum_ns += ns;
    all->max_ns = ns > all->max_ns ? ns : all->max_ns;
    all->n_in[octave(ns)]++;
    all->ns_in[octave(ns)] += ns;
    owner->result.n_sections++;
    owner->result.section_ns += ns;
}

void sim_owner_released(struct sim *sim, struct sim_object *m) {
    struct sim_thread *owner = m->owner; /* usually the caller; some programs do otherwise */
    uint64_t ns = sim_now(sim) - m->since;
    if (sim->config.on_release != NULL)
        sim->config.on_release(sim->config.context, m->application, m->number, owner->number);
    sim_owner_set(m, NULL);
    m->n_inside = 0;
    owner->n_held--;
    m->section_ns += ns;
    count_section(owner, ns);
    sim_core_unhold(sim, owner);
}

bool sim_owner_reads(const struct sim_thread *t) {
    return t->event.op == SBT_TRACE_RWLOCK_RDLOCK || t->event.op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

bool sim_owner_enter(struct sim_thread *t, struct sim_object *rwlock) {
    if (rwlock->owner != NULL || (!sim_owner_reads(t) && rwlock->n_inside > 0))
        return false;
    if (sim_owner_reads(t))
        rwlock->n_inside++;
    else
        sim_owner_set(rwlock, t);
    return true;
}

void sim_owner_leave(struct sim_object *rwlock) {
    if (rwlock->owner != NULL)
        sim_owner_set(rwlock, NULL);
    else if (rwlock->n_inside > 0)
        rwlock->n_inside--;
}

void sim_owner_wait_order(struct sim *sim, struct sim_thread *t, struct sim_object *m, sim_then *then) {
    if (!sim_owner_is_early(sim, t, m)) {
        then(sim, t);
        return;
    }
    sim_list_append(&m->gated, t);
    sim_core_wait(sim, t, SIM_WHY_ORDER, then);
}
