/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions in hardware: libsubutai/engine/ni/cond.c in virtual time. A replay adds two cases.
 *  - The hardware wakes the waiter that came first. In the trace the signal may have woken another thread. If a
 *    woken thread's own signal is still to come, the thread does what a program does when its predicate is false: it
 *    waits again. Before that it passes the wake-up on with a SIGNAL, if the signal of another waiter has happened.
 *  - Lock order is free, so a signal can reach its NI before the wait that it ended in the trace. Then another SIGNAL
 *    follows that wait.
 *
 * Both are counted (n_passed_on).
 */
#include "request_cond.h"

#include "again.h"
#include "broadcast.h"
#include "mutex.h"
#include "noc.h"
#include "owner.h"
#include "primitive.h"
#include "return.h"
#include "signals.h"
#include "software_cond.h"

static void wait_again(struct sim *sim, struct sim_thread *t);

/*
 * Does the queue have a waiter for a signal that has happened? number: only a waiter for this signal counts; 0: any
 * waiter.
 */
static bool waiter_is_due(const struct sim_object *c, uint64_t number) {
    for (const struct sim_thread *w = c->queued.first; w != NULL; w = w->next)
        if (number != 0 ? w->awaited == number : sim_signals_has(c, w->awaited))
            return true;
    return false;
}

/* The thread was woken and holds the mutex. Was the wake-up meant for it? */
static void wait_granted(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool over = sim_signals_has(c, t->awaited);
    if (sim_object_has_id(c) && waiter_is_due(c, over ? t->awaited : 0)) {
        sim->summary.n_passed_on++;
        sim_noc_post(sim, t, HW_OP_SIGNAL, c, c->id);
    }
    if (!over)
        wait_again(sim, t);
    else if (t->uncounted) /* recorded order: other acquisitions come first */
        sim_mutex_unlock(sim, t, t->mutex, wait_again);
    else
        sim_return(sim, t);
}

static void wait_locked(struct sim *sim, struct sim_thread *t) {
    if (sim_signals_has(t->object, t->awaited))
        sim_return(sim, t);
    else
        wait_granted(sim, t);
}

static void take_again(struct sim *sim, struct sim_thread *t) {
    t->uncounted = false;
    sim_mutex_lock(sim, t, t->mutex, wait_locked);
}

static void wait_again(struct sim *sim, struct sim_thread *t) {
    t->uncounted = false;
    if (t->mutex->owner == t)
        sim_request_cond_wait(sim, t);
    else
        take_again(sim, t);
}

static void pause_unlocked(struct sim *sim, struct sim_thread *t) {
    sim_again_wait(sim, t, SIM_WHY_SIGNAL, take_again);
}

static void wait_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    sim_broadcast_listen_end(sim, t);
    switch (answer.op) {
    case HW_OP_GRANT:
        wait_granted(sim, t);
        break;
    case HW_OP_WOKEN: /* there was no element, and the next wait would find none either */
        t->woken = true;
        take_again(sim, t);
        break;
    case HW_OP_AGAIN: /* the paper's EAGAIN, with the mutex held: threads that want the mutex may have all elements */
        t->uncounted = true;
        sim_owner_acquired(sim, t, t->mutex);
        sim_mutex_unlock(sim, t, t->mutex, pause_unlocked);
        break;
    default: /* refused as stale: the mutex is still held */
        if (answer.op == HW_OP_NACK && t->object->id == answer.primitive)
            t->object->evicted = true;
        t->uncounted = true;
        sim_owner_acquired(sim, t, t->mutex);
        sim_core_run(sim, t, 0, sim_request_cond_wait);
    }
}

static bool is_bound(const struct sim *sim, const struct sim_object *c, uint32_t mutex) {
    return sim_object_has_id(c) && !c->evicted && hw_id_is_bound_to(&sim->layout, c->id, mutex);
}

static void wait_post(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object, *m = t->mutex;
    if (sim_signals_has(c, t->awaited)) { /* its signal happened while the thread got a primitive */
        if (sim->config.recorded_order)
            sim_mutex_unlock(sim, t, m, wait_again); /* another acquisition may come first */
        else
            sim_return(sim, t);
        return;
    }
    if (!is_bound(sim, c, m->id)) { /* there is no primitive: this wait is software's */
        sim_software_cond_wait(sim, t);
        return;
    }
    t->uncounted = false;
    sim_owner_released(sim, m);
    sim_broadcast_listen(sim, t, c);
    sim_noc_post(sim, t, HW_OP_COND_WAIT, c, c->id);
    sim_core_wait(sim, t, SIM_WHY_SIGNAL, wait_answered);
}

void sim_request_cond_wait(struct sim *sim, struct sim_thread *t) {
    bool woken = t->woken;
    t->woken = false;
    if (woken)
        sim_software_cond_wait(sim, t);
    else if (is_bound(sim, t->object, t->mutex->id))
        wait_post(sim, t);
    else
        sim_primitive_obtain_condition(sim, t, t->object, t->mutex->id, wait_post);
}

static void broadcast_sent(struct sim *sim, struct sim_thread *t) {
    if (t->object->waiters.first != NULL) /* software has waiters too */
        sim_software_cond_signal(sim, t);
    else
        sim_return(sim, t);
}

void sim_request_cond_signal(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool signal = t->event.op == SBT_TRACE_COND_SIGNAL;
    /*
     * Counted now, and not after software's attempt: a thread that gets an ID during that attempt, and waits, would not
     * be looked for in an NI.
     */
    sim_signals_add(sim, c, t->event.order);
    sim_again_signalled(sim, c);
    if (c->id == 0 && c->waiters.first == NULL) { /* no thread waits, and the library sees that */
        t->kind = SIM_WAKE_SKIPPED;
        sim_return(sim, t);
        return;
    }
    if (!sim_object_has_id(c)) {
        sim_software_cond_signal(sim, t);
        return;
    }
    if (!signal && sim_broadcast_condition(sim, t, broadcast_sent))
        return;
    sim_noc_post(sim, t, signal ? HW_OP_SIGNAL : HW_OP_BROADCAST, c, c->id);
    if (c->waiters.first != NULL) /* software has waiters too */
        sim_core_run(sim, t, sim->hw.timing.handover_cycles, sim_software_cond_signal);
    else
        sim_return_after(sim, t, sim->hw.timing.handover_cycles);
}
