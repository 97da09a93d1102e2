/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a thread waits on the host; see host_wait.h. The limits are those of libsubutai/wait/adapt.c and yield_gate.c. */
#include "host_wait.h"

enum {
    LONG_NS = 1000000,       /* a mean wait above which the next one sleeps at once */
    WORTH_SWITCHES = 6 * 16, /* a mean number of yields that switch, in sixteenths, likewise */
    WORTH_SWITCHES_ALONE = 3 * 16,
    PROBE_EVERY = 64, /* of such waits one in so many waits actively all the same */
    PROBE_YIELDS = 10,
    LONG_YIELD_NS = 700000, /* a yield that gave the core to a thread that computes */
    NEAR = 8,               /* two of them within so many times their length close the gate */
    CLOSED = 16,            /* for so many times their length */
    GATE_MOST_NS = 256000000,
    SPINS_FAILED_MOST = 8, /* forced spins in vain in a row, after which they are left out */
    FORGET_FAILED = 64,    /* for so many waits */
    QUEUE_NS = 40,         /* the parking lot's bucket and its list */
};
#define FOREVER (UINT64_MAX / 4)

/* ---- cache lines ---- */

/*
 * A line comes from one core after another. A processor finds the next call while the work before it is under way, and
 * asks for the line then: so the way begins earlier, by that work at most, and when the line is free. The last part of
 * the way cannot be hidden (line_late_ns): the line may have gone away again before the call, or in the midst of it,
 * because the other core asks as early. A thread has worked just before the first operation of a call only.
 */
static uint64_t line_way_ns(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    const struct sim_host_model *model = &sim->host->model;
    uint64_t now = sim_now(sim), ahead = t->host.ahead_ns;
    uint64_t hidden = model->line_ns > model->line_late_ns ? model->line_ns - model->line_late_ns : 0;
    t->host.ahead_ns = 0;
    if (o->line_core == t->core || (model->effects & SIM_HOST_LINES) == 0)
        return 0;
    if ((model->effects & SIM_HOST_AHEAD) == 0)
        ahead = 0;
    ahead = ahead < hidden ? ahead : hidden;
    uint64_t from = o->line_free > now - ahead ? o->line_free : now - ahead;
    o->line_core = t->core;
    o->line_free = from + model->line_ns;
    return o->line_free > now ? o->line_free - now : 0;
}

void sim_host_touch(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint64_t ns, sim_then *then) {
    sim_host_run(sim, t, ns + line_way_ns(sim, t, o), then);
}

/* ---- sleeping ---- */

static void prepend(struct sim_list *list, struct sim_thread *t) {
    t->next = list->first;
    list->first = t;
    if (list->last == NULL)
        list->last = t;
}

/* Does the thread sleep in the kernel? A fiber does if all fibers have a core of their own. */
static bool sleeps_in_kernel(const struct sim *sim, const struct sim_thread *t) {
    return !sim->host->fibers || sim_host_cores_to_spare(sim, t);
}

static void woken(struct sim *sim, struct sim_thread *t) {
    t->host.look(sim, t);
}

static void sleep_now(struct sim *sim, struct sim_thread *t) {
    sim_core_wait(sim, t, (enum sim_why)t->host.why, woken);
}

static void fall_asleep(struct sim *sim, struct sim_thread *t) {
    if (sleeps_in_kernel(sim, t)) {
        sim->summary.n_futex_waits++;
        sim_host_run(sim, t, sim->host->model.fall_asleep_ns, sleep_now);
    } else {
        sleep_now(sim, t);
    }
}

/* The last look has found nothing, in the queue's lock. */
static void park(struct sim *sim, struct sim_thread *t) {
    t->host.parked = true;
    t->host.what->active = false; /* it may have been this thread's promise to look */
    sim_list_append(&t->host.what->waiters, t);
    fall_asleep(sim, t);
}

void sim_host_wait_again(struct sim *sim, struct sim_thread *t) {
    prepend(&t->host.what->waiters, t);
    fall_asleep(sim, t);
}

/* ---- active waiting ---- */

static void spun(struct sim *sim, struct sim_thread *t) {
    sim_list_remove(&t->host.what->queued, t);
    if (t->host.idles) {
        uint64_t took = sim_now(sim) - t->host.last_ns;
        t->host.idle_ns = t->host.idle_ns > took ? t->host.idle_ns - (uint32_t)took : 0;
    }
    t->host.looks = t->host.idles = false;
    t->host.look(sim, t);
}

static void spin(struct sim *sim, struct sim_thread *t) {
    t->host.looks = true;
    sim_list_append(&t->host.what->queued, t);
    sim_host_run(sim, t, t->host.spun_to - sim_now(sim), spun);
}

bool sim_host_notice(struct sim *sim, struct sim_object *o, bool all) {
    bool any = false;
    uint64_t way = (sim->host->model.effects & SIM_HOST_LINES) != 0 ? sim->host->model.line_ns : 1;
    for (struct sim_thread *t = o->queued.first, *next; t != NULL; t = next) {
        next = t->next;
        if (!sim_host_is_running(sim, t))
            continue;
        sim_host_poke(sim, t, t->host.idles ? way + sim->host->model.yield_ns / 2 : way, spun);
        any = true;
        if (!all)
            break;
    }
    return any;
}

/* The yield gate has seen a yield that took so long. */
static void gate_saw(struct sim *sim, uint64_t took) {
    struct sim_host *host = sim->host;
    uint64_t now = sim_now(sim);
    if (took <= LONG_YIELD_NS)
        return;
    if (now - host->long_yield_at < NEAR * took) {
        uint64_t closed = CLOSED * took < GATE_MOST_NS ? CLOSED * took : GATE_MOST_NS;
        host->gate_closed_to = now + closed;
    }
    host->long_yield_at = now;
}

static void yielded(struct sim *sim, struct sim_thread *t) {
    struct sim_host *host = sim->host;
    uint64_t took = sim_now(sim) - t->host.last_ns;
    took += took == 0; /* where yields cost nothing, threads that yield to each other would not let time pass */
    gate_saw(sim, took);
    if (took <= host->model.yield_ns + host->model.yield_ns / 2) {
        t->host.idle_ns = t->host.idle_ns > took ? t->host.idle_ns - (uint32_t)took : 0;
    } else {
        t->host.n_switches++;
        if (t->host.yields_left == 0 || took > LONG_YIELD_NS)
            t->host.idle_ns = 0;
        else
            t->host.yields_left--;
    }
    t->host.look(sim, t);
}

/* Yields that find no other thread are one step, until the object is free or a thread comes into the run queue. */
static void yield(struct sim *sim, struct sim_thread *t) {
    t->host.last_ns = sim_now(sim);
    if (!sim_host_others_ready(sim, t) && t->host.idle_ns > sim->host->model.yield_ns) {
        t->host.looks = t->host.idles = true;
        sim_list_append(&t->host.what->queued, t);
        sim_host_run(sim, t, t->host.idle_ns, spun);
        return;
    }
    sim_host_yield(sim, t, yielded);
}

static bool may_spin(const struct sim *sim, const struct sim_thread *t) {
    if (sim_now(sim) >= t->host.spun_to)
        return false;
    if (sim->host->fibers && sim_host_others_ready(sim, t))
        return false;
    return t->host.forced || sim_host_cores_to_spare(sim, t);
}

static bool may_yield(const struct sim *sim, const struct sim_thread *t) {
    if (t->host.idle_ns == 0 || sim_now(sim) < sim->host->gate_closed_to)
        return false;
    return !sim->host->fibers || sim_host_cores_to_spare(sim, t);
}

/* Into the parking lot, or with glibc into the kernel: there the thread looks for the last time. */
static void last_look(struct sim *sim, struct sim_thread *t) {
    t->host.parks = true;
    t->host.look(sim, t);
}

void sim_host_wait_on(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->host.what;
    if (t->host.parks) {
        park(sim, t);
    } else if (sim->config.sync == SIM_GLIBC) {
        sim_host_run(sim, t, sim->host->model.futex_wait_ns, last_look);
    } else if (may_spin(sim, t)) {
        o->active = true;
        spin(sim, t);
    } else if (may_yield(sim, t)) {
        t->host.spun_to = 0;
        o->active = true;
        yield(sim, t);
    } else {
        sim_host_run(sim, t, QUEUE_NS, last_look);
    }
}

static bool forces_spin(const struct sim *sim, struct sim_object *o) {
    if (sim->n_cores == 1)
        return false;
    if (o->spins_failed < SPINS_FAILED_MOST)
        return true;
    if (++o->spins_failed < SPINS_FAILED_MOST + FORGET_FAILED)
        return false;
    o->spins_failed = 0;
    return true;
}

void sim_host_wait_begin(struct sim *sim, struct sim_thread *t, struct sim_object *o, enum sim_why why, bool forced,
                         sim_then *look) {
    const struct sim_host_model *model = &sim->host->model;
    uint64_t now = sim_now(sim);
    bool alone = sim->n_cores == 1;
    t->host.what = o;
    t->host.why = (uint8_t)why;
    t->host.look = look;
    t->host.since = now;
    t->host.n_switches = 0;
    t->host.notified = t->host.lost = t->host.handed = t->host.parks = t->host.parked = false;
    if (sim->config.sync == SIM_GLIBC)
        return;
    t->host.forced = forced && forces_spin(sim, o);
    t->host.spun_to = now + model->spin_ns;
    t->host.yields_left = (uint16_t)model->n_yields;
    t->host.idle_ns = model->idle_yields_ns;
    uint64_t mean_ns = (uint64_t)o->mean_64ns * 64;
    if (mean_ns <= LONG_NS && o->mean_switches <= (alone ? WORTH_SWITCHES_ALONE : WORTH_SWITCHES))
        return;
    t->host.yields_left = 0;
    if (o->probe % PROBE_EVERY == PROBE_EVERY - 1) {
        t->host.yields_left = PROBE_YIELDS;
        return;
    }
    if (mean_ns > LONG_NS || !sim_host_cores_to_spare(sim, t)) {
        t->host.idle_ns = 0;
        if (!t->host.forced)
            t->host.spun_to = 0;
    }
}

void sim_host_wait_end(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->host.what;
    if (sim->config.sync == SIM_GLIBC)
        return;
    uint64_t waited = (sim_now(sim) - t->host.since) / 64;
    uint32_t switched = t->host.n_switches * 16u;
    o->mean_64ns = (uint16_t)((o->mean_64ns * 3u + (waited < UINT16_MAX ? waited : UINT16_MAX)) / 4);
    o->mean_switches = (uint8_t)((o->mean_switches * 7u + (switched < UINT8_MAX ? switched : UINT8_MAX)) / 8);
    o->probe++;
    if (t->host.forced && o->spins_failed < SPINS_FAILED_MOST)
        o->spins_failed = t->host.parked ? o->spins_failed + 1u : 0;
}

/* ---- spin locks, and mutexes that are polled ---- */

enum { SPUN_UNLOCKS = 100 }; /* DIRECT_SPUN_UNLOCKS */

void sim_host_spun(struct sim_object *m, bool by_any) {
    if (!by_any && m->spun_by_any)
        return;
    m->spun_by_any = by_any;
    m->spun_credit = SPUN_UNLOCKS;
}

static void offered(struct sim *sim, struct sim_thread *t) {
    if (!sim->host->fibers)
        gate_saw(sim, sim_now(sim) - t->host.last_ns);
    t->host.offered(sim, t);
}

void sim_host_offer(struct sim *sim, struct sim_thread *t, sim_then *then) {
    t->host.offered = then;
    t->host.last_ns = sim_now(sim);
    if (sim_now(sim) < sim->host->gate_closed_to)
        then(sim, t);
    else
        sim_host_yield(sim, t, offered);
}

static void spin_yielded(struct sim *sim, struct sim_thread *t) {
    t->host.spun_to = sim_now(sim) + t->host.again_ns;
    t->host.look(sim, t);
}

static void spin_over(struct sim *sim, struct sim_thread *t) {
    sim_list_remove(&t->host.what->queued, t);
    t->host.looks = t->host.idles = false;
    if (t->host.what->owner == NULL || sim->config.sync == SIM_GLIBC || sim_now(sim) < t->host.spun_to) {
        t->host.look(sim, t);
        return;
    }
    if (t->host.what->kind == SBT_TRACE_MUTEX)
        sim_host_spun(t->host.what, true);
    if (sim_host_others_ready(sim, t)) {
        sim_host_yield(sim, t, spin_yielded);
        return;
    }
    /* Yields that find no other thread are one step, as in a wait that ends (yield). */
    t->host.looks = t->host.idles = true;
    sim_list_append(&t->host.what->queued, t);
    sim_host_run(sim, t, FOREVER, spin_over);
}

void sim_host_wait_spin(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint64_t first_ns,
                        uint64_t again_ns, sim_then *look) {
    uint64_t now = sim_now(sim);
    if (t->host.look != look || t->host.what != o || t->host.since != t->called_at) {
        t->host.look = look;
        t->host.what = o;
        t->host.since = t->called_at;
        t->host.again_ns = (uint32_t)again_ns;
        t->host.spun_to = sim->config.sync == SIM_GLIBC ? UINT64_MAX : now + first_ns;
    }
    t->host.looks = true;
    sim_list_append(&o->queued, t);
    uint64_t left = t->host.spun_to == UINT64_MAX ? FOREVER : t->host.spun_to > now ? t->host.spun_to - now : 0;
    sim_host_run(sim, t, left, spin_over);
}

/* ---- waking ---- */

static void wake_target(struct sim *sim, struct sim_thread *t);

static void woke_target(struct sim *sim, struct sim_thread *t) {
    struct sim_thread *target = sim_list_shift(&t->targets);
    sim->summary.n_futex_wakes++;
    sim_host_wake_by(sim, t, target);
    wake_target(sim, t);
}

static void all_woken(struct sim *sim, struct sim_thread *t) {
    t->unlocked(sim, t);
}

static void wake_target(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL && t->host.owed_ns > 0)
        sim_host_run(sim, t, 0, all_woken);
    else if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else
        sim_host_run(sim, t, sim_host_wake_cost(sim, t, t->targets.first), woke_target);
}

void sim_host_wake_targets(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else if (sleeps_in_kernel(sim, t))
        sim_host_run(sim, t, sim->host->model.futex_wake_ns, wake_target);
    else
        wake_target(sim, t);
}
