/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions on the host.
 *
 * A signal wakes the waiter that it woke in the trace, or one that is there in its place (signals.h). Under glibc a
 * broadcast wakes all waiters, with one call, and all of them want the mutex: while it is held, each of them runs only
 * to sleep again in its queue, and each unlock wakes the next. (Up to 2.24 glibc moved them to that queue in the
 * kernel.) Under the engine direct the first is woken if a core may be idle, and other waiters that sleep are moved to
 * the mutex's queue while the mutex is held, and its unlocks wake one at a time.
 */
#include "host_cond.h"

#include "core.h"
#include "host_poll.h"
#include "host_sync.h"
#include "mutex.h"
#include "owner.h"
#include "page.h"
#include "return.h"
#include "signals.h"

static void host_relocked(struct sim *sim, struct sim_thread *t) {
    if (t->mutex != NULL)
        t->mutex->contended = true; /* glibc does not know whether others sleep; so the unlock calls the kernel */
    if (sim_signals_has(t->object, t->awaited)) {
        sim_return(sim, t);
        return;
    }
    if (t->mutex != NULL)
        sim_owner_uncount(sim, t->mutex);
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
 * The engine direct: a waiter with a mutex that is held is not woken, unless it is the first and there are several
 * cores. Its lock is begun for it, so that it is in the mutex's queue, asleep.
 */
static void requeue_targets(struct sim *sim, struct sim_thread *t) {
    struct sim_list targets = t->targets;
    bool wakes = sim->config.sync == SIM_DIRECT && sim->n_cores > 1;
    t->targets = (struct sim_list){0};
    for (struct sim_thread *w; (w = sim_list_shift(&targets)) != NULL; wakes = false)
        if (w->mutex == NULL || wakes || !sim_host_requeue(sim, w, host_relocked))
            sim_list_append(&t->targets, w);
}

/* For the mutex of the condition's waits. */
static void count_signal(struct sim *sim, const struct sim_thread *t) {
    uint32_t guard = t->object->guard;
    struct sim_object *m = guard > 0 ? sim_page_object(sim, t->app, guard - 1) : NULL;
    if (m != NULL)
        m->n_signals++;
}

static void host_signalled(struct sim *sim, struct sim_thread *t) {
    sim_signals_wake(sim, t);
    count_signal(sim, t);
    sim_host_poll_signalled(sim, t->object);
    if (sim->config.sync != SIM_GLIBC)
        requeue_targets(sim, t);
    t->unlocked = sim_return;
    sim_host_notice(sim, t->object, true);
    /* A wake-up of a futex calls the kernel in any case, but under the engine direct, which knows its waiters. */
    if (t->event.op == SBT_TRACE_FUTEX_WAKE && sim->config.sync == SIM_GLIBC && t->targets.first == NULL)
        sim_host_run(sim, t, sim->host->model.futex_wake_ns, sim_return);
    else
        sim_host_wake_targets(sim, t);
}

void sim_host_cond_signal(struct sim *sim, struct sim_thread *t) {
    sim_host_touch(sim, t, t->object, sim->host->model.cond_ns, host_signalled);
}
