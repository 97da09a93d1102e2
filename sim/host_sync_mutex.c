/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's mutexes.
 *
 * glibc's mutex is Drepper's: free, held, or held with a mark that threads may sleep. The owner that releases a marked
 * mutex frees it and wakes a sleeper. Until that one has a core any thread may take the mutex (barging); then the
 * sleeper marks it and sleeps again. The engine direct has a designated waker instead: while a waiter that was woken
 * has not looked, or an awake waiter will look, an unlock wakes no other; and a waiter that has waited for a
 * millisecond in vain is handed the mutex (docs/architecture.md).
 */
#include "host_sync.h"

#include "host_delegate.h"
#include "owner.h"

enum {
    LATE_NS = 50000,       /* the engine direct: a designated waker that has not looked for so long is late */
    STARVED_NS = 1000000,  /* a waiter that has lost the race is handed the mutex after that time, */
    HANDED_EVERY = 1000000 /* and the mutex is handed over at most so often */
};

static void vain_call(struct sim *sim, struct sim_thread *t) {
    t->unlocked(sim, t);
}

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
    if (sim_host_is_glibc(sim)) {
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
        sim_host_wake_a_sleeper(sim, t, m);
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
    sim_host_wake_a_sleeper(sim, t, m);
}

void sim_host_unlock(struct sim *sim, struct sim_thread *t) {
    if (sim_host_delegates(sim)) {
        sim_host_delegate_unlock(sim, t);
        return;
    }
    sim_host_touch(sim, t, t->mutex, sim->host->model.unlock_ns,
                   sim_host_is_glibc(sim) ? glibc_release : direct_release);
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
