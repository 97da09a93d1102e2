/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls on conditions: which machine serves them, and waits that no signal ended. */
#include "call_cond.h"

#include "call_attempt.h"
#include "core.h"
#include "host_cond.h"
#include "host_sync.h"
#include "mutex.h"
#include "owner.h"
#include "page.h"
#include "request_cond.h"
#include "return.h"
#include "signals.h"
#include "software_cond.h"

#include <errno.h>

static void wait_ended(struct sim *sim, struct sim_thread *t) {
    if (t->mutex != NULL)
        sim_mutex_lock(sim, t, t->mutex, sim_return);
    else
        sim_return(sim, t);
}

/* The mutex has been released: for as long as the wait took until it timed out, or for a moment. */
static void wait_without_signal(struct sim *sim, struct sim_thread *t) {
    if (t->event.result == ETIMEDOUT) {
        sim_core_wake_at(sim, t, sim_now(sim) + t->event.took_ns);
        sim_core_wait(sim, t, SIM_WHY_TIME, wait_ended);
    } else {
        wait_ended(sim, t);
    }
}

/* Has the wait been refused, before it touched the mutex? */
static bool is_refused(const struct sbt_trace_event *event) {
    return event->result == EINVAL || event->result == EPERM;
}

void sim_call_wait(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object, *m = NULL;
    t->mutex = NULL;
    if (is_refused(&t->event)) {
        t->kind = SIM_COND_WAIT;
        sim_call_attempt(sim, t, sim_return);
        return;
    }
    if (t->event.other != SBT_TRACE_NONE && (m = sim_page_object(sim, t->app, t->event.other)) == NULL)
        return;
    if (m != NULL &&
        (m->owner != t ||
         m->kind != SBT_TRACE_MUTEX)) { /* the lock may be in a block that a killed program has not written */
        sim_deviates(sim, SIM_NOT_HELD);
        m = NULL;
    }
    if (m != NULL) {
        m->n_calls++;
        if (sim->config.sync == SIM_GLIBC)
            sim_owner_guards(m, c);
    }
    t->mutex = m;
    t->order = t->event.relock;
    t->awaited = t->event.order;
    t->kind = SIM_COND_WAIT;
    bool over = t->awaited != 0 && sim_signals_has(c, t->awaited);
    if (over && !sim->config.recorded_order) {
        t->kind = SIM_COND_SKIPPED;
        if (m != NULL)
            sim_owner_left_out(sim, m);
        sim_return(sim, t);
    } else if (over || t->awaited == 0) {
        sim_mutex_unlock(sim, t, m, wait_without_signal);
    } else if (sim_on_host(sim)) {
        sim_host_cond_wait(sim, t);
    } else if (m != NULL && sim_mutex_in_hardware(sim, m)) {
        sim_request_cond_wait(sim, t);
    } else {
        sim_software_cond_wait(sim, t);
    }
}

void sim_call_signal(struct sim *sim, struct sim_thread *t) {
    t->kind = t->event.op == SBT_TRACE_COND_SIGNAL ? SIM_SIGNAL : SIM_BROADCAST;
    if (sim_on_host(sim))
        sim_host_cond_signal(sim, t);
    else if (sim_sync_has_nis(sim->config.sync))
        sim_request_cond_signal(sim, t);
    else
        sim_software_cond_signal(sim, t);
}
