/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine's cores. Two schedulers share the code: Linux's, and that of the library's carriers.
 *
 * Linux (EEVDF, as of 6.12 to 6.18, threads of one weight):
 *  - Each thread has a virtual time, which runs while it does, and a deadline: the virtual time at which it will have
 *    run for a slice. A thread is eligible if it has not run more than the mean of its core's threads. The eligible
 *    thread with the first deadline runs next.
 *  - The running thread keeps its core until it waits, until its deadline has passed and the kernel looks, or until an
 *    eligible thread is woken there and it is not protected itself. It is while it is eligible and its deadline has not
 *    passed (RUN_TO_PARITY). The kernel looks at a tick, or when another thread comes into the run queue; then
 *    the thread gets a new deadline, a slice later. A thread that wakes others is preempted when it has woken all.
 *  - A thread that waits keeps its lag, the distance of its virtual time to the mean of its core's. So a thread that
 *    has run less than others comes before them when it is woken, by a slice at most. A thread that waits with a debt
 *    stays where it is until that is paid (DELAY_DEQUEUE).
 *  - A woken thread goes to its last core if that is idle, else to another idle core; else to its last core again, or
 *    to its waker's if two threads fewer are there.
 *  - A core that goes idle takes a thread from the longest run queue, but none with a warm cache there. At the
 *    ticks of that other core it takes half of the threads, these too. Busy cores compare their queues now and then.
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
    VAIN_MANY = 4, /* wake-ups of a carrier in vain, after which it is woken no more; */
    VAIN_TRY = 64, /* but for one wake-up in so many */
};

/* ---- waiting, waking ---- */

/* A core that will begin its thread later has been interrupted already, and chooses when it begins. */
static bool has_begun(const struct sim *sim, const struct sim_host_core *core) {
    return core->on != NULL && core->from <= sim_now(sim);
}

/*
 * The running thread has not run more than the mean, nor beyond its deadline. That is also one that it got as it went
 * on: Linux's set_protect_slice has the deadline of when the core was switched to the thread.
 */
static bool is_protected(const struct sim *sim, const struct sim_host_core *core) {
    const struct sim_thread *on = core->on;
    return sim_host_has(sim, SIM_HOST_PROTECT) && sim_host_is_eligible(core, on) && on->host.v < on->host.deadline;
}

/*
 * Does the thread, just put into the core's run queue, preempt the thread that runs there? Where none runs yet, the
 * first deadline is chosen.
 */
static bool preempts(const struct sim *sim, const struct sim_host_core *core, const struct sim_thread *t) {
    if (!t->host.woken || !sim_host_has(sim, SIM_HOST_PREEMPT) || !sim_host_is_eligible(core, t))
        return false;
    return has_begun(sim, core) ? !is_protected(sim, core) : t->host.deadline < core->on->host.deadline;
}

/* The core's thread has its work behind it by so much later. It waits for nothing meanwhile, and the scheduler counts
 * that as its time. */
static void interrupt(struct sim *sim, struct sim_host_core *core) {
    if (sim_host_has(sim, SIM_HOST_INTERRUPTS) && core->on->left < SIM_HOST_ENDLESS)
        core->on->left += sim->host->model.interrupt_ns;
}

/* Put a ready thread into a core's run queue. If that is idle, the thread runs there `late_ns` from now. */
static void enqueue(struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t slice,
                    uint64_t late_ns) {
    sim_host_count(sim, core);
    if (t->host.delayed)
        sim_host_leave_if_paid(sim, t);
    if (t->host.delayed)
        sim_host_end_delay(sim, core, t);
    else
        sim_host_join(sim, core, t, slice);
    sim_core_show(sim, t, SIM_READY);
    if (core->on == NULL) {
        sim_host_run_on(sim, core, t, late_ns);
        return;
    }
    if (!sim_host_push(sim, core, t))
        return;
    if (!sim->host->fibers) {
        if (t->host.interrupts)
            interrupt(sim, core);
        if (!core->preempts && preempts(sim, core, t)) {
            core->preempts = true;
            core->preempt_at = sim_now(sim) + (t->host.interrupts ? sim->host->model.late_busy_ns : 0);
        }
        core->resched = core->resched || core->preempts || sim_host_slice_is_over(sim, core);
    }
    if (core->on->host.idles && core->on->left > sim->host->model.yield_ns) {
        core->on->left = sim->host->model.yield_ns; /* its next yield gives the core away */
        sim_host_arm(sim, core);
        return;
    }
    sim_host_queue_changed(sim, core);
}

/* A sleeping carrier is woken for a new fiber; the waker pays for that before it goes on. */
static void wake_carrier(struct sim *sim, struct sim_thread *waker, const struct sim_host_core *busy) {
    struct sim_host_core *idle = sim->config.migrate ? sim_host_find_idle(sim, busy->number) : NULL;
    if (idle == NULL || sim_host_is_searching(sim, idle) ||
        (idle->n_vain >= VAIN_MANY && ++sim->host->n_unwoken % VAIN_TRY != 0))
        return;
    waker->host.owed_ns += sim_host_wake_to_search(sim, idle);
}

/* Does the waker send an interrupt to the core, so that the thread can preempt another there? */
static bool interrupts(const struct sim *sim, const struct sim_thread *waker, const struct sim_host_core *core) {
    return waker != NULL && waker->core != core->number && has_begun(sim, core) && !core->preempts &&
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
    enqueue(sim, core, t, sim->host->model.slice_ns, t->shown == SIM_OUTSIDE ? 0 : sim_host_late(sim, core, false));
    t->host.woken = false;
}

/* What a wake-up writes of a sleeper and of its run queue, another core has written last: the sleeper's. */
static bool has_lines(const struct sim *sim, const struct sim_thread *waker, const struct sim_host_core *core) {
    return core->number == waker->core || !sim_host_has(sim, SIM_HOST_LINES);
}

uint64_t sim_host_wake_cost(struct sim *sim, const struct sim_thread *waker, const struct sim_thread *t) {
    const struct sim_host_model *model = &sim->host->model;
    if (sim->host->fibers && !sim_host_cores_to_spare(sim, t))
        return model->fiber_wake_ns;
    const struct sim_host_core *core = sim_host_place_woken(sim, t, waker);
    if (core->on != NULL && interrupts(sim, waker, core))
        return model->wake_idle_ns;
    if (core->on != NULL)
        return model->wake_busy_ns + (has_lines(sim, waker, core) ? 0 : model->remote_lines_ns);
    return sim_host_wake_ns(sim, core, false);
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
    bool delayed = !sim->host->fibers && sim_host_has(sim, SIM_HOST_DELAY) && !sim_host_is_eligible(core, t);
    core->on = NULL;
    if (delayed)
        sim_host_delay(sim, core, t);
    else
        sim_host_leave(sim, core, t);
    if (why == SIM_WHY_OBJECT)
        sim->waits_for_lock(sim, t);
    sim_host_next_thread(sim, core);
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
    sim_host_next_thread(sim, from);
}

void sim_host_poke(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    t->then = then;
    if (t->place != SIM_ON_CORE)
        return; /* run_on lets it look */
    sim_host_count(sim, core);
    t->left = ns;
    sim_host_arm(sim, core);
}

void sim_host_shorten(struct sim *sim, struct sim_thread *t, uint64_t ns) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    if (t->place == SIM_ON_CORE)
        sim_host_count(sim, core);
    if (t->left <= ns)
        return;
    t->left = ns;
    if (t->place == SIM_ON_CORE)
        sim_host_arm(sim, core);
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
    sim_host_preempt(sim, core);
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
    sim_host_next_thread(sim, core);
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
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        host->cores[i].number = (uint16_t)i;
        host->cores[i].pause_ns = host->model.deep_after_ns; /* it was idle */
    }
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
