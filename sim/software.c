/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The software-only model: section III-C of the paper, made mechanical.
 *
 * A thread acquires a mutex in these steps:
 *  1. It makes an atomic attempt in the library (t1).
 *  2. If that fails it calls the kernel, where it makes a second attempt (t2). If that fails too, it sleeps.
 *  3. The thread that releases the mutex wakes a sleeper, which costs the waker.
 *  4. The woken thread goes through its core's run queue, comes back from the kernel and makes the first attempt again
 *     (t3). It may find that a thread at t1 has just taken the mutex; then it goes on with step 2 (delta).
 *
 * A thread that wakes several threads wakes them one after another. At a condition or a barrier there is nothing to
 * attempt again: their waiters go into the kernel and sleep.
 *
 * A mark in the mutex says whether a thread is to be woken, as in Drepper's "Futexes are tricky", which the paper names
 * for this loop. A thread marks the mutex when it fails at t1, and also when it gets the mutex at t2 or t3, because it
 * cannot know of other sleepers. The thread that releases the mutex clears the mark. If there was a mark it calls the
 * kernel, even if no thread sleeps.
 *
 * Each attempt moves the object's cache line to its core: a request and a line over the mesh, by distance, and one core
 * after another. A mutex is not handed over. The paper has no rwlocks, semaphores and spin locks. Here they are handed
 * over, in the order of coming.
 */
#include "software.h"

#include "owner.h"
#include "return.h"

/* ---- costs ---- */

/* Cycles until the object's line is at this thread's core. */
static uint64_t fetch_line(struct sim *sim, const struct sim_thread *t, struct sim_object *o) {
    uint64_t now = sim_now(sim), from = o->line_free > now ? o->line_free : now, end = from;
    if (o->line_core != t->core)
        end += 2 * hw_mesh_distance(&sim->mesh, o->line_core, t->core).head_cycles + sim->config.costs.line_flits;
    o->line_core = t->core;
    o->line_free = end;
    return end - now;
}

void sim_software_attempt(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim_core_run(sim, t, sim->config.costs.attempt_ns + fetch_line(sim, t, o), then);
}

/* Into the kernel, with the second attempt. */
static void futex(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim->summary.n_futex_waits++;
    sim_core_run(sim, t, sim->config.costs.futex_ns + fetch_line(sim, t, o), then);
}

void sim_software_futex_sleep(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then) {
    sim->summary.n_futex_waits++;
    sim_core_run(sim, t, sim->config.costs.kernel_ns + fetch_line(sim, t, o), then);
}

/* ---- waking ---- */

static void wake_next(struct sim *sim, struct sim_thread *t);

static void woke_one(struct sim *sim, struct sim_thread *t) {
    struct sim_thread *target = sim_list_shift(&t->targets);
    sim->summary.n_futex_wakes++;
    sim_core_wake(sim, target, sim->config.costs.kernel_ns);
    wake_next(sim, t);
}

static void wake_next(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else
        sim_core_run(sim, t, sim->config.costs.wake_ns, woke_one);
}

void sim_software_wake_targets(struct sim *sim, struct sim_thread *t) {
    if (t->targets.first == NULL)
        t->unlocked(sim, t);
    else
        sim_core_run(sim, t, sim->config.costs.kernel_ns + sim->config.costs.wake_ns, woke_one);
}

/* ---- mutexes ---- */

static void mutex_slow(struct sim *sim, struct sim_thread *t);

static bool take(struct sim *sim, struct sim_thread *t) {
    if (t->mutex->owner != NULL)
        return false;
    sim_owner_acquired(sim, t, t->mutex);
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
    sim_software_attempt(sim, t, t->mutex, mutex_third);
}

static void mutex_slow(struct sim *sim, struct sim_thread *t) {
    t->mutex->contended = true;
    if (take(sim, t))
        return;
    sim_list_append(&t->mutex->waiters, t);
    sim_core_wait(sim, t, SIM_WHY_OBJECT, mutex_woken);
}

static void mutex_fast(struct sim *sim, struct sim_thread *t) {
    if (take(sim, t))
        return;
    t->queued_lock = t->mutex->contended = true;
    futex(sim, t, t->mutex, mutex_slow);
}

void sim_software_lock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->mutex, mutex_fast);
}

/* Sleepers without a mark: a sleeper has been woken before, and sets the mark when it gets the mutex. */
static void mutex_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    struct sim_thread *first = m->contended ? sim_list_shift(&m->waiters) : NULL;
    bool in_vain = m->contended && first == NULL;
    if (m->owner != NULL)
        sim_owner_released(sim, m);
    m->contended = false;
    t->targets = (struct sim_list){0};
    if (first != NULL)
        sim_list_append(&t->targets, first);
    if (in_vain)
        sim_core_run(sim, t, sim->config.costs.kernel_ns, t->unlocked);
    else
        sim_software_wake_targets(sim, t);
}

void sim_software_unlock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->mutex, mutex_release);
}

void sim_software_try(struct sim *sim, struct sim_thread *t, sim_then *then) {
    sim_software_attempt(sim, t, t->object, then);
}

/* ---- barriers ---- */

static void barrier_sleep(struct sim *sim, struct sim_thread *t) {
    sim_core_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

static void barrier_arrive(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (++b->n_inside < b->size) {
        sim_list_append(&b->waiters, t);
        sim_software_futex_sleep(sim, t, b, barrier_sleep);
        return;
    }
    b->n_inside = 0;
    t->targets = b->waiters;
    b->waiters = (struct sim_list){0};
    t->unlocked = sim_return;
    sim_software_wake_targets(sim, t);
}

void sim_software_barrier(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, barrier_arrive);
}

/* ---- rwlocks ---- */

static void object_sleep(struct sim *sim, struct sim_thread *t) {
    sim_core_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

static void rw_attempt(struct sim *sim, struct sim_thread *t) {
    if (sim_owner_enter(t, t->object)) {
        sim_return(sim, t);
        return;
    }
    sim_list_append(&t->object->waiters, t);
    futex(sim, t, t->object, object_sleep);
}

void sim_software_rwlock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, rw_attempt);
}

/* Admit waiters in the order of their coming: readers up to the first writer, or that writer. */
static void rw_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    sim_owner_leave(o);
    t->targets = (struct sim_list){0};
    while (o->waiters.first != NULL && sim_owner_enter(o->waiters.first, o))
        sim_list_append(&t->targets, sim_list_shift(&o->waiters));
    t->unlocked = sim_return;
    sim_software_wake_targets(sim, t);
}

void sim_software_rwunlock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, rw_release);
}

/* ---- semaphores ---- */

static void sem_attempt(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    /*
     * In the trace such a wait consumed no post. The semaphore's initial value, if it is known, is for as many of these
     * waits. Any other of them passes: it consumed a value that is not known (the init may be in a block that a killed
     * program has not written), or another process's post.
     */
    bool brings_its_own = t->event.order == 0 && o->n_inside == 0;
    if (t->event.order == 0 && o->n_inside > 0)
        o->n_inside--;
    if (brings_its_own || o->size > 0 || o->forgotten) {
        o->size -= !brings_its_own && o->size > 0;
        sim_return(sim, t);
        return;
    }
    sim_list_append(&t->object->waiters, t);
    futex(sim, t, t->object, object_sleep);
}

void sim_software_sem_wait(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, sem_attempt);
}

static void sem_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    t->targets = (struct sim_list){0};
    if (o->waiters.first != NULL)
        sim_list_append(&t->targets, sim_list_shift(&o->waiters));
    else
        o->size++;
    t->unlocked = sim_return;
    sim_software_wake_targets(sim, t);
}

void sim_software_sem_post(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, sem_release);
}

/* ---- spin locks ---- */

static void spin_attempt(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (o->owner == NULL) {
        sim_owner_set(o, t);
        sim_return(sim, t);
        return;
    }
    sim_list_append(&o->waiters, t);
    t->spins = true;
    sim_core_wait(sim, t, SIM_WHY_OBJECT, sim_return);
}

void sim_software_spin_lock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, spin_attempt);
}

static void spin_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    sim_owner_set(o, sim_list_shift(&o->waiters));
    if (o->owner != NULL)
        sim_core_wake(sim, o->owner, fetch_line(sim, o->owner, o));
    sim_return(sim, t);
}

void sim_software_spin_unlock(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, spin_release);
}

/* ---- waits that nothing would end ---- */

static void open_barrier(struct sim *sim, struct sim_object *b) {
    struct sim_list waiters = b->waiters;
    b->waiters = (struct sim_list){0};
    b->n_inside = 0;
    for (struct sim_thread *w; (w = sim_list_shift(&waiters)) != NULL;)
        sim_core_wake(sim, w, 0);
}

bool sim_software_pass(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    if (t->event.op == SBT_TRACE_BARRIER_WAIT) {
        open_barrier(sim, o);
        return true;
    }
    if (!sim_list_remove(&o->waiters, t))
        return false;
    if (o->kind == SBT_TRACE_SPIN) {
        sim_owner_set(o, t);
    } else if (o->kind == SBT_TRACE_RWLOCK) {
        sim_owner_set(o, NULL);
        o->n_inside = 0;
        sim_owner_enter(t, o);
    }
    sim_core_wake(sim, t, 0);
    return true;
}
