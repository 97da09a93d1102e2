/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cores. A single thread is on a core at a time: it runs, or waits awake. The core's other ready threads are in its run
 * queue.
 *
 * A waiting thread keeps its core while no other thread wants the core. If another thread wants it, the waiting thread
 * gives it away after patience_ns: a driver would poll as long. A core needs switch_ns to change to another thread than
 * it had last. With `migrate`, an idle core takes a ready thread from the longest run queue, and a thread that becomes
 * ready goes to an idle core if its own is busy.
 *
 * A core has at most one valid event. It comes when the core's thread has done its work, or when the policy wants to
 * look at the thread again. Older events are stale, by the core's generation.
 */
#include "core.h"

static struct sim_core *core_of(struct sim *sim, const struct sim_thread *t) {
    return &sim->cores[t->core];
}

/* ---- time lines ---- */

void sim_core_report(struct sim *sim, const struct sim_thread *t, uint64_t at) {
    struct sim_interval interval = {t->app->number, t->number, t->core, (enum sim_state)t->shown, t->shown_from, at};
    sim->config.on_interval(sim->config.context, &interval);
}

/* The thread works from core->from on. A switch that is under way belongs to its wait for the core. */
static void show_on_core(struct sim *sim, const struct sim_core *core) {
    sim_core_show_at(sim, core->on, core->on->called ? SIM_CALL : SIM_WORK, core->from);
}

/* ---- events of a core ---- */

static void disarm(struct sim_core *core) {
    if (core->armed) {
        core->generation++;
        core->armed = false;
    }
}

/*
 * Functions that are not inlined: what comes after them in the file is usually done without them, and keeps nothing on
 * the host's stack.
 */
#define UNUSUAL static __attribute__((noinline))

UNUSUAL void arm_running_beside(struct sim *sim, struct sim_core *core) {
    uint64_t end = core->from + core->on->left, until = csa_until(&core->sched, sim_now(sim));
    until = until > core->from ? until : core->from; /* a switch that has begun is finished */
    sim_core_arm(sim, core, until < end ? until : end);
}

/* The thread on the core goes on at core->from, with work left. */
static inline void arm_running(struct sim *sim, struct sim_core *core) {
    if (__builtin_expect(core->sched.n_ready > 0, 0))
        arm_running_beside(sim, core);
    else
        sim_core_arm(sim, core, core->from + core->on->left);
}

/* If all ready threads spin too, it does not matter which of them has the core, until one of them gets its lock. */
static void arm_waiting(struct sim *sim, struct sim_core *core) {
    if (core->on->spins && core->n_spinning == core->sched.n_ready)
        return;
    uint64_t now = sim_now(sim), out = core->on->wait_from + sim->config.costs.patience_ns;
    if (core->on->spins)
        out = UINT64_MAX;
    uint64_t until = csa_until(&core->sched, now);
    out = until < out ? until : out;
    if (out != UINT64_MAX)
        sim_core_arm(sim, core, out > now ? out : now);
}

static void dispatch(struct sim *sim, struct sim_core *core);

/* Subtract what the core's thread has worked so far from what it has left to do. */
static inline void account(struct sim *sim, struct sim_core *core) {
    uint64_t now = sim_now(sim);
    if (now > core->from) {
        core->on->left -= now - core->from;
        core->from = now;
    }
}

/* ---- putting threads on cores ---- */

static void put_on(struct sim *sim, struct sim_core *core, struct sim_thread *t) {
    uint64_t now = sim_now(sim);
    sim_core_set_idle(sim, core, false);
    core->on = t;
    core->from = now;
    t->place = SIM_ON_CORE;
    if (core->last != t) {
        if (core->last != NULL) {
            core->from += sim->config.costs.switch_ns;
            sim->summary.n_switches++;
        }
        core->last = t;
    }
    if (t->spins) { /* it has the core again, and not the lock */
        t->place = SIM_AWAKE;
        core->n_spinning--;
        sim_core_show(sim, t, SIM_WAIT);
        if (core->sched.n_ready > 0)
            arm_waiting(sim, core);
        return;
    }
    show_on_core(sim, core);
    arm_running(sim, core);
}

static void dispatch(struct sim *sim, struct sim_core *core) {
    if (core->sched.n_ready == 0 && sim_core_steal(sim, core) == NULL) {
        core->on = NULL;
        sim_core_set_idle(sim, core, true);
        return;
    }
    struct sim_thread *t = (struct sim_thread *)(void *)csa_pick(&core->sched, sim_now(sim));
    sim->n_ready--;
    put_on(sim, core, t);
}

/* The thread that waits awake gives its core to another thread. */
static void send_to_sleep(struct sim *sim, struct sim_core *core) {
    struct sim_thread *t = core->on;
    disarm(core);
    if (t->spins) { /* with the lock it would run, so it stays ready */
        csa_yield(&core->sched, sim_now(sim));
        t->place = SIM_IN_QUEUE;
        core->n_spinning++;
        sim->n_ready++;
        sim_core_show(sim, t, SIM_READY);
    } else {
        csa_stop(&core->sched, sim_now(sim));
        t->place = SIM_ASLEEP;
    }
    core->on = NULL;
    dispatch(sim, core);
}

static void make_ready(struct sim *sim, struct sim_thread *t) {
    struct sim_core *core = core_of(sim, t), *idle;
    bool busy = core->on != NULL && (core->on->place != SIM_AWAKE || core->on->spins || core->sched.n_ready > 0 ||
                                     sim_core_idle_from(sim, core) > sim_now(sim));
    if (busy && sim->config.migrate && (idle = sim_core_find_idle(sim)) != NULL) {
        core = idle;
        t->core = (uint16_t)core->number;
        sim->summary.n_migrations++;
    }
    sim_core_show(sim, t, SIM_READY);
    t->place = SIM_IN_QUEUE;
    sim->n_ready++;
    csa_add(&core->sched, &t->sched, sim_now(sim));
    if (core->on == NULL) {
        dispatch(sim, core);
    } else if (core->on->place == SIM_AWAKE) {
        if (!core->on->spins && sim_core_idle_from(sim, core) <= sim_now(sim))
            send_to_sleep(sim, core);
        else
            arm_waiting(sim, core);
    } else {
        account(sim, core); /* the core's event may have to come earlier */
        arm_running(sim, core);
    }
}

/* ---- for the other parts ---- */

void sim_core_run(struct sim *sim, struct sim_thread *t, uint64_t cycles, sim_then *then) {
    if (__builtin_expect(sim->scheduler != NULL, 0)) {
        sim->scheduler->run(sim, t, cycles, then);
        return;
    }
    struct sim_core *core = core_of(sim, t);
    t->then = then;
    t->left = cycles;
    core->from = sim_now(sim);
    arm_running(sim, core);
}

void sim_core_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then) {
    if (__builtin_expect(sim->scheduler != NULL, 0)) {
        sim->scheduler->wait(sim, t, why, then);
        return;
    }
    if (t->wake_pending) {
        t->wake_pending = false;
        sim_core_run(sim, t, 0, then);
        return;
    }
    struct sim_core *core = core_of(sim, t);
    t->then = then;
    t->why = (uint8_t)why;
    t->left = 0;
    t->wait_from = sim_now(sim);
    t->place = SIM_AWAKE;
    sim_core_show(sim, t, SIM_WAIT);
    if (!t->spins)
        sim_core_set_idle(sim, core, true);
    if (core->sched.n_ready > 0)
        arm_waiting(sim, core);
    else if (sim->n_ready > 0 && sim->config.migrate && !t->spins)
        /* from that time on the core can take a thread from another queue */
        sim_core_arm(sim, core, sim_core_idle_from(sim, core));
}

/* It goes on with no work, and other threads are ready. */
UNUSUAL void go_on_beside(struct sim *sim, struct sim_core *core) {
    struct sim_thread *t = core->on;
    if (!csa_due(&core->sched, sim_now(sim)))
        t->then(sim, t);
    else
        arm_running_beside(sim, core);
}

/* The thread has its core. */
static inline void wake_here(struct sim *sim, struct sim_thread *t, uint64_t cycles) {
    struct sim_core *core = core_of(sim, t);
    t->spins = false;
    t->left = cycles;
    disarm(core);
    sim_core_set_idle(sim, core, false);
    t->place = SIM_ON_CORE;
    core->from = sim_now(sim);
    show_on_core(sim, core);
    if (cycles != 0)
        arm_running(sim, core);
    else if (__builtin_expect(core->sched.n_ready == 0, 1))
        t->then(sim, t);
    else
        go_on_beside(sim, core);
}

/* Another machine's thread, or one that does not wait on its core. */
UNUSUAL void wake_elsewhere(struct sim *sim, struct sim_thread *t, uint64_t cycles) {
    if (sim->scheduler != NULL) {
        sim->scheduler->wake(sim, t, cycles);
        return;
    }
    if (!t->spins && (t->place == SIM_ON_CORE || t->place == SIM_IN_QUEUE)) {
        t->wake_pending = true;
        return;
    }
    struct sim_core *core = core_of(sim, t);
    bool spun = t->spins;
    t->spins = false;
    t->left = cycles;
    if (t->place == SIM_IN_QUEUE) { /* it spins, and has no core at the moment */
        core->n_spinning -= spun;
        if (core->on != NULL && core->on->place == SIM_AWAKE)
            arm_waiting(sim, core);
        return;
    }
    if (t->place == SIM_ASLEEP)
        make_ready(sim, t);
    else
        wake_here(sim, t, cycles);
}

void sim_core_wake(struct sim *sim, struct sim_thread *t, uint64_t cycles) {
    if (__builtin_expect(sim->scheduler == NULL && t->place == SIM_AWAKE, 1))
        wake_here(sim, t, cycles);
    else
        wake_elsewhere(sim, t, cycles);
}

void sim_core_wake_at(struct sim *sim, struct sim_thread *t, uint64_t at) {
    sim_events_put_words(&sim->events, at, SIM_EV_TIMER, t->id, ++t->generation, 0, t);
}

void sim_core_sleep(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    sim_core_wake_at(sim, t, sim_now(sim) + ns);
    sim_core_wait(sim, t, SIM_WHY_TIME, then);
    if (sim->scheduler == NULL && t->place == SIM_AWAKE)
        send_to_sleep(sim, core_of(sim, t));
    if (t->place == SIM_ASLEEP)
        sim_core_show(sim, t, SIM_OUTSIDE);
}

void sim_core_timer_event(struct sim *sim, const struct sim_event *event) {
    struct sim_thread *t = sim->by_id[event->index];
    if (t != NULL && t->generation == event->generation)
        sim_core_wake(sim, t, 0);
}

void sim_core_add(struct sim *sim, struct sim_thread *t, sim_then *then) {
    if (__builtin_expect(sim->scheduler != NULL, 0)) {
        sim->scheduler->add(sim, t, then);
        return;
    }
    t->core = (uint16_t)(sim->n_placed++ % sim->n_cores);
    t->then = then;
    t->shown = SIM_READY;
    t->shown_from = sim_now(sim);
    make_ready(sim, t);
}

void sim_core_leave(struct sim *sim, struct sim_thread *t) {
    if (__builtin_expect(sim->scheduler != NULL, 0)) {
        sim->scheduler->leave(sim, t);
        return;
    }
    struct sim_core *core = core_of(sim, t);
    disarm(core);
    csa_stop(&core->sched, sim_now(sim));
    core->on = core->last = NULL; /* the memory may become another thread's */
    t->place = SIM_ENDED;
    dispatch(sim, core);
}

void sim_core_hold(struct sim *sim, struct sim_thread *t) {
    if (__builtin_expect(sim->scheduler == NULL, 1))
        csa_hold(&core_of(sim, t)->sched, &t->sched, sim_now(sim));
}

void sim_core_unhold(struct sim *sim, struct sim_thread *t) {
    if (__builtin_expect(sim->scheduler == NULL, 1))
        csa_unhold(&core_of(sim, t)->sched, &t->sched, sim_now(sim));
}

/* The core's thread has waited for long, or has work left, or other threads are ready. */
UNUSUAL void unusual_event(struct sim *sim, struct sim_core *core) {
    struct sim_thread *t = core->on;
    if (t->place == SIM_AWAKE) {
        if (core->sched.n_ready > 0 || (!t->spins && sim_core_steal(sim, core) != NULL))
            send_to_sleep(sim, core);
        return;
    }
    if (t->left == 0 && (core->sched.n_ready == 0 || !csa_due(&core->sched, sim_now(sim)))) {
        t->then(sim, t);
        return;
    }
    if (core->sched.n_ready > 0 && csa_due(&core->sched, sim_now(sim))) {
        csa_yield(&core->sched, sim_now(sim));
        sim_core_show(sim, t, SIM_READY);
        t->place = SIM_IN_QUEUE;
        sim->n_ready++;
        core->on = NULL;
        dispatch(sim, core);
        return;
    }
    arm_running(sim, core);
}

void sim_core_event(struct sim *sim, const struct sim_event *event) {
    struct sim_core *core = &sim->cores[event->index];
    struct sim_thread *t = core->on;
    if (core->generation != event->generation || t == NULL)
        return;
    core->armed = false;
    if (t->place != SIM_AWAKE) {
        account(sim, core);
        if (__builtin_expect(t->left == 0 && core->sched.n_ready == 0, 1)) {
            t->then(sim, t);
            return;
        }
    }
    unusual_event(sim, core);
}
