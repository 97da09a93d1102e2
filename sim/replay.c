/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's way along its trace: birth, work, its calls one after another, creation and join, death. call.c has what a
 * call on an object does, return.c how the thread gets to its next event.
 */
#include "replay.h"

#include "call.h"
#include "core.h"
#include "host_sync.h"
#include "page.h"
#include "return.h"

#include <errno.h>

enum {
    CIRCLE_NS = 1000000, /* from the beginning of a sleep to the first look for threads that wait for each other */
    LOOKS_NS = 20000,    /* between two such looks at least, where sleeps are left out */
};
enum { PROGRESS_EVENTS = 1 << 16 }; /* between two calls of on_progress; a power of two */

static void call(struct sim *sim, struct sim_thread *t);

/* ---- birth and death ---- */

static void begin(struct sim *sim, struct sim_thread *t) {
    t->result.from_ns = sim_now(sim);
    sim_return_to_trace(sim, t, 0);
}

/* False: the run has failed, because there is no memory or no number left. */
static bool create(struct sim *sim, struct sim_app *app, uint32_t number) {
    struct sim_thread *t = sim_line_zeroed(sizeof *t);
    if (t == NULL || sim->n_free_ids == 0) {
        free(t);
        sim_fail(sim, SIM_NO_MEMORY, t == NULL ? "out of memory" : "more than %d threads at a time", SIM_MAX_THREADS);
        return false;
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
    sim_core_add(sim, t, begin);
    return true;
}

void sim_replay_start(struct sim *sim, struct sim_app *app) {
    create(sim, app, 0);
    for (uint32_t i = 0; app->begins != NULL && i < app->n_threads; i++) {
        if (app->begins[i] > SIM_RETURN_LONGEST)
            continue;
        app->n_unborn++;
        sim_events_put_words(&sim->events, sim_now(sim) + app->begins[i], SIM_EV_BORN, i, app->number, 0, app);
    }
}

void sim_replay_born_event(struct sim *sim, const struct sim_event *event) {
    struct sim_app *app = &sim->apps[event->generation];
    app->n_unborn--;
    create(sim, app, event->index);
}

static void application_ended(struct sim *sim, struct sim_app *app) {
    app->result.to_ns = app->last_ns;
    sim->n_running--;
    if (sim->config.sched.policy == CSA_OAT && csa_oat_next(&sim->oat)) {
        struct sim_app *next = &sim->apps[sim->oat.current];
        next->result.from_ns = next->last_ns = sim_now(sim);
        sim_replay_start(sim, next);
    }
}

static void keep_result(struct sim *sim, struct sim_thread *t) {
    t->app->results[t->number] = t->result;
    for (uint32_t i = 0; i < SIM_N_STATES; i++) {
        uint64_t *sums[] = {&sim->summary.work_ns, &sim->summary.call_ns, &sim->summary.wait_ns, &sim->summary.ready_ns,
                            &sim->summary.outside_ns};
        *sums[i] += t->result.in_ns[i];
    }
}

/* Its memory stays while objects name it as their owner. */
static void forget(struct sim_thread *t) {
    if (t->n_owned == 0) {
        free(t);
        return;
    }
    t->next = t->app->late.first;
    t->app->late.first = t;
}

static void end(struct sim *sim, struct sim_thread *t) {
    struct sim_app *app = t->app;
    uint32_t number = t->number;
    sim_core_show(sim, t, t->shown == SIM_READY ? SIM_WAIT : SIM_READY); /* closes the present interval */
    t->result.to_ns = app->last_ns = sim_now(sim);
    keep_result(sim, t);
    sim_core_leave(sim, t);
    app->threads[number] = NULL;
    app->ended[number] = SIM_ENDED;
    sim->by_id[t->id] = NULL;
    sim->free_ids[sim->n_free_ids++] = (uint16_t)t->id;
    struct sim_list joiners = app->joiners[number];
    app->joiners[number] = (struct sim_list){0};
    for (struct sim_thread *j; (j = sim_list_shift(&joiners)) != NULL;)
        sim_core_wake(sim, j, sim_on_host(sim) ? sim->host->model.awake_ns + sim->host->model.end_ns : 0);
    forget(t);
    if (--app->n_alive == 0 && app->n_unborn == 0)
        application_ended(sim, app);
}

/*
 * The thread's events have ended, and the thread has not: it ran when the program ended, or was killed. It is not known
 * what it did next. But threads that went on in the trace did so after this thread had released what it holds here. So
 * it releases that now.
 */
static void cut(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = sim_page_owned_by(t);
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
        o->n_inside = 1; /* all levels at once: leaving a level takes no time, and would end here again */
    t->event = (struct sbt_trace_event){
        .op = op, .type = o->kind, .object = o->number, .other = SBT_TRACE_NONE, .site = SBT_TRACE_NONE};
    call(sim, t);
}
/* ---- threads ---- */

static void created(struct sim *sim, struct sim_thread *t) {
    struct sim_app *app = t->app;
    uint32_t other = t->event.other;
    bool created = t->event.result == 0, known = other < app->n_threads && app->ended[other] == SIM_NOT_BORN;
    if (created && !known)
        sim_deviates(sim, SIM_UNKNOWN_CREATE);
    else if (created && !create(sim, app, other))
        return;
    sim_return(sim, t);
}

static void call_create(struct sim *sim, struct sim_thread *t) {
    if (sim_on_host(sim))
        sim_host_pay(sim, t, sim->host->model.spawn_ns, created);
    else
        created(sim, t);
}

static void call_end(struct sim *sim, struct sim_thread *t) {
    if (sim_on_host(sim))
        sim_host_pay(sim, t, sim->host->model.end_ns, end);
    else
        end(sim, t);
}

/* A join of a thread that the trace does not have lasts as long as it did. */
static void call_join(struct sim *sim, struct sim_thread *t) {
    uint32_t other = t->event.other;
    if (t->event.result == ETIMEDOUT) {
        sim_call_last(sim, t);
    } else if (t->event.result != 0) {
        sim_return(sim, t);
    } else if (other >= t->app->n_threads) {
        sim_deviates(sim, SIM_UNKNOWN_JOIN);
        sim_call_last(sim, t);
    } else if (t->app->ended[other] == SIM_ENDED) {
        sim_return(sim, t);
    } else {
        sim_list_append(&t->app->joiners[other], t);
        sim_core_wait(sim, t, SIM_WHY_THREAD, sim_return);
    }
}

/*
 * Without threads that sleep outside nothing goes on when others wait in a circle, and sim_replay_pass ends that. A
 * sleep may last for days, so the times between looks grow until the next one begins: a circle lasts as long as the
 * sleep did before it, at most.
 */
static void look_for_circles(struct sim *sim, uint64_t in_ns) {
    uint64_t now = sim_now(sim);
    if (now < sim->circles_at && sim->circles_at <= now + in_ns)
        return;
    sim->circles_at = now + in_ns;
    sim->circles_ns = in_ns;
    sim_events_put_words(&sim->events, sim->circles_at, SIM_EV_CIRCLES, 0, 0, 0, NULL);
}

/*
 * On the host a circle of locks ends as it closes: in the program there was none, so it costs nothing. Threads that
 * spin or poll for a lock come to no wait; theirs are found by the looks.
 */
static void waits_for_lock(struct sim *sim, struct sim_thread *t) {
    if (__builtin_expect(sim_replay_closes_circle(t), 0))
        look_for_circles(sim, 0);
}

static void pass_circles(struct sim *sim) {
    for (uint32_t i = 0; i < sim->n_apps; i++)
        sim_replay_pass_circle(sim, &sim->apps[i]);
}

void sim_replay_circles_event(struct sim *sim) {
    if (sim->n_running == 0 || sim_now(sim) != sim->circles_at) /* another one comes */
        return;
    pass_circles(sim);
    if (sim_now(sim) < sim->outside_until)
        look_for_circles(sim, sim->circles_ns > 0 ? 2 * sim->circles_ns : CIRCLE_NS);
}

/*
 * Without these waits a circle lasts until no other thread goes on, or for LOOKS_NS. No event is needed for that: a
 * thread that goes on comes here again.
 */
static void leave_outside_out(struct sim *sim, struct sim_thread *t) {
    if (sim_now(sim) >= sim->circles_at) {
        sim->circles_at = sim_now(sim) + LOOKS_NS;
        pass_circles(sim);
    }
    sim_return(sim, t);
}

/*
 * The outside takes as long as it did, whatever the threads here do: it may have waited for one of them, which a trace
 * does not say.
 */
static void call_outside(struct sim *sim, struct sim_thread *t) {
    sim->summary.n_outside++;
    if (sim->config.without_outside) {
        leave_outside_out(sim, t);
        return;
    }
    if (t->event.took_ns == 0) {
        sim_return(sim, t);
        return;
    }
    if (sim->outside_until < sim_now(sim) + t->event.took_ns)
        sim->outside_until = sim_now(sim) + t->event.took_ns;
    look_for_circles(sim, CIRCLE_NS);
    sim_core_sleep(sim, t, t->event.took_ns, sim_return);
}

/* ---- which call ---- */

static inline void serve(struct sim *sim, struct sim_thread *t) {
    t->kind = SIM_THREAD;
    switch (t->event.op) {
    case SBT_TRACE_THREAD_CREATE:
        call_create(sim, t);
        return;
    case SBT_TRACE_THREAD_JOIN:
        call_join(sim, t);
        return;
    case SBT_TRACE_THREAD_END:
        call_end(sim, t);
        return;
    case SBT_TRACE_OUTSIDE_WAIT:
        call_outside(sim, t);
        return;
    default:
        sim_call_object(sim, t);
    }
}

static __attribute__((noinline)) void call_with_progress(struct sim *sim, struct sim_thread *t) {
    sim->config.on_progress(sim->config.context, sim->summary.n_events);
    serve(sim, t);
}

static void call(struct sim *sim, struct sim_thread *t) {
    t->called = true;
    t->called_at = sim_now(sim);
    sim_core_show(sim, t, SIM_CALL);
    sim->summary.n_events += !t->cut;
    if (__builtin_expect((sim->summary.n_events & (PROGRESS_EVENTS - 1)) == 0, 0) && sim->config.on_progress != NULL)
        call_with_progress(sim, t);
    else
        serve(sim, t);
}

static void none_goes_on(struct sim *sim) {
    if (!sim_replay_pass(sim))
        sim_replay_fail(sim);
}

void sim_replay_init(struct sim *sim) {
    sim->call = call;
    sim->cut = cut;
    sim->none_goes_on = none_goes_on;
    sim->waits_for_lock = waits_for_lock;
}
