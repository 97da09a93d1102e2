/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "software_cond.h"

#include "broadcast.h"
#include "core.h"
#include "mutex.h"
#include "return.h"
#include "signals.h"
#include "software.h"

static void cond_relocked(struct sim *sim, struct sim_thread *t) {
    if (sim_signals_has(t->object, t->awaited))
        sim_return(sim, t);
    else
        sim_software_cond_wait(sim, t); /* another thread's broadcast woke it */
}

static void cond_woken(struct sim *sim, struct sim_thread *t) {
    sim_broadcast_listen_end(sim, t);
    if (t->mutex != NULL)
        sim_mutex_lock(sim, t, t->mutex, cond_relocked);
    else
        cond_relocked(sim, t);
}

/* The wait is over at once if a waker came while the thread was on its way into the kernel. */
static void cond_sleep(struct sim *sim, struct sim_thread *t) {
    sim_core_wait(sim, t, SIM_WHY_SIGNAL, cond_woken);
}

static void cond_futex(struct sim *sim, struct sim_thread *t) {
    sim_software_futex_sleep(sim, t, t->object, cond_sleep);
}

void sim_software_cond_wait(struct sim *sim, struct sim_thread *t) {
    if (sim->config.sync == SIM_OPTICAL && t->object->kind == SBT_TRACE_COND)
        sim_broadcast_listen(sim, t, t->object);
    sim_list_append(&t->object->waiters, t);
    sim_mutex_unlock(sim, t, t->mutex, cond_futex);
}

/* A wake-up of a futex calls the kernel in any case. */
static void signalled(struct sim *sim, struct sim_thread *t) {
    sim_signals_wake(sim, t);
    t->unlocked = sim_return;
    if (t->event.op == SBT_TRACE_FUTEX_WAKE && t->targets.first == NULL)
        sim_core_run(sim, t, sim->config.costs.kernel_ns, sim_return);
    else if (t->event.op != SBT_TRACE_COND_BROADCAST || !sim_broadcast_targets(sim, t, sim_return))
        sim_software_wake_targets(sim, t);
}

void sim_software_cond_signal(struct sim *sim, struct sim_thread *t) {
    sim_software_attempt(sim, t, t->object, signalled);
}
