/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's primitives: mutexes, barriers, rwlocks, semaphores and spin locks.
 *
 * glibc's mutex is Drepper's: free, held, or held with a mark that threads may sleep. The owner that releases a marked
 * mutex frees it and wakes a sleeper. Until that one has a core any thread may take the mutex (barging); then the
 * sleeper marks it and sleeps again. The engine direct has a designated waker instead: while a waiter that was woken
 * has not looked, or an awake waiter will look, an unlock wakes no other; and a waiter that has waited for a
 * millisecond in vain is handed the mutex (docs/architecture.md).
 *
 * A barrier's last arrival wakes all sleepers with one call, one after another. A read-write lock admits readers while
 * no writer has it, as glibc's default does; the release of a writer admits all waiting readers. A semaphore's post
 * adds 1 and wakes a sleeper, which competes with others. A spin lock is taken by the first waiter that sees it free,
 * and a waiter that has lost its core cannot see it.
 */
#include "host_sync.h"

#include "host_delegate.h"
#include "owner.h"
#include "return.h"

enum {
    LATE_NS = 50000,       /* the engine direct: a designated waker that has not looked for so long is late */
    STARVED_NS = 1000000,  /* a waiter that has lost the race is handed the mutex after that time, */
    HANDED_EVERY = 1000000 /* and the mutex is handed over at most so often */
};

static bool is_glibc(const struct sim *sim) {
    return sim->config.sync == SIM_GLIBC;
}

void sim_host_pay(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then) {
    sim_host_run(sim, t, ns, then);
}

static void wake_a_sleeper(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    t->targets = (struct sim_list){0};
    struct sim_thread *first = sim_list_shift(&o->waiters);
    if (first != NULL)
        sim_list_append(&t->targets, first);
    sim_host_wake_targets(sim, t);
}

static void vain_call(struct sim *sim, struct sim_thread *t) {
    t->unlocked(sim, t);
}

/* ---- mutexes ---- */

/* The waiter has looked: unlocks do not rely on it any more. */
static void has_looked(struct sim_thread *t, struct sim_object *m) {
    if (t->host.notified)
        m->n_notified--;
    t->host.notified = false;
}

static void mutex_look(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (t->host.handed || m->owner == NULL) {
        has_looked(t, m);
        m->contended = true; /* glibc: other threads may sleep */
        m->active = false;   /* it may have been this thread's promise to look */
        if (!t->host.handed)
            sim_owner_acquired(sim, t, m);
        t->host.handed = false;
        sim_host_wait_end(sim, t);
        t->locked(sim, t);
        return;
    }
    m->contended = true;
    if (!t->host.parked) {
        sim_host_wait_on(sim, t);
        return;
    }
    sim->summary.n_lost_races++;
    has_looked(t, m);
    t->host.lost = true;
    if (is_glibc(sim)) {
        t->host.parked = t->host.parks = false;
        sim_host_wait_on(sim, t);
    } else {
        sim_host_wait_again(sim, t);
    }
}

static void mutex_try(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->owner == NULL) {
        sim_owner_acquired(sim, t, m);
        t->locked(sim, t);
        return;
    }
    t->queued_lock = true;
    sim_host_wait_begin(sim, t, m, SIM_WHY_OBJECT, true, mutex_look);
    m->contended = true;
    sim_host_wait_on(sim, t);
}

void sim_host_lock(struct sim *sim, struct sim_thread *t) {
    if (sim_host_delegates(sim))
        sim_host_delegate_lock(sim, t);
    else
        sim_host_touch(sim, t, t->mutex, sim->host->model.lock_ns, mutex_try);
}

bool sim_host_requeue(struct sim *sim, struct sim_thread *t, sim_then *then) {
    struct sim_object *m = t->mutex;
    if (m->owner == NULL || sim->config.recorded_order || sim_host_delegates(sim)) /* there it travels by itself */
        return false;
    sim_host_wait_end(sim, t);
    t->locked = then;
    t->queued_lock = true;
    t->host.what = m;
    t->why = t->host.why = SIM_WHY_OBJECT;
    t->host.look = mutex_look;
    t->host.since = sim_now(sim);
    m->active = false; /* the owner may have made that promise before it had the mutex */
    sim_list_append(&m->waiters, t);
    return true;
}

static void glibc_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    bool call = m->contended;
    if (m->owner != NULL)
        sim_owner_released(sim, m);
    m->contended = false;
    sim_host_notice(sim, m, false); /* threads that poll */
    if (!call)
        t->unlocked(sim, t);
    else if (m->waiters.first == NULL)
        sim_host_run(sim, t, sim->host->model.futex_wake_ns, vain_call);
    else
        wake_a_sleeper(sim, t, m);
}

/* May an unlock rely on a waiter that is awake, or was woken? */
static bool another_looks(struct sim *sim, struct sim_object *m) {
    uint64_t now = sim_now(sim);
    if (m->n_notified > 0)
        return now - m->notified_at < (uint64_t)LATE_NS << (m->n_notified < 8 ? m->n_notified - 1 : 7);
    bool active = m->active;
    m->active = false;
    return active;
}

/*
 * The mutex is one for which threads poll, and perhaps look before that without a call. So the thread gives its core
 * away: a fiber to others of its carrier, a thread if threads outnumber cores.
 */
static void spun_unlocked(struct sim *sim, struct sim_thread *t) {
    bool spare = sim_host_cores_to_spare(sim, t);
    if (sim->host->fibers && !spare ? sim_host_others_ready(sim, t) : t->host.spun_by_any && !spare)
        sim_host_offer(sim, t, t->host.unlocked);
    else
        t->host.unlocked(sim, t);
}

static void expect_spinning(struct sim_thread *t, struct sim_object *m) {
    t->host.spun_by_any = m->spun_by_any;
    if (--m->spun_credit == 0)
        m->spun_by_any = false;
    t->host.unlocked = t->unlocked;
    t->unlocked = spun_unlocked;
}

static void direct_release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    uint64_t now = sim_now(sim);
    if (m->spun_credit > 0)
        expect_spinning(t, m);
    if (m->owner != NULL)
        sim_owner_released(sim, m);
    m->contended = false;
    sim_host_notice(sim, m, false);
    struct sim_thread *first = m->waiters.first;
    if (first == NULL || another_looks(sim, m)) {
        t->unlocked(sim, t);
        return;
    }
    first->host.notified = true;
    m->n_notified++;
    m->notified_at = now;
    if (first->host.lost && now - first->host.since >= STARVED_NS && now - m->handed_at >= HANDED_EVERY) {
        m->handed_at = now;
        first->host.handed = true;
        sim_owner_acquired(sim, first, m);
    }
    wake_a_sleeper(sim, t, m);
}

void sim_host_unlock(struct sim *sim, struct sim_thread *t) {
    if (sim_host_delegates(sim)) {
        sim_host_delegate_unlock(sim, t);
        return;
    }
    sim_host_touch(sim, t, t->mutex, sim->host->model.unlock_ns, is_glibc(sim) ? glibc_release : direct_release);
}

/* ---- mutexes that are polled ---- */

enum { POLLS_BEFORE_YIELD = 4 }; /* the engine direct: DIRECT_TRYLOCKS_BEFORE_YIELD */

static void poll_look(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->owner != NULL) {
        uint64_t each = t->host.poll_ns + sim->host->model.atomic_ns;
        t->spins = t->queued_lock = true;
        t->why = SIM_WHY_OBJECT;
        sim_host_wait_spin(sim, t, m, POLLS_BEFORE_YIELD * each, each, poll_look);
        return;
    }
    t->spins = false;
    t->host.since = 0;
    sim_owner_acquired(sim, t, m);
    t->locked(sim, t);
}

void sim_host_poll_lock(struct sim *sim, struct sim_thread *t, struct sim_object *m, sim_then *then) {
    t->mutex = m;
    t->locked = then;
    t->queued_lock = false;
    t->host.poll_ns += t->host.poll_ns == 0;
    sim_host_touch(sim, t, m, sim->host->model.lock_ns, poll_look);
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
    if (is_glibc(sim) && t->targets.first == NULL) /* it calls the kernel in any case */
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
    wake_a_sleeper(sim, t, o);
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
