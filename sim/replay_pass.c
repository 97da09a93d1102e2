/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When no thread can go on. What the threads wait for is not in the trace (a killed program has not written it, another
 * process did it, the recorder has guessed wrong), or comes too late because lock order is free. Then a single wait
 * ends, as if what it waits for had happened, and is counted.
 *
 * The wait that ended first in the trace is chosen. What ended it was done before, by a thread that was not in one of
 * the other waits then: so none of these waits has to end first. Generated traces have no times. There the walk goes on
 * from a thread that waits for another one, to join it or for its lock, to that other thread, until it comes to a wait
 * for something else, or round in a circle.
 */
#include "replay.h"

#include "core.h"
#include "host_sync.h"
#include "mutex.h"
#include "noc.h"
#include "owner.h"
#include "signals.h"
#include "software.h"
#include "vc_barrier.h"

/* In the trace. */
static uint64_t ended_at(const struct sim_thread *t) {
    return t->event.at_ns + t->event.took_ns;
}

static struct sim_object *awaited_object(const struct sim_thread *t) {
    return t->event.op == SBT_TRACE_COND_WAIT ? t->mutex : t->object;
}

/* The living thread that it waits for, to join it or for its lock; NULL: it waits for something else. */
static struct sim_thread *awaited_thread(const struct sim_thread *t) {
    const struct sim_object *o = awaited_object(t);
    if (t->why == SIM_WHY_THREAD)
        return t->app->threads[t->event.other];
    bool locks = t->why == SIM_WHY_OBJECT && o != NULL && o->owner != NULL;
    return locks && o->owner->place != SIM_ENDED ? o->owner : NULL;
}

static bool is_before(const struct sim_thread *a, const struct sim_thread *b) {
    return ended_at(a) < ended_at(b);
}

/* Which thread's wait has to end first for this thread's to end? Its own, unless the trace has no times. */
static struct sim_thread *first_of_chain(struct sim_thread *t) {
    uint32_t n = 0;
    for (struct sim_thread *next; (next = awaited_thread(t)) != NULL && n < t->app->n_threads; n++) {
        if (is_before(t, next))
            break;
        t = next;
    }
    return t;
}

static bool is_in(const struct sim_list *list, const struct sim_thread *t) {
    const struct sim_thread *w = list->first;
    while (w != NULL && w != t)
        w = w->next;
    return w != NULL;
}

/* ---- the waits ---- */

static bool pass_software(struct sim *sim, struct sim_thread *t) {
    return sim_on_host(sim) ? sim_host_pass(sim, t) : sim_software_pass(sim, t);
}

static bool pass_join(struct sim *sim, struct sim_thread *t) {
    sim_list_remove(&t->app->joiners[t->event.other], t);
    sim_core_wake(sim, t, 0);
    return true;
}

/* The owner loses the mutex, and unlocks it in vain later. */
static bool pass_mutex(struct sim *sim, struct sim_thread *t, struct sim_object *m) {
    bool hardware = sim_mutex_in_hardware(sim, m);
    if (sim_on_host(sim) && t->spins)
        return sim_host_pass(sim, t);
    if (hardware ? m->owner == NULL : !sim_list_remove(&m->waiters, t))
        return false;
    if (m->owner != NULL)
        sim_owner_released(sim, m);
    if (hardware)
        sim_noc_post(sim, t, HW_OP_UNLOCK, m, m->id);
    else
        sim_core_wake(sim, t, 0);
    return true;
}

/* In hardware the wake-up may reach another waiter first, which passes it on. */
static bool pass_condition(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    if (sim_list_remove(&c->waiters, t)) {
        t->awaited = 0;
        sim_core_wake(sim, t, 0);
        return true;
    }
    if (is_in(&c->queued, t)) {
        t->awaited = 0;
        sim_noc_post(sim, t, HW_OP_SIGNAL, c, c->id);
        return true;
    }
    return t->mutex != NULL && pass_mutex(sim, t, t->mutex); /* it has been woken, and waits for its mutex */
}

/* Requests of no thread take the places of the arrivals that are missing. */
static bool pass_barrier(struct sim *sim, struct sim_thread *t) {
    uint32_t n = 0;
    struct sim_object *b = t->object;
    if (b->channel != NULL) {
        sim_vc_barrier_pass(sim, b);
        return true;
    }
    if (!sim_mutex_in_hardware(sim, b))
        return pass_software(sim, t);
    for (uint32_t i = 0; i < t->app->n_threads; i++) {
        const struct sim_thread *other = t->app->threads[i];
        n += other != NULL && other->object == b && other->event.op == SBT_TRACE_BARRIER_WAIT;
    }
    do /* once if there are enough: a second initialisation has changed the count, and the NI has the first */
        sim_noc_post_absent(sim, t, HW_OP_BARRIER_WAIT, b->id);
    while (++n < b->size);
    return true;
}

static bool pass(struct sim *sim, struct sim_thread *t) {
    if (is_in(&sim->parked, t)) /* the chip is too small for it */
        return false;
    switch ((enum sim_why)t->why) {
    case SIM_WHY_THREAD:
        return pass_join(sim, t);
    case SIM_WHY_SIGNAL:
        return pass_condition(sim, t);
    case SIM_WHY_ORDER:
        sim_owner_pass_order(sim, t->mutex, t->order);
        return true;
    case SIM_WHY_OBJECT:
        if (t->event.op == SBT_TRACE_BARRIER_WAIT)
            return pass_barrier(sim, t);
        if (awaited_object(t)->kind == SBT_TRACE_MUTEX)
            return pass_mutex(sim, t, awaited_object(t));
        return pass_software(sim, t);
    default: /* an answer or a time, which comes */
        return false;
    }
}

/* ---- which wait ---- */

static bool is_waiting(const struct sim_thread *t) {
    return t->place == SIM_AWAKE || t->place == SIM_ASLEEP || t->spins;
}

/* The first of the waiting threads behind `last`; NULL: there is none. */
static struct sim_thread *next_waiting(const struct sim *sim, const struct sim_thread *last) {
    struct sim_thread *best = NULL;
    bool behind = last == NULL; /* threads that are equal come in the order of this walk */
    for (uint32_t i = 0; i < sim->n_apps; i++)
        for (uint32_t k = 0; sim->apps[i].n_alive > 0 && k < sim->apps[i].n_threads; k++) {
            struct sim_thread *t = sim->apps[i].threads[k];
            if (t == last)
                behind = true;
            if (t == NULL || t == last || !is_waiting(t))
                continue;
            if (last != NULL && (is_before(t, last) || (!behind && !is_before(last, t))))
                continue;
            if (best == NULL || is_before(t, best))
                best = t;
        }
    return best;
}

/*
 * Each wait that is let pass brings its thread to an event, at the latest when all threads of its application have been
 * let pass. The bound is for a chip that keeps a thread all the same, because its scratchpads are full.
 */
static bool may_pass(struct sim *sim) {
    uint64_t bound = 16;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        bound += 4 * (uint64_t)sim->apps[i].n_alive;
    if (sim->passed_at != sim->summary.n_events)
        sim->n_passed = 0;
    sim->passed_at = sim->summary.n_events;
    return sim->config.let_pass && sim->n_passed++ < bound;
}

/*
 * A signal that woke another waiter (signals.h) has been given, and its own waiter, which came later, waits for the one
 * that was given in exchange. Where no thread can go on that one does not come: the exchange gives way, and the waiter
 * goes on as if it had found its signal given. That is as recorded. The other signal will be one more than is awaited.
 */
static bool end_exchange(struct sim *sim) {
    struct sim_thread *first = NULL;
    for (uint32_t i = 0; sim->n_exchanged > 0 && i < sim->n_apps; i++)
        for (uint32_t k = 0; sim->apps[i].n_alive > 0 && k < sim->apps[i].n_threads; k++) {
            struct sim_thread *t = sim->apps[i].threads[k];
            if (t != NULL && is_waiting(t) && t->why == SIM_WHY_SIGNAL && (first == NULL || is_before(t, first)) &&
                sim_signals_was_exchanged(t->object, t->awaited))
                first = t;
        }
    return first != NULL && sim_signals_end_exchange(sim, first->object, first->awaited) && pass_condition(sim, first);
}

bool sim_replay_pass(struct sim *sim) {
    if (end_exchange(sim))
        return true;
    if (!may_pass(sim))
        return false;
    for (struct sim_thread *t = NULL; (t = next_waiting(sim, t)) != NULL;)
        if (pass(sim, first_of_chain(t))) {
            sim_deviates(sim, SIM_LET_PASS);
            return true;
        }
    return false;
}

/* ---- a circle of locks ---- */

static const struct sim_thread *waits_for(const struct sim_thread *t) {
    return is_waiting(t) ? awaited_thread(t) : NULL;
}

/* A thread of the circle in which the thread's wait ends; NULL: it does not end in one. */
static const struct sim_thread *circle_behind(const struct sim_thread *t) {
    for (uint32_t n = 0; t != NULL && n < t->app->n_alive; n++)
        t = waits_for(t);
    return t;
}

bool sim_replay_closes_circle(const struct sim_thread *t) {
    const struct sim_thread *next = waits_for(t);
    for (uint32_t n = 0; next != NULL && next != t && n < t->app->n_alive; n++)
        next = waits_for(next);
    return next == t;
}

/* The thread of the circle with the wait that ended first in the trace. */
static struct sim_thread *first_of_circle(const struct sim_thread *in) {
    const struct sim_thread *first = in;
    for (const struct sim_thread *t = waits_for(in); t != in; t = waits_for(t))
        if (is_before(t, first))
            first = t;
    return first->app->threads[first->number];
}

void sim_replay_pass_circle(struct sim *sim, const struct sim_app *app) {
    for (uint32_t i = 0; i < app->n_threads; i++) {
        const struct sim_thread *t = app->threads[i], *in = t != NULL ? circle_behind(t) : NULL;
        if (in == NULL || !may_pass(sim))
            continue;
        if (pass(sim, first_of_circle(in))) {
            sim_deviates(sim, SIM_LET_PASS);
            return;
        }
        sim->n_passed--; /* it waits for something else as well */
    }
}

void sim_replay_fail(struct sim *sim) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        n += sim->apps[i].n_alive;
    sim_fail(sim, SIM_STUCK, "%u threads wait for what does not happen", n);
}
