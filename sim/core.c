/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cores. One thread is on a core at a time, running or waiting awake; the others that are ready are in its run queue.
 *
 * A thread that waits keeps its core until somebody else wants it, and then until it has waited for `patience`, as a
 * driver would that polls before it gives the core away. A core that changes to another thread than the one it had last
 * needs switch_ns for that. With `migrate`, an idle core takes a ready thread from the longest run queue, and a thread
 * that becomes ready goes to an idle core if its own is busy.
 *
 * A core has at most one event that counts: when its thread has done its work or when the policy wants to look at it
 * again. Its generation makes those before it stale.
 */
#include "model.h"

static struct sim_core *core_of(struct sim *sim, const struct sim_thread *t) {
    return &sim->cores[t->core];
}

/* ---- what is seen of it ---- */

void sim_tell(struct sim *sim, const struct sim_thread *t, uint64_t at) {
    struct sim_interval interval = {t->app->number, t->number, t->core, (enum sim_state)t->shown, t->shown_from, at};
    sim->config.on_interval(sim->config.context, &interval);
}

/* From core->from on: a switch that is under way belongs to the wait for the core. */
static void show_on_core(struct sim *sim, const struct sim_core *core) {
    sim_show_at(sim, core->on, core->on->called ? SIM_CALL : SIM_WORK, core->from);
}

/* ---- idle cores ---- */

static void set_idle(struct sim *sim, const struct sim_core *core, bool idle) {
    uint32_t n = core->number;
    uint64_t bit = UINT64_C(1) << n % 64;
    sim->idle[n / 64] = idle ? sim->idle[n / 64] | bit : sim->idle[n / 64] & ~bit;
}

/* ---- events of a core ---- */

static void arm(struct sim *sim, struct sim_core *core, uint64_t at) {
    core->armed = true;
    sim_events_put_words(&sim->events, at, SIM_EV_CORE, core->number, ++core->generation, 0, core->on);
}

static void disarm(struct sim_core *core) {
    if (core->armed) {
        core->generation++;
        core->armed = false;
    }
}

/* The thread on the core goes on at core->from, with work left. */
static void arm_running(struct sim *sim, struct sim_core *core) {
    uint64_t end = core->from + core->on->left;
    if (__builtin_expect(core->sched.n_ready > 0, 0)) {
        uint64_t until = csa_until(&core->sched, sim_now(sim));
        until = until > core->from ? until : core->from; /* a switch that has begun is finished */
        end = until < end ? until : end;
    }
    arm(sim, core, end);
}

/* If all that are ready spin, too, it does not matter who has the core; until one of them is given its lock. */
static void arm_waiting(struct sim *sim, struct sim_core *core) {
    if (core->on->spins && core->n_spinning == core->sched.n_ready)
        return;
    uint64_t now = sim_now(sim), out = core->on->wait_from + sim->config.costs.patience_ns;
    if (core->on->spins)
        out = UINT64_MAX;
    uint64_t until = csa_until(&core->sched, now);
    out = until < out ? until : out;
    if (out != UINT64_MAX)
        arm(sim, core, out > now ? out : now);
}

static void dispatch(struct sim *sim, struct sim_core *core);

/* Work that has been done so far. */
static void account(struct sim *sim, struct sim_core *core) {
    uint64_t now = sim_now(sim);
    if (now > core->from) {
        core->on->left -= now - core->from;
        core->from = now;
    }
}

/* ---- putting threads on cores ---- */

static void put_on(struct sim *sim, struct sim_core *core, struct sim_thread *t) {
    uint64_t now = sim_now(sim);
    set_idle(sim, core, false);
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
    if (t->spins) { /* its turn on the core has come again, not its turn at the lock */
        t->place = SIM_AWAKE;
        core->n_spinning--;
        sim_show(sim, t, SIM_WAIT);
        if (core->sched.n_ready > 0)
            arm_waiting(sim, core);
        return;
    }
    show_on_core(sim, core);
    arm_running(sim, core);
}

/* The longest run queue's first thread, for a core that has none. */
static struct sim_thread *steal(struct sim *sim, struct sim_core *core) {
    struct sim_core *from = NULL;
    if (!sim->config.migrate || sim->n_ready == 0)
        return NULL;
    for (uint32_t i = 0; i < sim->n_cores; i++)
        if (sim->cores[i].sched.n_ready > (from != NULL ? from->sched.n_ready : 0))
            from = &sim->cores[i];
    if (from == NULL)
        return NULL;
    struct csa_thread *t = from->sched.queue[1].first != NULL ? from->sched.queue[1].first : from->sched.queue[0].first;
    csa_remove(&from->sched, t, sim_now(sim));
    csa_add(&core->sched, t, sim_now(sim));
    struct sim_thread *thread = (struct sim_thread *)(void *)t;
    thread->core = (uint16_t)core->number;
    from->n_spinning -= thread->spins;
    core->n_spinning += thread->spins;
    sim->summary.n_migrations++;
    return thread;
}

static void dispatch(struct sim *sim, struct sim_core *core) {
    if (core->sched.n_ready == 0 && steal(sim, core) == NULL) {
        core->on = NULL;
        set_idle(sim, core, true);
        return;
    }
    struct sim_thread *t = (struct sim_thread *)(void *)csa_pick(&core->sched, sim_now(sim));
    sim->n_ready--;
    put_on(sim, core, t);
}

/* The thread that waits awake gives its core away. */
static void send_to_sleep(struct sim *sim, struct sim_core *core) {
    struct sim_thread *t = core->on;
    disarm(core);
    if (t->spins) { /* it would run if it could */
        csa_yield(&core->sched, sim_now(sim));
        t->place = SIM_IN_QUEUE;
        core->n_spinning++;
        sim->n_ready++;
        sim_show(sim, t, SIM_READY);
    } else {
        csa_stop(&core->sched, sim_now(sim));
        t->place = SIM_ASLEEP;
    }
    core->on = NULL;
    dispatch(sim, core);
}

/* When its waiting thread, if it has one, will have waited long enough. */
static uint64_t idle_from(const struct sim *sim, const struct sim_core *core) {
    return core->on == NULL ? 0 : core->on->wait_from + sim->config.costs.patience_ns;
}

/* An idle core, or one whose thread has waited long enough; NULL if there is none, and the first of those that may soon
 * be will look for work. */
static struct sim_core *find_idle(struct sim *sim) {
    struct sim_core *soon = NULL;
    for (uint32_t word = 0; word < (sim->n_cores + 63) / 64; word++)
        for (uint64_t bits = sim->idle[word]; bits != 0; bits &= bits - 1) {
            struct sim_core *core = &sim->cores[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (idle_from(sim, core) <= sim_now(sim))
                return core;
            if (!core->armed && (soon == NULL || idle_from(sim, core) < idle_from(sim, soon)))
                soon = core;
        }
    if (soon != NULL)
        arm(sim, soon, idle_from(sim, soon));
    return NULL;
}

static void make_ready(struct sim *sim, struct sim_thread *t) {
    struct sim_core *core = core_of(sim, t), *idle;
    bool busy = core->on != NULL && (core->on->place != SIM_AWAKE || core->on->spins || core->sched.n_ready > 0 ||
                                     idle_from(sim, core) > sim_now(sim));
    if (busy && sim->config.migrate && (idle = find_idle(sim)) != NULL) {
        core = idle;
        t->core = (uint16_t)core->number;
        sim->summary.n_migrations++;
    }
    sim_show(sim, t, SIM_READY);
    t->place = SIM_IN_QUEUE;
    sim->n_ready++;
    csa_add(&core->sched, &t->sched, sim_now(sim));
    if (core->on == NULL) {
        dispatch(sim, core);
    } else if (core->on->place == SIM_AWAKE) {
        if (!core->on->spins && idle_from(sim, core) <= sim_now(sim))
            send_to_sleep(sim, core);
        else
            arm_waiting(sim, core);
    } else {
        account(sim, core); /* its event may have to come earlier */
        arm_running(sim, core);
    }
}

/* ---- for the others ---- */

void sim_run_for(struct sim *sim, struct sim_thread *t, uint64_t cycles, sim_then *then) {
    struct sim_core *core = core_of(sim, t);
    t->then = then;
    t->left = cycles;
    core->from = sim_now(sim);
    arm_running(sim, core);
}

void sim_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then) {
    if (t->token) {
        t->token = false;
        sim_run_for(sim, t, 0, then);
        return;
    }
    struct sim_core *core = core_of(sim, t);
    t->then = then;
    t->why = (uint8_t)why;
    t->left = 0;
    t->wait_from = sim_now(sim);
    t->place = SIM_AWAKE;
    sim_show(sim, t, SIM_WAIT);
    if (!t->spins)
        set_idle(sim, core, true);
    if (core->sched.n_ready > 0)
        arm_waiting(sim, core);
    else if (sim->n_ready > 0 && sim->config.migrate && !t->spins)
        arm(sim, core, idle_from(sim, core)); /* for those that wait elsewhere */
}

void sim_wake(struct sim *sim, struct sim_thread *t, uint64_t cycles) {
    if (!t->spins && (t->place == SIM_ON_CORE || t->place == SIM_IN_QUEUE)) {
        t->token = true; /* it has not come to wait yet */
        return;
    }
    struct sim_core *core = core_of(sim, t);
    bool spun = t->spins;
    t->spins = false;
    t->left = cycles;
    if (t->place == SIM_IN_QUEUE) { /* it spun, but not just now */
        core->n_spinning -= spun;
        if (core->on != NULL && core->on->place == SIM_AWAKE)
            arm_waiting(sim, core);
        return;
    }
    if (t->place == SIM_ASLEEP) {
        make_ready(sim, t);
        return;
    }
    disarm(core);
    set_idle(sim, core, false);
    t->place = SIM_ON_CORE;
    core->from = sim_now(sim);
    show_on_core(sim, core);
    if (cycles == 0 && (core->sched.n_ready == 0 || !csa_due(&core->sched, sim_now(sim))))
        t->then(sim, t);
    else
        arm_running(sim, core);
}

void sim_wake_at(struct sim *sim, struct sim_thread *t, uint64_t at) {
    sim_events_put_words(&sim->events, at, SIM_EV_TIMER, t->id, ++t->generation, 0, t);
}

void sim_timer_event(struct sim *sim, const struct sim_event *event) {
    struct sim_thread *t = sim->by_id[event->index];
    if (t != NULL && t->generation == event->generation)
        sim_wake(sim, t, 0);
}

void sim_born(struct sim *sim, struct sim_thread *t, sim_then *then) {
    t->core = (uint16_t)(sim->n_placed++ % sim->n_cores);
    t->then = then;
    t->shown = SIM_READY;
    t->shown_from = sim_now(sim);
    make_ready(sim, t);
}

void sim_leave(struct sim *sim, struct sim_thread *t) {
    struct sim_core *core = core_of(sim, t);
    disarm(core);
    csa_stop(&core->sched, sim_now(sim));
    core->on = core->last = NULL; /* its memory may become another thread's */
    t->place = SIM_ENDED;
    dispatch(sim, core);
}

void sim_cores_clear(struct sim *sim) {
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        struct sim_core *core = &sim->cores[i];
        struct csa_stats stats = core->sched.stats;
        struct csa_config config = core->sched.config;
        disarm(core);
        csa_init(&core->sched, &config);
        core->sched.stats = stats;
        core->on = core->last = NULL;
        core->n_spinning = 0;
        set_idle(sim, core, true);
    }
    sim->n_ready = 0;
}

void sim_hold(struct sim *sim, struct sim_thread *t) {
    csa_hold(&core_of(sim, t)->sched, &t->sched, sim_now(sim));
}

void sim_unhold(struct sim *sim, struct sim_thread *t) {
    csa_unhold(&core_of(sim, t)->sched, &t->sched, sim_now(sim));
}

void sim_core_event(struct sim *sim, const struct sim_event *event) {
    struct sim_core *core = &sim->cores[event->index];
    struct sim_thread *t = core->on;
    if (core->generation != event->generation || t == NULL)
        return;
    core->armed = false;
    if (t->place == SIM_AWAKE) {
        if (core->sched.n_ready > 0 || (!t->spins && steal(sim, core) != NULL))
            send_to_sleep(sim, core);
        return;
    }
    account(sim, core);
    if (t->left == 0 && (core->sched.n_ready == 0 || !csa_due(&core->sched, sim_now(sim)))) {
        t->then(sim, t);
        return;
    }
    if (core->sched.n_ready > 0 && csa_due(&core->sched, sim_now(sim))) {
        csa_yield(&core->sched, sim_now(sim));
        sim_show(sim, t, SIM_READY);
        t->place = SIM_IN_QUEUE;
        sim->n_ready++;
        core->on = NULL;
        dispatch(sim, core);
        return;
    }
    arm_running(sim, core);
}
