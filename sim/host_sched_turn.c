/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A core of the host from one event to the next: its thread begins to run, runs, and goes back to the run queue. What
 * comes to a core from outside, threads that are woken or begin, is in host_sched.c, and so is what the scheduler is.
 */
#include "host_sched_turn.h"

#include "host_place.h"
#include "host_search.h"

enum {
    N_PAUSES = 16,    /* of which a core's mean pause is made */
    STEAL_NS = 300,   /* what taking fibers from another carrier costs */
    SPINS_CHECK = 16, /* one in so many events of a thread that spins */
};

/* ---- the core's event ---- */

/* It wakes threads, in the kernel: it is not preempted until that is done. */
static bool is_waking(const struct sim_thread *t) {
    return t->targets.first != NULL;
}

/* An event that comes no more is cancelled: many a wait is over long before its spin ends. */
static __attribute__((noinline)) void cancel_event(struct sim *sim, struct sim_host_core *core) {
    sim_events_cancel(&sim->events, core->armed_at, core->ticket);
    core->generation += core->ticket == SIM_NO_EVENT;
    core->armed = false;
}

static __attribute__((noinline)) void arm_far(struct sim *sim, struct sim_host_core *core, uint64_t at) {
    core->armed = at != UINT64_MAX;
    if (core->armed)
        core->ticket =
            sim_events_put_words(&sim->events, at, SIM_EV_CORE, core->number, ++core->generation, 0, core->on);
}

/* The core, which has none, gets its event at that time. UINT64_MAX: it gets none. */
static inline __attribute__((always_inline)) void arm_at(struct sim *sim, struct sim_host_core *core, uint64_t at) {
    core->armed = true;
    core->armed_at = at;
    core->ticket = core->number;
    if (__builtin_expect(!sim_events_put_own(&sim->events, at, core->number, core->on), 0))
        arm_far(sim, core, at);
}

/* When the kernel looks at the core's thread: at a tick, or as soon as another thread wants the core. */
static uint64_t next_look(struct sim *sim, struct sim_host_core *core) {
    uint64_t now = sim_now(sim), tick = sim->host->model.tick_ns;
    if (__builtin_expect(now >= sim->host->next_tick, 0))
        sim->host->next_tick = now - now % tick + tick;
    core->tick_at = sim->host->next_tick;
    if (core->resched && !is_waking(core->on))
        core->tick_at = core->preempt_at > now ? core->preempt_at : now;
    return core->tick_at > core->from ? core->tick_at : core->from;
}

void sim_host_arm(struct sim *sim, struct sim_host_core *core) {
    const struct sim_thread *t = core->on;
    uint64_t at = t->left < SIM_HOST_ENDLESS ? core->from + t->left : UINT64_MAX;
    if (__builtin_expect(core->n_ready > 0, 0) && (sim_host_has(sim, SIM_HOST_SLICES) || t->left >= SIM_HOST_ENDLESS)) {
        uint64_t look = next_look(sim, core);
        at = look < at ? look : at;
    }
    if (__builtin_expect(core->armed, 0))
        cancel_event(sim, core);
    arm_at(sim, core, at);
}

void sim_host_queue_changed(struct sim *sim, struct sim_host_core *core) {
    if (core->armed || core->on->left >= SIM_HOST_ENDLESS)
        sim_host_arm(sim, core);
}

/* ---- threads on cores ---- */

void sim_host_run_on(struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t late) {
    const struct sim_host_model *model = &sim->host->model;
    if (sim_host_is_idle(sim, core->number))
        core->pause_ns = (core->pause_ns * (N_PAUSES - 1) + sim_now(sim) - core->idle_from) / N_PAUSES;
    sim_host_set_idle(sim, core->number, false);
    if (core->searches)
        sim_host_search_stop(sim, core);
    core->on = t;
    core->resched = core->preempts = core->woken = false;
    core->from = sim_now(sim) + late;
    if (core->last != t->host.serial) {
        sim->summary.n_switches++;
        if (late == 0)
            core->from += sim->host->fibers ? model->fiber_ns : model->switch_ns;
        core->last = t->host.serial;
    }
    t->place = SIM_ON_CORE;
    t->host.yielded = false;
    t->host.picked_at = core->from;
    if (t->host.looks) /* what it waits for may have come meanwhile */
        t->left = 0;
    sim_core_show_at(sim, t, t->called ? SIM_CALL : SIM_WORK, core->from);
    sim_host_arm(sim, core);
}

uint64_t sim_host_late(const struct sim *sim, const struct sim_host_core *core, bool carrier) {
    const struct sim_host_model *model = &sim->host->model;
    if (!sim_host_has(sim, SIM_HOST_LATENCY) || sim_host_is_server(sim, core->number)) /* a server does not sleep */
        return 0;
    /* It is on its way to being idle, or was so when the waker's part began, which is over where a thread is woken. */
    uint64_t now = sim_now(sim), idle_at = sim_host_idle_at(sim, core, carrier);
    if (idle_at != 0 && now < idle_at + (carrier ? 0 : model->wake_soon_ns))
        return (now < idle_at ? idle_at - now : 0) + model->late_soon_ns;
    if (sim_host_pauses_are_short(sim, core))
        return model->late_short_ns;
    return sim_host_is_deep(sim, core) ? model->late_deep_ns : model->late_idle_ns;
}

void sim_host_next_thread(struct sim *sim, struct sim_host_core *core) {
    core->on = NULL;
    if (core->n_ready == 0 && core->n_delayed > 0)
        sim_host_take_next(sim, core); /* all leave */
    if (core->n_ready > 0 || (!sim->host->fibers && sim_host_steal(sim, core))) {
        sim_host_run_on(sim, core, sim_host_take_next(sim, core), 0);
        return;
    }
    core->idle_from = core->search_from = sim_now(sim);
    if (core->armed)
        cancel_event(sim, core);
    if (sim_host_is_server(sim, core->number))
        return;
    sim_host_set_idle(sim, core->number, true);
    if (sim->host->fibers)
        sim_host_search_on(sim, core);
}

void sim_host_preempt(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on;
    t->host.ran_at = sim_now(sim);
    sim_core_show(sim, t, SIM_READY);
    core->on = NULL;
    if (sim_host_push(sim, core, t))
        sim_host_next_thread(sim, core);
}

/* A thread was woken and takes the core. The running thread keeps its deadline. */
static void preempt_for_woken(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on, *next = sim_host_take_next(sim, core);
    core->on = NULL;
    t->host.ran_at = sim_now(sim);
    sim_core_show(sim, t, SIM_READY);
    if (sim_host_push(sim, core, t))
        sim_host_run_on(sim, core, next, 0);
}

/* ---- the tick ---- */

bool sim_host_slice_is_over(const struct sim *sim, const struct sim_host_core *core) {
    const struct sim_thread *t = core->on;
    if (sim->host->fibers)
        return sim_now(sim) >= t->host.picked_at + sim->host->model.slice_ns;
    return t->host.v >= t->host.deadline;
}

static __attribute__((noinline)) void tick(struct sim *sim, struct sim_host_core *core) {
    bool regular = !core->resched, preempts = core->preempts;
    core->resched = core->preempts = false;
    if (regular && !sim->host->fibers) {
        struct sim_host_core *other = sim_host_help_idle(sim, core);
        if (other != NULL)
            sim_host_run_on(sim, other, sim_host_take_at(sim, other, 0), sim_host_late(sim, other, false));
        if ((other = sim_host_balance(sim, core)) != NULL)
            sim_host_queue_changed(sim, other);
    }
    if (core->n_ready > 0 && preempts) {
        preempt_for_woken(sim, core);
        return;
    }
    if (core->n_ready == 0 || !sim_host_slice_is_over(sim, core)) {
        sim_host_arm(sim, core);
        return;
    }
    core->on->host.deadline = core->on->host.v + (int64_t)sim->host->model.slice_ns;
    sim_host_preempt(sim, core);
}

uint64_t sim_host_wake_to_search(struct sim *sim, struct sim_host_core *idle) {
    uint64_t ns = sim_host_wake_ns(sim, idle, true);
    idle->woken = true;
    sim_host_search_at(sim, idle, sim_now(sim) + sim_host_late(sim, idle, true) + 1);
    return ns;
}

/* The carrier has taken several fibers: there is enough for another one, which it wakes if none searches. */
static uint64_t pass_wake_up_on(struct sim *sim, const struct sim_host_core *core) {
    struct sim_host_core *idle = core->n_ready > 1 ? sim_host_find_idle(sim, core->number) : NULL;
    if (idle == core) /* all others run */
        idle = NULL;
    return idle != NULL && !sim_host_is_searching(sim, idle) ? sim_host_wake_to_search(sim, idle) : 0;
}

/* A carrier without a fiber looks for fibers. */
void sim_host_search_event(struct sim *sim, const struct sim_event *event) {
    struct sim_host_core *core = &sim->host->cores[event->index];
    if (core->generation != event->generation)
        return;
    core->armed = false;
    if (sim_host_steal(sim, core)) {
        core->n_vain = 0;
        uint64_t passes_on_ns = pass_wake_up_on(sim, core);
        sim_host_run_on(sim, core, sim_host_take_at(sim, core, 0), STEAL_NS + passes_on_ns);
        return;
    }
    if (core->woken) {
        core->n_vain += core->n_vain < UINT8_MAX;
        core->search_from = sim_now(sim);
    }
    core->woken = false;
    sim_host_search_on(sim, core);
}

/*
 * Threads that wait at spin locks keep their cores, so events go on for ever although no thread can go on. Is that so?
 * All others sleep, and not for a time, and no spin lock that is waited for is free.
 */
static __attribute__((noinline)) bool can_none_go_on(const struct sim *sim) {
    for (uint32_t i = 0; i < sim->n_apps; i++) {
        const struct sim_app *app = &sim->apps[i];
        if (app->n_unborn > 0)
            return false;
        for (uint32_t k = 0; app->n_alive > 0 && k < app->n_threads; k++) {
            const struct sim_thread *t = app->threads[k];
            if (t == NULL)
                continue;
            bool sleeps = t->place == SIM_ASLEEP && t->why != SIM_WHY_TIME;
            if (!sleeps && !(t->spins && t->object->owner != NULL))
                return false;
        }
    }
    return true;
}

static __attribute__((noinline)) void event_of_spinning(struct sim *sim, struct sim_thread *t) {
    t->then(sim, t);
    if (++sim->host->n_spins % SPINS_CHECK == 0 && can_none_go_on(sim))
        sim->none_goes_on(sim);
}

static __attribute__((noinline)) void event_of_busy(struct sim *sim, struct sim_host_core *core) {
    bool spins = core->on->spins;
    if (core->n_ready > 0 && (core->resched || sim_now(sim) >= core->tick_at))
        tick(sim, core);
    else
        sim_host_arm(sim, core);
    if (spins && ++sim->host->n_spins % SPINS_CHECK == 0 && can_none_go_on(sim))
        sim->none_goes_on(sim);
}

static inline __attribute__((always_inline)) void own_event(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on;
    core->armed = false;
    if (__builtin_expect(t->left != sim_now(sim) - core->from, 0)) { /* also if it begins later */
        sim_host_count(sim, core);
    } else {
        sim_host_ran(core, t, t->left);
        t->left = 0;
    }
    if (__builtin_expect(t->left != 0, 0))
        event_of_busy(sim, core);
    else if (__builtin_expect(t->spins, 0))
        event_of_spinning(sim, t);
    else
        t->then(sim, t);
}

void sim_host_own_event(struct sim *sim, uint32_t core) {
    own_event(sim, &sim->host->cores[core]);
}

void sim_host_event(struct sim *sim, const struct sim_event *event) {
    struct sim_host_core *core = &sim->host->cores[event->index];
    if (core->generation == event->generation)
        own_event(sim, core);
}

/* ---- running ---- */

static __attribute__((noinline)) void run_unusual(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on;
    uint64_t left = t->left;
    sim_host_count(sim,
                   core); /* what it has run without an event: nothing, but for a wait that was over before it began */
    t->left = left;
    if (core->from < sim_now(sim))
        core->from = sim_now(sim);
    sim_host_arm(sim, core);
}

/* Other threads want the core. */
static __attribute__((noinline)) void run_wanted(struct sim *sim, struct sim_host_core *core, uint64_t at) {
    if (sim_host_has(sim, SIM_HOST_SLICES)) {
        uint64_t look = next_look(sim, core);
        at = look < at ? look : at;
    }
    arm_at(sim, core, at);
}

/* Nearly always the core's event has just come, and no other thread wants the core. */
void sim_host_run(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    uint64_t left = ns + t->host.owed_ns, now = sim_now(sim), from = core->from;
    t->then = then;
    t->left = left;
    t->host.owed_ns = 0;
    if (__builtin_expect(from < now || left >= SIM_HOST_ENDLESS || core->armed, 0))
        run_unusual(sim, core);
    else if (__builtin_expect(core->n_ready > 0, 0))
        run_wanted(sim, core, from + left);
    else
        arm_at(sim, core, from + left);
}
