/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine's cores. Two schedulers share the code: Linux's, and that of the library's carriers.
 *
 * Linux (EEVDF, as of 6.12 to 6.18, threads of one weight):
 *  - Each thread has a virtual time, which runs while it does, and a deadline: the virtual time at which it will have
 *    run for a slice. A thread is eligible if it has not run more than the mean of its core's threads. The eligible
 *    thread with the first deadline runs next.
 *  - The running thread keeps its core until it waits, until its deadline has passed and the kernel looks, or until an
 *    eligible thread is woken there. The kernel looks at a tick, or when another thread comes into the run queue; then
 *    the thread gets a new deadline, a slice later. A thread that wakes others is preempted when it has woken all.
 *  - A thread that waits keeps its lag, the distance of its virtual time to the mean of its core's. So a thread that
 *    has run less than others comes before them when it is woken, by a slice at most. A debt is forgiven as it sleeps,
 *    and at once where no other thread is ready: the running thread's wake-ups then switch to what it has woken.
 *  - A woken thread goes to its last core if that is idle, else to another idle core; else to its last core again, or
 *    to its waker's if two threads fewer are there.
 *  - A core that goes idle takes a thread from the longest run queue, but none with a warm cache there. At the
 *    ticks of that other core it takes such a thread, too. Busy cores compare their queues now and then.
 *  - A yield gives up what is left of an eligible thread's slice.
 *
 * Carriers (--wait switch): a fiber that is woken goes to the end of its waker's run queue; there is no virtual time. A
 * carrier that goes idle searches for a while, and takes half of the queue of a carrier that makes no progress. A
 * carrier that sleeps is woken for a fiber that was woken or has yielded, unless that was in vain several times in a
 * row, and by a carrier that has taken several fibers. Then it searches again. A fiber that computes for a slice while
 * others wait is preempted: then the library lets the kernel run them.
 *
 * A thread's function may wake other threads while it runs, at a time when its core has no event. It always ends by
 * giving the core its next event, so a preemption that is due then comes as an event of the same time.
 */
#include "host_sched.h"

#include "host_place.h"
#include "host_search.h"

enum {
    VAIN_MANY = 4,    /* wake-ups of a carrier in vain, after which it is woken no more; */
    VAIN_TRY = 64,    /* but for one wake-up in so many */
    STEAL_NS = 300,   /* what taking fibers from another carrier costs */
    SPINS_CHECK = 16, /* one in so many events of a thread that spins */
};
#define ENDLESS (UINT64_MAX / 8) /* what is left of a spin without an end, however long it has lasted */

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
static __attribute__((noinline)) uint64_t next_look(struct sim *sim, struct sim_host_core *core) {
    uint64_t now = sim_now(sim), tick = sim->host->model.tick_ns;
    core->tick_at = now - now % tick + tick;
    if (core->resched && !is_waking(core->on))
        core->tick_at = core->preempt_at > now ? core->preempt_at : now;
    return core->tick_at > core->from ? core->tick_at : core->from;
}

static void arm(struct sim *sim, struct sim_host_core *core) {
    const struct sim_thread *t = core->on;
    uint64_t at = t->left < ENDLESS ? core->from + t->left : UINT64_MAX;
    if (__builtin_expect(core->n_ready > 0, 0) && (sim_host_has(sim, SIM_HOST_SLICES) || t->left >= ENDLESS)) {
        uint64_t look = next_look(sim, core);
        at = look < at ? look : at;
    }
    if (__builtin_expect(core->armed, 0))
        cancel_event(sim, core);
    arm_at(sim, core, at);
}

/* A thread has come into the run queue. A core without an event runs its thread's function, which gives it the next. */
static void queue_changed(struct sim *sim, struct sim_host_core *core) {
    if (core->armed || core->on->left >= ENDLESS)
        arm(sim, core);
}

/* ---- threads on cores ---- */

/* The thread, which was ready, begins to run `late` ns from now, and later if the core had another thread before. */
static void run_on(struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t late) {
    const struct sim_host_model *model = &sim->host->model;
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
    arm(sim, core);
}

/* How long the idle core needs until a woken thread runs there. */
static uint64_t late(const struct sim *sim, const struct sim_host_core *core) {
    if (!sim_host_has(sim, SIM_HOST_LATENCY) || sim_host_is_server(sim, core->number)) /* a server does not sleep */
        return 0;
    return sim_host_is_deep(sim, core) ? sim->host->model.late_deep_ns : sim->host->model.late_idle_ns;
}

/* The core has no thread: it takes the next one, or goes idle. */
static void next_thread(struct sim *sim, struct sim_host_core *core) {
    core->on = NULL;
    if (core->n_ready > 0 || (!sim->host->fibers && sim_host_steal(sim, core))) {
        run_on(sim, core, sim_host_take_next(sim, core), 0);
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

/* The running thread goes back to the run queue. */
static void preempt(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on;
    t->host.ran_at = sim_now(sim);
    sim_core_show(sim, t, SIM_READY);
    core->on = NULL;
    if (sim_host_push(sim, core, t))
        next_thread(sim, core);
}

/* A thread was woken and takes the core. The running thread keeps its deadline. */
static void preempt_for_woken(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on, *next;
    core->on = NULL;
    next = sim_host_take_next(sim, core);
    t->host.ran_at = sim_now(sim);
    sim_core_show(sim, t, SIM_READY);
    if (sim_host_push(sim, core, t))
        run_on(sim, core, next, 0);
}

/* ---- the tick ---- */

static bool slice_is_over(const struct sim *sim, const struct sim_host_core *core) {
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
            run_on(sim, other, sim_host_take_at(sim, other, 0), late(sim, other));
        if ((other = sim_host_balance(sim, core)) != NULL)
            queue_changed(sim, other);
    }
    if (core->n_ready > 0 && preempts) {
        preempt_for_woken(sim, core);
        return;
    }
    if (core->n_ready == 0 || !slice_is_over(sim, core)) {
        arm(sim, core);
        return;
    }
    core->on->host.deadline = core->on->host.v + (int64_t)sim->host->model.slice_ns;
    preempt(sim, core);
}

/* The sleeping carrier is woken, and will look. The result is what that costs its waker. */
static uint64_t wake_to_search(struct sim *sim, struct sim_host_core *idle) {
    const struct sim_host_model *model = &sim->host->model;
    idle->woken = true;
    sim_host_search_at(sim, idle, sim_now(sim) + late(sim, idle) + 1);
    return sim_host_is_deep(sim, idle) ? model->wake_deep_ns : model->wake_idle_ns;
}

/* The carrier has taken several fibers: there is enough for another one, which it wakes if none searches. */
static uint64_t pass_wake_up_on(struct sim *sim, const struct sim_host_core *core) {
    struct sim_host_core *idle = core->n_ready > 1 ? sim_host_find_idle(sim, core->number) : NULL;
    if (idle == core) /* all others run */
        idle = NULL;
    return idle != NULL && !sim_host_is_searching(sim, idle) ? wake_to_search(sim, idle) : 0;
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
        run_on(sim, core, sim_host_take_at(sim, core, 0), STEAL_NS + passes_on_ns);
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
        arm(sim, core);
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

/* ---- running, waiting, waking ---- */

static __attribute__((noinline)) void run_unusual(struct sim *sim, struct sim_host_core *core) {
    struct sim_thread *t = core->on;
    uint64_t left = t->left;
    sim_host_count(sim,
                   core); /* what it has run without an event: nothing, but for a wait that was over before it began */
    t->left = left;
    if (core->from < sim_now(sim))
        core->from = sim_now(sim);
    arm(sim, core);
}

/* Nearly always the core's event has just come, and no other thread wants the core. */
void sim_host_run(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    uint64_t left = ns + t->host.owed_ns, now = sim_now(sim), from = core->from;
    t->then = then;
    t->left = left;
    t->host.owed_ns = 0;
    if (__builtin_expect(from < now || left >= ENDLESS || core->armed || core->n_ready > 0, 0))
        run_unusual(sim, core);
    else
        arm_at(sim, core, from + left);
}

/* Does the thread, just put into the core's run queue, preempt the thread that runs there? */
static bool preempts(const struct sim *sim, const struct sim_host_core *core, const struct sim_thread *t) {
    return t->host.woken && sim_host_has(sim, SIM_HOST_PREEMPT) && sim_host_is_eligible(core, t);
}

/* Put a ready thread into a core's run queue. If that is idle, the thread runs there `late_ns` from now. */
static void enqueue(struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t slice,
                    uint64_t late_ns) {
    sim_host_count(sim, core);
    sim_host_join(sim, core, t, slice);
    sim_core_show(sim, t, SIM_READY);
    if (core->on == NULL) {
        run_on(sim, core, t, late_ns);
        return;
    }
    if (!sim_host_push(sim, core, t))
        return;
    if (!sim->host->fibers) {
        if (!core->preempts && preempts(sim, core, t)) {
            core->preempts = true;
            core->preempt_at = sim_now(sim) + (t->host.interrupts ? sim->host->model.late_busy_ns : 0);
        }
        core->resched = core->resched || core->preempts || slice_is_over(sim, core);
    }
    if (core->on->host.idles && core->on->left > sim->host->model.yield_ns) {
        core->on->left = sim->host->model.yield_ns; /* its next yield gives the core away */
        arm(sim, core);
        return;
    }
    queue_changed(sim, core);
}

/* A sleeping carrier is woken for a new fiber; the waker pays for that before it goes on. */
static void wake_carrier(struct sim *sim, struct sim_thread *waker, const struct sim_host_core *busy) {
    struct sim_host_core *idle = sim->config.migrate ? sim_host_find_idle(sim, busy->number) : NULL;
    if (idle == NULL || sim_host_is_searching(sim, idle) ||
        (idle->n_vain >= VAIN_MANY && ++sim->host->n_unwoken % VAIN_TRY != 0))
        return;
    waker->host.owed_ns += wake_to_search(sim, idle);
}

/* Does the waker send an interrupt to the core, so that the thread can preempt another there? */
static bool interrupts(const struct sim *sim, const struct sim_thread *waker, const struct sim_host_core *core) {
    return waker != NULL && waker->core != core->number && core->on != NULL && !core->preempts &&
           sim_host_has(sim, SIM_HOST_PREEMPT) && sim_host_has(sim, SIM_HOST_LATENCY);
}

/* A woken thread comes to the core, with less of its debt, or none. */
static void enqueue_woken(struct sim *sim, struct sim_host_core *core, struct sim_thread *t,
                          const struct sim_thread *waker) {
    int64_t slept = (int64_t)(sim_now(sim) - t->host.slept_at);
    if (t->host.lag < 0)
        t->host.lag = core->n_ready > 0 && t->host.lag + slept < 0 ? t->host.lag + slept : 0;
    t->host.woken = true;
    t->host.interrupts = interrupts(sim, waker, core);
    /* A wait for the outside was recorded until the thread had its core again. */
    enqueue(sim, core, t, sim->host->model.slice_ns, t->shown == SIM_OUTSIDE ? 0 : late(sim, core));
    t->host.woken = false;
}

uint64_t sim_host_wake_cost(struct sim *sim, const struct sim_thread *waker, const struct sim_thread *t) {
    const struct sim_host_model *model = &sim->host->model;
    if (sim->host->fibers && !sim_host_cores_to_spare(sim, t))
        return model->fiber_wake_ns;
    const struct sim_host_core *core = sim_host_place_woken(sim, t, waker);
    if (core->on != NULL)
        return interrupts(sim, waker, core) ? model->wake_idle_ns : model->wake_busy_ns;
    return sim_host_is_deep(sim, core) ? model->wake_deep_ns : model->wake_idle_ns;
}

static void wake_from(struct sim *sim, struct sim_thread *waker, struct sim_thread *t, uint64_t ns) {
    struct sim_host_core *core;
    if (t->place == SIM_ON_CORE || t->place == SIM_IN_QUEUE) {
        t->wake_pending = true;
        return;
    }
    t->left = ns;
    if (!sim->host->fibers) {
        enqueue_woken(sim, sim_host_place_woken(sim, t, waker), t, waker);
        return;
    }
    if (sim_host_cores_to_spare(sim, t)) { /* it waits on its home thread, and the kernel wakes it */
        enqueue_woken(sim, sim_host_place_woken(sim, t, NULL), t, waker);
        return;
    }
    bool by_place = waker == NULL || (sim_host_delegates(sim) &&
                                      (sim_host_is_server(sim, waker->core) || sim_host_is_server(sim, t->core)));
    core = by_place ? sim_host_place_woken(sim, t, waker) : sim_host_core_of(sim, waker);
    bool was_idle = core->on == NULL;
    enqueue_woken(sim, core, t, waker);
    if (!was_idle && waker != NULL && !sim_host_is_server(sim, core->number))
        wake_carrier(sim, waker, core);
}

static void wake(struct sim *sim, struct sim_thread *t, uint64_t ns) {
    wake_from(sim, NULL, t, ns);
}

void sim_host_wake_by(struct sim *sim, struct sim_thread *waker, struct sim_thread *t) {
    bool fiber = sim->host->fibers && !sim_host_cores_to_spare(sim, t);
    wake_from(sim, waker, t, fiber ? 0 : sim->host->model.awake_ns);
}

static void wait_for(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    if (t->wake_pending) {
        t->wake_pending = false;
        sim_host_run(sim, t, 0, then);
        return;
    }
    sim_host_count(sim, core);
    t->then = then;
    t->why = (uint8_t)why;
    t->left = 0;
    t->wait_from = t->host.slept_at = t->host.ran_at = sim_now(sim);
    t->place = SIM_ASLEEP;
    sim_core_show(sim, t, SIM_WAIT);
    core->on = NULL;
    sim_host_leave(sim, core, t);
    next_thread(sim, core);
}

void sim_host_move(struct sim *sim, struct sim_thread *t, struct sim_host_core *to, uint64_t ns, sim_then *then) {
    struct sim_host_core *from = sim_host_core_of(sim, t);
    sim_host_count(sim, from);
    t->then = then;
    t->left = ns;
    t->host.ran_at = sim_now(sim);
    sim_core_show(sim, t, SIM_READY);
    from->on = NULL;
    sim_host_leave(sim, from, t);
    enqueue(sim, to, t, sim->host->model.slice_ns, 0);
    next_thread(sim, from);
}

void sim_host_poke(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    t->then = then;
    if (t->place != SIM_ON_CORE)
        return; /* run_on lets it look */
    sim_host_count(sim, core);
    t->left = ns;
    arm(sim, core);
}

void sim_host_shorten(struct sim *sim, struct sim_thread *t, uint64_t ns) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    if (t->place == SIM_ON_CORE)
        sim_host_count(sim, core);
    if (t->left <= ns)
        return;
    t->left = ns;
    if (t->place == SIM_ON_CORE)
        arm(sim, core);
}

bool sim_host_is_running(const struct sim *sim, const struct sim_thread *t) {
    return t->place == SIM_ON_CORE && sim_host_core_of(sim, t)->from <= sim_now(sim);
}

static void yield_now(struct sim *sim, struct sim_thread *t) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    t->then = t->host.yielded_then;
    if (core->n_ready == 0) {
        t->then(sim, t);
        return;
    }
    t->host.yielded = true;
    if (!sim->host->fibers && sim_host_is_eligible(core, t)) {
        core->sum_v += t->host.deadline - t->host.v;
        t->host.v = t->host.deadline;
        t->host.deadline += (int64_t)sim->host->model.slice_ns;
    }
    if (sim->host->fibers) {
        wake_carrier(sim, t, core);
        t->left = t->host.owed_ns; /* it pays for that when it goes on, in the same call */
        t->host.owed_ns = 0;
    }
    preempt(sim, core);
}

void sim_host_yield(struct sim *sim, struct sim_thread *t, sim_then *then) {
    const struct sim_host_model *model = &sim->host->model;
    t->host.yielded_then = then;
    sim_host_run(sim, t, sim->host->fibers ? model->fiber_ns : model->yield_ns, yield_now);
}

/* How long work takes if so many thousandths of cores work at once, in thousandths of its time on one core. */
static uint64_t memory_slows(const struct sim_host_model *model, uint64_t cores) {
    uint64_t slows = cores > model->memory_cores ? cores * 1000 / model->memory_cores : 1000;
    return 1000 - model->memory_share + model->memory_share * slows / 1000;
}

uint64_t sim_host_work_ns(const struct sim *sim, uint64_t work_ns) {
    const struct sim_host_model *model = &sim->host->model;
    if (model->memory_share == 0 || !sim_host_has(sim, SIM_HOST_MEMORY))
        return work_ns;
    uint64_t busy = 1000 * (uint64_t)(sim->n_cores - sim->host->n_idle);
    uint64_t scale = (memory_slows(model, busy) << 20) / memory_slows(model, model->recorded_cores);
    return (work_ns >> 20) * scale + ((work_ns & 0xfffff) * scale >> 20);
}

/* ---- threads come and go ---- */

static void add(struct sim *sim, struct sim_thread *t, sim_then *then) {
    struct sim_host_core *core = sim_host_place_new(sim);
    const struct sim_host_model *model = &sim->host->model;
    uint64_t born = sim_host_has(sim, SIM_HOST_LATENCY) && t->number != 0 ? model->born_ns : 0;
    t->host.serial = ++sim->host->n_threads;
    t->then = then;
    t->left = 0;
    t->shown = SIM_READY;
    t->shown_from = sim_now(sim);
    enqueue(sim, core, t, model->slice_ns / 2, born);
}

static void leave(struct sim *sim, struct sim_thread *t) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    sim_host_count(sim, core);
    core->on = NULL;
    sim_host_leave(sim, core, t);
    t->place = SIM_ENDED;
    next_thread(sim, core);
}

static const struct sim_scheduler scheduler = {sim_host_run, wait_for, wake, add, leave};

bool sim_host_init(struct sim *sim) {
    struct sim_host *host = calloc(1, sizeof *host);
    sim->host = host;
    if (host == NULL || (host->cores = sim_line_zeroed(sim->n_cores * sizeof *host->cores)) == NULL ||
        (host->looks = calloc(sim->n_cores, sizeof *host->looks)) == NULL)
        return false;
    if (!sim_events_reserve(&sim->events, sim->n_cores))
        return false;
    host->model = sim->config.host;
    host->fibers = sim->config.sync == SIM_SWITCH || sim->config.sync == SIM_DELEGATE;
    host->n_idle = sim->n_cores - host->model.n_servers;
    for (uint32_t i = 0; i < sim->n_cores; i++)
        host->cores[i].number = (uint16_t)i;
    sim->scheduler = &scheduler;
    return true;
}

void sim_host_free(struct sim *sim) {
    for (uint32_t i = 0; sim->host != NULL && sim->host->cores != NULL && !sim->host->fibers && i < sim->n_cores; i++)
        free(sim->host->cores[i].queue);
    if (sim->host != NULL) {
        free(sim->host->cores);
        free(sim->host->looks);
    }
    free(sim->host);
    sim->host = NULL;
}
