/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions on the host.
 *
 * A signal wakes the waiter that it woke in the trace. Under glibc a broadcast wakes all waiters, with one call, and
 * all of them want the mutex: while it is held, each of them runs only to sleep again in its queue, and each unlock
 * wakes the next. (Up to 2.24 glibc moved them to that queue in the kernel.) Under the engine direct, waiters that
 * sleep are moved to the mutex's queue while the mutex is held, and its unlocks wake one at a time.
 */
#include "host_cond.h"

#include "host_sync.h"
#include "mutex.h"
#include "return.h"
#include "signals.h"

static void host_relocked(struct sim *sim, struct sim_thread *t) {
    if (t->mutex != NULL)
        t->mutex->contended = true; /* glibc does not know whether others sleep; so the unlock calls the kernel */
    if (sim_signals_has(t->object, t->awaited))
        sim_return(sim, t);
    else
        sim_host_cond_wait(sim, t); /* another thread's broadcast woke it */
}

static void relock(struct sim *sim, struct sim_thread *t) {
    if (t->mutex != NULL)
        sim_mutex_lock(sim, t, t->mutex, host_relocked);
    else
        host_relocked(sim, t);
}

static void cond_look(struct sim *sim, struct sim_thread *t) {
    if (t->host.handed || t->host.parked || sim_signals_has(t->object, t->awaited)) {
        t->host.handed = false;
        sim_host_wait_end(sim, t);
        relock(sim, t);
    } else {
        sim_host_wait_on(sim, t);
    }
}

static void cond_unlocked(struct sim *sim, struct sim_thread *t) {
    sim_host_wait_on(sim, t);
}

void sim_host_cond_wait(struct sim *sim, struct sim_thread *t) {
    sim_host_wait_begin(sim, t, t->object, SIM_WHY_SIGNAL, false, cond_look);
    sim_mutex_unlock(sim, t, t->mutex, cond_unlocked);
}

/*
 * The waiters that are to be woken. Under the engine direct, and with a mutex that is held, a waiter's lock is begun
 * for it: it is in the mutex's queue, asleep.
 */
static void choose_targets(struct sim *sim, struct sim_thread *t, struct sim_object *c) {
    bool all = t->event.op == SBT_TRACE_COND_BROADCAST;
    struct sim_list waiters = c->waiters;
    c->waiters = t->targets = (struct sim_list){0};
    for (struct sim_thread *w; (w = sim_list_shift(&waiters)) != NULL;) {
        if (!all && !sim_signals_has(c, w->awaited))
            sim_list_append(&c->waiters, w);
        else if (sim->config.sync == SIM_GLIBC || w->mutex == NULL || !sim_host_requeue(sim, w, host_relocked))
            sim_list_append(&t->targets, w);
    }
}

static void host_signalled(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    sim_signals_add(sim, c, t->event.order);
    choose_targets(sim, t, c);
    t->unlocked = sim_return;
    sim_host_notice(sim, c, true);
    sim_host_wake_targets(sim, t);
}

void sim_host_cond_signal(struct sim *sim, struct sim_thread *t) {
    sim_host_touch(sim, t, t->object, sim->host->model.cond_ns, host_signalled);
}
