/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The software-only model: section III-C of the paper, made mechanical.
 *
 * To acquire, a thread makes an atomic attempt in the library (t1). If that fails it calls the kernel, which has a
 * second attempt (t2), and is put to sleep. Whoever releases wakes one sleeper, which costs the waker; the woken thread
 * goes through its core's run queue, comes back from the kernel and makes the same attempt again (t3). It may find the
 * mutex taken by somebody who was at t1 just then, and does it all again (delta). Who wakes several wakes them one
 * after another. At a condition or a barrier there is nothing to try again: its waiters go into the kernel and sleep.
 *
 * Whether anybody is to be woken is a mark in the mutex, as in Drepper's "Futexes are tricky", which the paper names
 * for this loop: who fails at t1 marks it, and who gets it at t2 or t3, and cannot know of others, too. Whoever
 * releases it clears the mark, and calls the kernel if there was one, also in vain.
 *
 * Each attempt moves the object's cache line to its core: a request and a line over the mesh, by distance, and one core
 * after another. A mutex is not handed over; rwlocks, semaphores and spin locks, which the paper does not have, are, to
 * whoever came first.
 */
#include "model.h"

/* ---- costs ---- */

/* Until the object's line is here. */
static uint64_t fetch_line(struct sim *sim, const struct sim_thread *t, struct sim_object *o) {
    uint64_t now = sim_now(sim), from = o->line_free > now ? o->line_free : now, end = from;
    if (o->line_core != t->core)
        end += 2 * hw_mesh_distance(&sim->mesh, o->line_core, t->core).head_cycles + sim->config.costs.line_flits;
    o->line_core = t->core;
    o->line_free = end;
    return end - now;
}

static void attempt(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim_run_for(sim, t, sim->config.costs.attempt_ns + fetch_line(sim, t, o), then);
}

static void futex(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim->summary.n_futex_waits++;
    sim_run_for(sim, t, sim->config.costs.futex_ns + fetch_line(sim, t, o), then);
}

/* The same without a second attempt. */
static void futex_sleep(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim->summary.n_futex_waits++;
    sim_run_for(sim, t, sim->config.costs.kernel_ns + fetch_line(sim, t, o), then);
}

/* ---- waking ---- */

static void wake_next(struct sim *sim, struct sim_thread *t);

static void woke_one(struct sim *sim, struct sim_thread *t) {
    struct sim_thread *target = sim_shift(&t->targets);
    sim->summary.n_futex_wakes++;
    sim_wake(sim, target, sim->config.costs.kernel_ns);
    wake_next(sim, t);
}

static void wake_next(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else
        sim_run_for(sim, t, sim->config.costs.wake_ns, woke_one);
}

/* All of t->targets, one after another; then t->unlocked. */
static void wake_all(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else
        sim_run_for(sim, t, sim->config.costs.kernel_ns + sim->config.costs.wake_ns, woke_one);
}

/* ---- mutexes ---- */

static void mutex_slow(struct sim *sim, struct sim_thread *t);

static bool take(struct sim *sim, struct sim_thread *t) {
    if (t->mutex->owner != NULL)
        return false;
    sim_acquired(sim, t, t->mutex);
    t->locked(sim, t);
    return true;
}

static void mutex_third(struct sim *sim, struct sim_thread *t) {
    t->mutex->contended = true;
    if (take(sim, t))
        return;
    sim->summary.n_lost_races++;
    futex(sim, t, t->mutex, mutex_slow);
}

static void mutex_woken(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->mutex, mutex_third);
}

static void mutex_slow(struct sim *sim, struct sim_thread *t) {
    t->mutex->contended = true;
    if (take(sim, t))
        return;
    sim_append(&t->mutex->waiters, t);
    sim_wait(sim, t, SIM_WHY_OBJECT, mutex_woken);
}

static void mutex_fast(struct sim *sim, struct sim_thread *t) {
    if (take(sim, t))
        return;
    t->queued_lock = t->mutex->contended = true;
    futex(sim, t, t->mutex, mutex_slow);
}

void sim_sw_lock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->mutex, mutex_fast);
}

/* If there are sleepers and no mark, one of them has been woken and will leave it when it comes. */
static void mutex_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    struct sim_thread *first = m->contended ? sim_shift(&m->waiters) : NULL;
    bool in_vain = m->contended && first == NULL;
    if (m->owner != NULL)
        sim_released(sim, t, m);
    m->contended = false;
    t->targets = (struct sim_list){0};
    if (first != NULL)
        sim_append(&t->targets, first);
    if (in_vain)
        sim_run_for(sim, t, sim->config.costs.kernel_ns, t->unlocked);
    else
        wake_all(sim, t);
}

void sim_sw_unlock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->mutex, mutex_release);
}

void sim_sw_try(struct sim *sim, struct sim_thread *t, sim_then *then) {
    attempt(sim, t, t->object, then);
}

/* ---- conditions ---- */

static void cond_sleep(struct sim *sim, struct sim_thread *t);

static void cond_relocked(struct sim *sim, struct sim_thread *t) {
    if (sim_has_happened(t->object, t->awaited))
        sim_return(sim, t);
    else
        sim_sw_cond_wait(sim, t); /* woken by another one's broadcast */
}

static void cond_woken(struct sim *sim, struct sim_thread *t) {
    if (t->mutex != NULL)
        sim_lock(sim, t, t->mutex, cond_relocked);
    else
        cond_relocked(sim, t);
}

static void cond_sleep(struct sim *sim, struct sim_thread *t) {
    sim_wait(sim, t, SIM_WHY_SIGNAL, cond_woken); /* at once if it has been woken on the way */
}

static void cond_futex(struct sim *sim, struct sim_thread *t) {
    futex_sleep(sim, t, t->object, cond_sleep);
}

void sim_sw_cond_wait(struct sim *sim, struct sim_thread *t) {
    sim_append(&t->object->waiters, t);
    sim_unlock(sim, t, t->mutex, cond_futex);
}

/* A broadcast wakes all, a signal those that it woke in the trace. */
static void signalled(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool all = t->event.op == SBT_TRACE_COND_BROADCAST && !sim->config.recorded_order;
    struct sim_list waiters = c->waiters;
    sim_happened(sim, c, t->event.order);
    c->waiters = t->targets = (struct sim_list){0};
    for (struct sim_thread *w; (w = sim_shift(&waiters)) != NULL;)
        sim_append(all || sim_has_happened(c, w->awaited) ? &t->targets : &c->waiters, w);
    t->unlocked = sim_return;
    wake_all(sim, t);
}

void sim_sw_signal(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, signalled);
}

/* ---- barriers ---- */

static void barrier_sleep(struct sim *sim, struct sim_thread *t) {
    sim_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

static void barrier_arrive(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (++b->n_inside < b->size) {
        sim_append(&b->waiters, t);
        futex_sleep(sim, t, b, barrier_sleep);
        return;
    }
    b->n_inside = 0;
    t->targets = b->waiters;
    b->waiters = (struct sim_list){0};
    t->unlocked = sim_return;
    wake_all(sim, t);
}

void sim_sw_barrier(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, barrier_arrive);
}

/* ---- rwlocks ---- */

static bool is_reader(const struct sim_thread *t) {
    return t->event.op == SBT_TRACE_RWLOCK_RDLOCK || t->event.op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

static bool rw_admit(const struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    (void)sim;
    if (o->owner != NULL || (!is_reader(t) && o->n_inside > 0))
        return false;
    if (is_reader(t))
        o->n_inside++;
    else
        sim_own(o, t);
    return true;
}

static void object_sleep(struct sim *sim, struct sim_thread *t) {
    sim_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

static void rw_attempt(struct sim *sim, struct sim_thread *t) {
    if (rw_admit(sim, t, t->object)) {
        sim_return(sim, t);
        return;
    }
    sim_append(&t->object->waiters, t);
    futex(sim, t, t->object, object_sleep);
}

void sim_sw_rwlock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, rw_attempt);
}

/* Whoever may come in now, in the order they came: readers up to the first writer, or that one. */
static void rw_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (o->owner != NULL)
        sim_own(o, NULL);
    else if (o->n_inside > 0)
        o->n_inside--;
    t->targets = (struct sim_list){0};
    while (o->waiters.first != NULL && rw_admit(sim, o->waiters.first, o))
        sim_append(&t->targets, sim_shift(&o->waiters));
    t->unlocked = sim_return;
    wake_all(sim, t);
}

void sim_sw_rwunlock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, rw_release);
}

/* ---- semaphores ---- */

static void sem_attempt(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    /* In the trace it consumed no post that is there. The value at first, if that is known, is for so many of these;
     * what others consumed was a value that is not known (its init may be in a block that a killed program has not
     * written), or another process's post. */
    bool brings_its_own = t->event.order == 0 && o->n_inside == 0;
    if (t->event.order == 0 && o->n_inside > 0)
        o->n_inside--;
    if (brings_its_own || o->size > 0 || o->forgotten) {
        o->size -= !brings_its_own && o->size > 0;
        sim_return(sim, t);
        return;
    }
    sim_append(&t->object->waiters, t);
    futex(sim, t, t->object, object_sleep);
}

void sim_sw_sem_wait(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, sem_attempt);
}

static void sem_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    t->targets = (struct sim_list){0};
    if (o->waiters.first != NULL)
        sim_append(&t->targets, sim_shift(&o->waiters));
    else
        o->size++;
    t->unlocked = sim_return;
    wake_all(sim, t);
}

void sim_sw_sem_post(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, sem_release);
}

/* ---- spin locks ---- */

static void spin_attempt(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (o->owner == NULL) {
        sim_own(o, t);
        sim_return(sim, t);
        return;
    }
    sim_append(&o->waiters, t);
    t->spins = true;
    sim_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

void sim_sw_spin_lock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, spin_attempt);
}

static void spin_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    sim_own(o, sim_shift(&o->waiters));
    if (o->owner != NULL)
        sim_wake(sim, o->owner, fetch_line(sim, o->owner, o));
    sim_return(sim, t);
}

void sim_sw_spin_unlock(struct sim *sim, struct sim_thread *t) {
    attempt(sim, t, t->object, spin_release);
}
