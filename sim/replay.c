/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's way along its trace: birth, work, calls one after another, creation and join, death. What a call on an
 * object does is in calls.c.
 */
#include <stdlib.h>

#include "model.h"

enum { PROGRESS_EVENTS = 1 << 16 };
#define LONGEST (UINT64_MAX / 4) /* ns; all bits below some bit */

static void next_event(struct sim *sim, struct sim_thread *t, uint64_t extra);
static void call(struct sim *sim, struct sim_thread *t);

/* ---- birth and death ---- */

static void begin(struct sim *sim, struct sim_thread *t) {
    t->result.from_ns = sim_now(sim);
    next_event(sim, t, 0);
}

struct sim_thread *sim_create(struct sim *sim, struct sim_app *app, uint32_t number) {
    if (number >= app->n_threads || app->ended[number] != SIM_NOT_BORN) {
        sim_fail(sim, SIM_DAMAGED, "%s: thread %u is created %s", app->result.name, number,
                 number >= app->n_threads ? "and not in the trace" : "twice");
        return NULL;
    }
    struct sim_thread *t = sim_zeroed(sizeof *t);
    if (t == NULL || sim->n_free_ids == 0) {
        free(t);
        sim_fail(sim, SIM_NO_MEMORY, t == NULL ? "out of memory" : "more than %d threads at a time", SIM_MAX_THREADS);
        return NULL;
    }
    t->app = app;
    t->number = number;
    t->id = sim->free_ids[--sim->n_free_ids];
    t->sched.enabled = true;
    t->last_home = UINT32_MAX;
    sbt_trace_cursor_begin(app->trace, number, &t->cursor);
    sim->by_id[t->id] = t;
    app->threads[number] = t;
    app->ended[number] = SIM_ON_CORE;
    app->n_alive++;
    app->result.n_threads++;
    sim_born(sim, t, begin);
    return t;
}

void sim_start(struct sim *sim, struct sim_app *app) {
    sim_create(sim, app, 0);
    for (uint32_t i = 0; app->begins != NULL && i < app->n_threads; i++) {
        if (app->begins[i] > LONGEST)
            continue;
        app->n_unborn++;
        sim_events_put_words(&sim->events, sim_now(sim) + app->begins[i], SIM_EV_BORN, i, app->number, 0, app);
    }
}

void sim_born_event(struct sim *sim, const struct sim_event *event) {
    struct sim_app *app = &sim->apps[event->generation];
    app->n_unborn--;
    sim_create(sim, app, event->index);
}

static void application_ended(struct sim *sim, struct sim_app *app) {
    app->result.to_ns = app->last_ns;
    sim->n_running--;
    if (sim->config.sched.policy == CSA_OAT && csa_next(&sim->turn)) {
        struct sim_app *next = &sim->apps[sim->turn.current];
        next->result.from_ns = next->last_ns = sim_now(sim);
        sim_start(sim, next);
    }
}

static void keep_result(struct sim *sim, struct sim_thread *t) {
    t->app->results[t->number] = t->result;
    for (uint32_t i = 0; i < SIM_N_STATES; i++) {
        uint64_t *sums[] = {&sim->summary.work_ns, &sim->summary.call_ns, &sim->summary.wait_ns,
                            &sim->summary.ready_ns};
        *sums[i] += t->result.in_ns[i];
    }
}

static void end(struct sim *sim, struct sim_thread *t) {
    struct sim_app *app = t->app;
    uint32_t number = t->number;
    sim_show(sim, t, t->shown == SIM_READY ? SIM_WAIT : SIM_READY); /* closes what it has been doing */
    t->result.to_ns = app->last_ns = sim_now(sim);
    keep_result(sim, t);
    sim_leave(sim, t);
    app->threads[number] = NULL;
    app->ended[number] = SIM_ENDED;
    sim->by_id[t->id] = NULL;
    sim->free_ids[sim->n_free_ids++] = (uint16_t)t->id;
    struct sim_list joiners = app->joiners[number];
    app->joiners[number] = (struct sim_list){0};
    for (struct sim_thread *j; (j = sim_shift(&joiners)) != NULL;)
        sim_wake(sim, j, 0);
    if (t->n_owned > 0) {
        t->next = app->late.first;
        app->late.first = t;
    } else {
        free(t);
    }
    if (--app->n_alive == 0 && app->n_unborn == 0)
        application_ended(sim, app);
}

/*
 * Its events have ended and it has not: it ran when the program ended, or was killed. What it does next nobody knows,
 * but others who went on in the trace did so after it had released what it holds. It does so now.
 */
static void cut(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = sim_object_of(t);
    t->app->result.n_cut += !t->cut;
    t->cut = true;
    if (o == NULL) {
        end(sim, t);
        return;
    }
    uint8_t op = o->kind == SBT_TRACE_RWLOCK ? SBT_TRACE_RWLOCK_UNLOCK
                 : o->kind == SBT_TRACE_SPIN ? SBT_TRACE_SPIN_UNLOCK
                                             : SBT_TRACE_MUTEX_UNLOCK;
    if (op == SBT_TRACE_MUTEX_UNLOCK)
        o->n_inside = 1; /* at once, however often: leaving one level takes no time, and would come back here */
    t->event = (struct sbt_trace_event){
        .op = op, .type = o->kind, .object = o->number, .other = SBT_TRACE_NONE, .site = SBT_TRACE_NONE};
    call(sim, t);
}

/*
 * The chip as it was before the only application on it, whose threads are still where they were: nothing is on its way
 * when nothing can advance. The objects go with the application, so what they say of the chip does not matter.
 */
static void clear_chip(struct sim *sim, const struct sim_app *app) {
    for (uint32_t i = app->n_threads; i-- > 0;) {
        const struct sim_thread *t = app->threads[i];
        if (t == NULL)
            continue;
        sim->by_id[t->id] = NULL;
        sim->free_ids[sim->n_free_ids++] = (uint16_t)t->id;
    }
    sim_cores_clear(sim);
    sim_noc_clear(sim);
}

/* Its threads end where they wait, at the time when the last of them did something. */
static void stop(struct sim *sim, struct sim_app *app) {
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (app->threads[i] != NULL && app->threads[i]->shown_from > app->last_ns)
            app->last_ns = app->threads[i]->shown_from;
    for (uint32_t i = 0; i < app->n_threads; i++) {
        struct sim_thread *t = app->threads[i];
        if (t == NULL)
            continue;
        sim_show_at(sim, t, t->shown == SIM_READY ? SIM_WAIT : SIM_READY, app->last_ns);
        t->result.to_ns = app->last_ns;
        keep_result(sim, t);
    }
    app->result.n_stopped = app->n_alive;
    app->n_alive = 0;
    if (sim->config.sched.policy == CSA_OAT)
        clear_chip(sim, app);
    application_ended(sim, app);
}

/*
 * Waits for what only somebody could have done whose events end too early: nobody who is there can. A thread or the
 * owner of a lock that is waited for is there and waits itself, so what counts is what that waits for.
 */
static bool waits_for_cut(const struct sim_thread *t) {
    const struct sim_object *o = t->event.op == SBT_TRACE_COND_WAIT ? t->mutex : t->object;
    switch ((enum sim_why)t->why) {
    case SIM_WHY_SIGNAL:
    case SIM_WHY_TURN:
        return true;
    case SIM_WHY_THREAD:
        return t->app->ended[t->event.other] == SIM_NOT_BORN;
    default:
        return o == NULL || o->owner == NULL;
    }
}

/* Not if all that is left is a cycle of its own, a deadlock: that is no matter of where the trace ends. */
static bool is_cut_short(const struct sim_app *app) {
    if (app->n_alive == 0 || app->result.n_cut == 0)
        return false;
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (app->threads[i] != NULL && waits_for_cut(app->threads[i]))
            return true;
    return false;
}

bool sim_give_up(struct sim *sim) {
    bool any = false;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        if (is_cut_short(&sim->apps[i])) {
            stop(sim, &sim->apps[i]);
            any = true;
        }
    return any;
}

/* ---- from event to event ---- */

static void next_event(struct sim *sim, struct sim_thread *t, uint64_t extra) {
    struct sbt_trace_error error;
    int r = t->cut ? 0 : sbt_trace_next(&t->cursor, &t->event, &error);
    if (r < 0) {
        sim_fail(sim, SIM_DAMAGED, "%s: at byte %ju: %s", t->app->result.name, (uintmax_t)error.offset, error.reason);
        return;
    }
    if (r == 0) {
        if (extra != 0)
            sim_run_for(sim, t, extra, cut);
        else
            cut(sim, t);
        return;
    }
    /* Together with now they are far from the end of 64 bits. */
    if (__builtin_expect((t->event.work_ns | t->event.took_ns | sim_now(sim)) > LONGEST, 0)) {
        sim_fail(sim, SIM_DAMAGED, "%s: thread %u %s for more than a hundred years", t->app->result.name, t->number,
                 t->event.took_ns > LONGEST ? "waits" : "works");
        return;
    }
    sim_run_for(sim, t, extra + t->event.work_ns, call);
}

static void count(struct sim_histogram *h, uint64_t ns) {
    uint32_t octave = ns < 32 ? 0 : 59 - (uint32_t)__builtin_clzll(ns);
    h->n++;
    h->sum += ns;
    h->max = ns > h->max ? ns : h->max;
    h->bucket[octave * 32 + (octave == 0 ? ns : ns >> (octave - 1) & 31)]++;
}

void sim_return_after(struct sim *sim, struct sim_thread *t, uint64_t extra) {
    uint64_t ns = sim_now(sim) + extra - t->called_at;
    t->app->last_ns = sim_now(sim) + extra;
    if (!t->cut)
        count(&sim->latency[t->kind], ns);
    if (t->kind != SIM_THREAD && !t->cut) {
        sim->summary.n_calls++;
        t->result.n_calls++;
        t->result.sync_ns += ns;
    }
    t->called = false;
    struct sim_object *object = t->object;
    t->object = NULL;
    if (object != NULL && t->event.op == SBT_TRACE_COND_WAIT && t->mutex != NULL)
        sim_object_left(sim, t, t->mutex);
    if (object != NULL)
        sim_object_left(sim, t, object);
    sim_show(sim, t, SIM_WORK);
    if (extra != 0) { /* it begins to work so much later */
        t->result.in_ns[SIM_CALL] += extra;
        t->result.in_ns[SIM_WORK] -= extra;
    }
    next_event(sim, t, extra);
}

void sim_return(struct sim *sim, struct sim_thread *t) {
    sim_return_after(sim, t, 0);
}

/* ---- threads ---- */

static void call_create(struct sim *sim, struct sim_thread *t) {
    if (sim_create(sim, t->app, t->event.other) != NULL)
        sim_return(sim, t);
}

static void call_join(struct sim *sim, struct sim_thread *t) {
    uint32_t other = t->event.other;
    if (other >= t->app->n_threads) {
        sim_fail(sim, SIM_DAMAGED, "%s: thread %u joins %u, which is not in the trace", t->app->result.name, t->number,
                 other);
    } else if (t->app->ended[other] == SIM_ENDED) {
        sim_return(sim, t);
    } else {
        sim_append(&t->app->joiners[other], t);
        sim_wait(sim, t, SIM_WHY_THREAD, sim_return);
    }
}

/* ---- which call ---- */

static void call(struct sim *sim, struct sim_thread *t) {
    const struct sbt_trace_event *event = &t->event;
    t->called = true;
    t->called_at = sim_now(sim);
    sim_show(sim, t, SIM_CALL);
    sim->summary.n_events += !t->cut;
    if ((sim->summary.n_events & (PROGRESS_EVENTS - 1)) == 0 && sim->config.on_progress != NULL)
        sim->config.on_progress(sim->config.context, sim->summary.n_events);
    t->kind = SIM_THREAD;
    switch (event->op) {
    case SBT_TRACE_THREAD_CREATE:
        call_create(sim, t);
        return;
    case SBT_TRACE_THREAD_JOIN:
        call_join(sim, t);
        return;
    case SBT_TRACE_THREAD_END:
        end(sim, t);
        return;
    }
    sim_call_object(sim, t);
}
