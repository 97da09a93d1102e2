/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's primitives but for mutexes (host_sync_mutex.c): barriers, rwlocks, semaphores and spin locks.
 *
 * A barrier's last arrival wakes all sleepers with one call, one after another. A read-write lock admits readers while
 * no writer has it, as glibc's default does; the release of a writer admits all waiting readers. A semaphore's post
 * adds 1 and wakes a sleeper, which competes with others. A spin lock is taken by the first waiter that sees it free,
 * and a waiter that has lost its core cannot see it.
 */
#include "host_sync.h"

#include "owner.h"
#include "return.h"

void sim_host_pay(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    sim_host_run(sim, t, ns, then);
}

void sim_host_wake_a_sleeper(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    t->targets = (struct sim_list){0};
    struct sim_thread *first = sim_list_shift(&o->waiters);
    if (first != NULL)
        sim_list_append(&t->targets, first);
    sim_host_wake_targets(sim, t);
}

/* ---- barriers ---- */

static void barrier_look(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (b->n_acquired == t->host.ticket) {
        sim_host_wait_on(sim, t);
        return;
    }
    sim_host_wait_end(sim, t);
    sim_return(sim, t);
}

static void meet(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (++b->n_inside < b->size) {
        t->host.ticket = b->n_acquired;
        sim_host_wait_begin(sim, t, b, SIM_WHY_OBJECT, false, barrier_look);
        sim_host_wait_on(sim, t);
        return;
    }
    b->n_inside = 0;
    b->n_acquired++; /* the generation */
    t->targets = b->waiters;
    b->waiters = (struct sim_list){0};
    t->unlocked = sim_return;
    sim_host_notice(sim, b, true);
    if (sim_host_is_glibc(sim) && t->targets.first == NULL) /* it calls the kernel in any case */
        sim_host_run(sim, t, sim->host->model.futex_wake_ns, sim_return);
    else
        sim_host_wake_targets(sim, t);
}

void sim_host_barrier(struct sim *sim, struct sim_thread *t) {
    sim_host_touch(sim, t, t->object, sim->host->model.barrier_ns, meet);
}

/* ---- read-write locks and semaphores: waiters compete ---- */

/* The thread has tried for the first time. */
static void tried(struct sim *sim, struct sim_thread *t, bool got, sim_then *look) {
    if (got) {
        sim_return(sim, t);
        return;
    }
    sim_host_wait_begin(sim, t, t->object, SIM_WHY_OBJECT, false, look);
    sim_host_wait_on(sim, t);
}

/* The waiter has tried. If it was woken, and another thread was quicker, it waits on: its limits are those from before.
 */
static void looked(struct sim *sim, struct sim_thread *t, bool got) {
    if (got) {
        sim_host_wait_end(sim, t);
        sim_return(sim, t);
        return;
    }
    if (t->host.parked) {
        sim->summary.n_lost_races++;
        t->host.parked = t->host.parks = false;
    }
    sim_host_wait_on(sim, t);
}

/* ---- read-write locks ---- */

static void rw_look(struct sim *sim, struct sim_thread *t) {
    bool handed = t->host.handed;
    t->host.handed = false;
    looked(sim, t, handed || sim_owner_enter(t, t->object));
}

static void rw_first(struct sim *sim, struct sim_thread *t) {
    tried(sim, t, sim_owner_enter(t, t->object), rw_look);
}

/* The lock is free: all waiting readers have it at once, or the first writer is woken and competes for it. */
static void rw_admit_waiting(struct sim_thread *t, struct sim_object *o) {
    struct sim_list waiters = o->waiters, rest = {0};
    bool readers = false;
    for (struct sim_thread *w; (w = sim_list_shift(&waiters)) != NULL;) {
        if (!sim_owner_reads(w)) {
            sim_list_append(&rest, w);
            continue;
        }
        o->n_inside++;
        w->host.handed = readers = true;
        sim_list_append(&t->targets, w);
    }
    if (!readers && rest.first != NULL)
        sim_list_append(&t->targets, sim_list_shift(&rest));
    o->waiters = rest;
}

static void rw_leave(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    sim_owner_leave(o);
    t->targets = (struct sim_list){0};
    t->unlocked = sim_return;
    if (o->n_inside == 0) {
        sim_host_notice(sim, o, true);
        rw_admit_waiting(t, o);
    }
    sim_host_wake_targets(sim, t);
}

/* ---- semaphores ---- */

static bool sem_take(struct sim_thread *t, struct sim_object *o) {
    /* A wait that consumed no recorded post: see software.c. */
    bool brings_its_own = t->event.order == 0 && o->n_inside == 0;
    if (!brings_its_own && o->size == 0 && !o->forgotten)
        return false;
    if (t->event.order == 0 && o->n_inside > 0)
        o->n_inside--;
    o->size -= !brings_its_own && o->size > 0;
    return true;
}

static void sem_look(struct sim *sim, struct sim_thread *t) {
    looked(sim, t, sem_take(t, t->object));
}

static void sem_first(struct sim *sim, struct sim_thread *t) {
    tried(sim, t, sem_take(t, t->object), sem_look);
}

static void sem_add(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    o->size++;
    t->unlocked = sim_return;
    t->targets = (struct sim_list){0};
    sim_host_notice(sim, o, false); /* a waiter that spins may see two posts as one, so that a sleeper is woken too */
    sim_host_wake_a_sleeper(sim, t, o);
}

/* ---- spin locks ---- */

static void spin_look(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (o->owner != NULL) {
        t->spins = true;
        t->why = SIM_WHY_OBJECT;
        uint64_t looks_ns = sim->host->model.spin_looks_ns;
        sim_host_wait_spin(sim, t, o, looks_ns, looks_ns, spin_look);
        return;
    }
    t->spins = false;
    t->host.since = 0;
    sim_owner_set(o, t);
    sim_return(sim, t);
}

/* A plain store releases it: other threads see that before the call has returned. */
static void spin_free(struct sim *sim, struct sim_thread *t) {
    sim_owner_set(t->object, NULL);
    sim_host_notice(sim, t->object, false);
    sim_host_touch(sim, t, t->object, sim->host->model.spin_lock_ns, sim_return);
}

/* ---- waits that nothing would end ---- */

static void wake_sleepers(struct sim *sim, struct sim_object *o, uint32_t n) {
    for (struct sim_thread *w; n > 0 && (w = sim_list_shift(&o->waiters)) != NULL; n--)
        sim_core_wake(sim, w, 0);
}

void sim_host_sem_wake(struct sim *sim, struct sim_object *o) {
    wake_sleepers(sim, o, o->size);
}

static bool pass_spin_lock(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    if (!t->spins || o->owner == NULL)
        return false;
    if (o->kind == SBT_TRACE_MUTEX)
        sim_owner_released(sim, o);
    else
        sim_owner_set(o, NULL);
    sim_host_notice(sim, o, true);
    return true;
}

bool sim_host_pass(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (o->kind == SBT_TRACE_SPIN || o->kind == SBT_TRACE_MUTEX)
        return pass_spin_lock(sim, t, o);
    if (!sim_list_remove(&o->waiters, t))
        return false;
    if (o->kind == SBT_TRACE_SEM) {
        o->size++;
    } else if (o->kind == SBT_TRACE_BARRIER) {
        o->n_inside = 0;
        o->n_acquired++;
        wake_sleepers(sim, o, UINT32_MAX);
    } else {
        o->n_inside = 0;
        if (o->owner != NULL)
            sim_owner_set(o, NULL);
    }
    sim_core_wake(sim, t, 0);
    return true;
}

/* ---- which one ---- */

void sim_host_other(struct sim *sim, struct sim_thread *t) {
    const struct sim_host_model *model = &sim->host->model;
    struct sim_object *o = t->object;
    switch (t->event.op) {
    case SBT_TRACE_RWLOCK_UNLOCK:
        sim_host_touch(sim, t, o, model->rwlock_ns, rw_leave);
        break;
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SEM_TRYWAIT:
        sim_host_touch(sim, t, o, model->semaphore_ns, sem_first);
        break;
    case SBT_TRACE_SEM_POST:
        sim_host_touch(sim, t, o, model->semaphore_ns, sem_add);
        break;
    case SBT_TRACE_SPIN_LOCK:
    case SBT_TRACE_SPIN_TRYLOCK:
        sim_host_touch(sim, t, o, model->spin_lock_ns, spin_look);
        break;
    case SBT_TRACE_SPIN_UNLOCK:
        spin_free(sim, t);
        break;
    default:
        sim_host_touch(sim, t, o, model->rwlock_ns, rw_first);
    }
}
