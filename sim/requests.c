/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects in requests: what libsubutai/engine/ni/mutex.c, cond.c and barrier.c do, in virtual time.
 *
 * Conditions have one thing to add. The hardware wakes whoever waits first; in the trace the signal may have been
 * another thread's. A woken thread whose own signal has not happened does what a program does whose predicate does not
 * hold, it waits again; and if somebody waits whose signal has happened, it passes the wake-up on first. A signal can
 * also reach its NI before the wait that it ended in the trace, since lock order is free: then that wait is followed by
 * another signal. Both are counted (n_passed_on).
 */
#include "model.h"

enum { AGAIN_CYCLES = 1000 };

/*
 * It has its core for so long and goes on. When its call ends with that, and nobody is there who could take its core
 * and make the call a longer one, that time and the work after it are one step. What another that becomes ready within
 * those few ns takes counts as if it had come with the work.
 */
static void go_on_after(struct sim *sim, struct sim_thread *t, uint32_t cycles, sim_then *then) {
    if (then == sim_return && sim->cores[t->core].sched.n_ready == 0)
        sim_return_after(sim, t, cycles);
    else
        sim_run_for(sim, t, cycles, then);
}

/* Refused: for the ID that the object still has, or has it another one by now? */
static bool is_stale(const struct sim_object *o, const struct hw_message *answer) {
    return o->evicted || o->id == answer->primitive;
}

/* ---- without a queue element, on the paper's chip ---- */

/*
 * Who is told AGAIN tries again each AGAIN_CYCLES. The times at which that is in vain are left out, since a replay that
 * is stuck must come to rest: who wants a mutex or a barrier is parked until its NI has room, and a condition's waiter
 * until its signal happens, for until then it would do nothing but ask for an element, and take it from others.
 */
static void try_again(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then) {
    bool waits = why == SIM_WHY_SIGNAL;
    if (waits ? sim_has_happened(t->object, t->awaited) : sim->tiles[t->refused_by].n_rooms != t->refused_room) {
        sim_run_for(sim, t, AGAIN_CYCLES, then);
        return;
    }
    t->parked_from = sim_now(sim);
    sim_append(&sim->parked, t);
    sim_wait(sim, t, why, then);
}

/* Those that `tile` has refused, and those that wait for a signal of `condition` that has happened. */
static void unpark(struct sim *sim, const struct sim_tile *tile, const struct sim_object *condition) {
    struct sim_list parked = sim->parked;
    sim->parked = (struct sim_list){0};
    for (struct sim_thread *t; (t = sim_shift(&parked)) != NULL;) {
        bool may = t->why == SIM_WHY_SIGNAL ? t->object == condition && sim_has_happened(condition, t->awaited)
                                            : &sim->tiles[t->refused_by] == tile;
        uint64_t n = (sim_now(sim) - t->parked_from) / AGAIN_CYCLES + 1;
        if (may)
            sim_wake_at(sim, t, t->parked_from + n * AGAIN_CYCLES);
        else
            sim_append(&sim->parked, t);
    }
}

void sim_hw_room(struct sim *sim, const struct sim_tile *tile) {
    unpark(sim, tile, NULL);
}

/* ---- mutexes ---- */

static void lock_answered(struct sim *sim, struct sim_thread *t) {
    if (hw_packet_op(&t->answer) == HW_OP_GRANT) {
        t->queued_lock = hw_packet_argument(&t->answer) == 1;
        t->n_obtained = 0;
        t->uncounted = false;
        t->locked(sim, t);
        return;
    }
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_AGAIN) { /* the paper's EAGAIN, to a caller that tries again */
        try_again(sim, t, SIM_WHY_OBJECT, sim_hw_lock);
    } else if (is_stale(t->mutex, &answer)) {
        sim_obtain(sim, t, t->mutex, t->mutex->id, HW_OP_ALLOC_MUTEX, 0, sim_hw_lock);
    } else { /* it has another ID by now */
        sim_hw_lock(sim, t);
    }
}

void sim_hw_lock(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->id == 0) {
        sim_obtain(sim, t, m, 0, HW_OP_ALLOC_MUTEX, 0, sim_hw_lock);
        return;
    }
    if (m->id == SIM_ID_SOFTWARE) {
        sim_sw_lock(sim, t);
        return;
    }
    sim_post(sim, t, HW_OP_LOCK, m, m->id);
    sim_wait(sim, t, SIM_WHY_OBJECT, lock_answered);
}

/* Nobody answers: the caller goes on when it has handed the request over. */
void sim_hw_unlock(struct sim *sim, struct sim_thread *t) {
    sim_released(sim, t, t->mutex);
    sim_post(sim, t, HW_OP_UNLOCK, t->mutex, t->mutex->id);
    go_on_after(sim, t, sim->hw.timing.handover_cycles, t->unlocked);
}

static void try_answered(struct sim *sim, struct sim_thread *t);

static void try_post(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->object;
    if (m->id == 0) {
        sim_obtain(sim, t, m, 0, HW_OP_ALLOC_MUTEX, 0, try_post);
    } else if (m->id == SIM_ID_SOFTWARE) {
        sim_sw_try(sim, t, t->locked);
    } else {
        sim_post(sim, t, HW_OP_TRYLOCK, m, m->id);
        sim_wait(sim, t, SIM_WHY_ANSWER, try_answered);
    }
}

static void try_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_NACK && is_stale(t->object, &answer)) {
        sim_obtain(sim, t, t->object, t->object->id, HW_OP_ALLOC_MUTEX, 0, try_post);
    } else if (answer.op == HW_OP_NACK) {
        try_post(sim, t);
    } else {
        t->n_obtained = 0;
        if (answer.op == HW_OP_GRANT) /* another order than in the trace; nobody has seen it */
            sim_post(sim, t, HW_OP_UNLOCK, t->object, t->object->id);
        t->locked(sim, t);
    }
}

void sim_hw_try(struct sim *sim, struct sim_thread *t, sim_then *then) {
    t->locked = then;
    try_post(sim, t);
}

/* ---- conditions ---- */

static void wait_again(struct sim *sim, struct sim_thread *t);

/* Is there somebody in the queue whose signal has happened? Of those with the thread's own number, or of any. */
static bool somebody_is_due(const struct sim_object *c, uint64_t number) {
    for (const struct sim_thread *w = c->queued.first; w != NULL; w = w->next)
        if (number != 0 ? w->awaited == number : sim_has_happened(c, w->awaited))
            return true;
    return false;
}

/* It holds the mutex. Was it meant? */
static void wait_granted(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool over = sim_has_happened(c, t->awaited);
    if (sim_is_id(c->id) && somebody_is_due(c, over ? t->awaited : 0)) {
        sim->summary.n_passed_on++;
        sim_post(sim, t, HW_OP_SIGNAL, c, c->id);
    }
    if (!over)
        wait_again(sim, t);
    else if (t->uncounted) /* recorded order: others are first */
        sim_unlock(sim, t, t->mutex, wait_again);
    else
        sim_return(sim, t);
}

static void wait_locked(struct sim *sim, struct sim_thread *t) {
    if (sim_has_happened(t->object, t->awaited))
        sim_return(sim, t);
    else
        wait_granted(sim, t);
}

static void take_again(struct sim *sim, struct sim_thread *t) {
    t->uncounted = false;
    sim_lock(sim, t, t->mutex, wait_locked);
}

static void wait_again(struct sim *sim, struct sim_thread *t) {
    t->uncounted = false;
    if (t->mutex->owner == t)
        sim_hw_cond_wait(sim, t);
    else
        take_again(sim, t);
}

static void pause_without(struct sim *sim, struct sim_thread *t) {
    try_again(sim, t, SIM_WHY_SIGNAL, take_again);
}

static void wait_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    switch (answer.op) {
    case HW_OP_GRANT:
        wait_granted(sim, t);
        break;
    case HW_OP_WOKEN: /* for want of an element, which it would not find again */
        t->woken = true;
        take_again(sim, t);
        break;
    case HW_OP_AGAIN: /* the paper's EAGAIN, with the mutex held: all elements may be taken by those that want it */
        t->uncounted = true;
        sim_acquired(sim, t, t->mutex);
        sim_unlock(sim, t, t->mutex, pause_without);
        break;
    default: /* refused as stale: the mutex is still held */
        if (answer.op == HW_OP_NACK && t->object->id == answer.primitive)
            t->object->evicted = true;
        t->uncounted = true;
        sim_acquired(sim, t, t->mutex);
        sim_run_for(sim, t, 0, sim_hw_cond_wait);
    }
}

static bool is_bound(const struct sim *sim, const struct sim_object *c, uint32_t mutex) {
    return sim_is_id(c->id) && !c->evicted && hw_id_is_bound_to(&sim->layout, c->id, mutex);
}

static void wait_post(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object, *m = t->mutex;
    if (sim_has_happened(c, t->awaited)) { /* meanwhile */
        if (sim->config.recorded_order)
            sim_unlock(sim, t, m, wait_again); /* whose turn it is may be another's */
        else
            sim_return(sim, t);
        return;
    }
    if (!is_bound(sim, c, m->id)) { /* no element for it: this wait is software's */
        sim_sw_cond_wait(sim, t);
        return;
    }
    t->uncounted = false;
    sim_released(sim, t, m);
    sim_post(sim, t, HW_OP_COND_WAIT, c, c->id);
    sim_wait(sim, t, SIM_WHY_SIGNAL, wait_answered);
}

void sim_hw_cond_wait(struct sim *sim, struct sim_thread *t) {
    bool woken = t->woken;
    t->woken = false;
    if (woken)
        sim_sw_cond_wait(sim, t);
    else if (is_bound(sim, t->object, t->mutex->id))
        wait_post(sim, t);
    else
        sim_obtain_condition(sim, t, t->object, t->mutex->id, wait_post);
}

void sim_hw_signal(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool signal = t->event.op == SBT_TRACE_COND_SIGNAL;
    /* Also before software's attempt: who obtains an ID during that, and waits, would not be looked for in an NI. */
    sim_happened(sim, c, t->event.order);
    if (sim->parked.first != NULL)
        unpark(sim, NULL, c);
    if (c->id == 0 && c->waiters.first == NULL) { /* nobody waits anywhere, and the library sees that */
        t->kind = SIM_WAKE_SKIPPED;
        sim_return(sim, t);
        return;
    }
    if (!sim_is_id(c->id)) {
        sim_sw_signal(sim, t);
        return;
    }
    sim_post(sim, t, signal ? HW_OP_SIGNAL : HW_OP_BROADCAST, c, c->id);
    if (c->waiters.first != NULL) /* both have waiters */
        sim_run_for(sim, t, sim->hw.timing.handover_cycles, sim_sw_signal);
    else
        sim_return_after(sim, t, sim->hw.timing.handover_cycles);
}

/* ---- barriers ---- */

static void barrier_answered(struct sim *sim, struct sim_thread *t) {
    if (hw_packet_op(&t->answer) == HW_OP_RELEASE) {
        uint32_t resume = hw_packet_ends_wait(&t->answer) ? sim->hw.timing.resume_cycles : 0;
        t->n_obtained = 0;
        go_on_after(sim, t, resume, sim_return);
        return;
    }
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_AGAIN) {
        try_again(sim, t, SIM_WHY_OBJECT, sim_hw_barrier);
    } else if (is_stale(t->object, &answer)) {
        sim_obtain(sim, t, t->object, t->object->id, HW_OP_ALLOC_BARRIER, t->object->size, sim_hw_barrier);
    } else {
        sim_hw_barrier(sim, t);
    }
}

void sim_hw_barrier(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (b->id == 0 && (b->size > 65535 || b->size - 1 > sim->hw.n_queue)) {
        b->id = SIM_ID_SOFTWARE; /* there is no NI that it would fit into */
        sim->summary.n_software_objects++;
    }
    if (b->id == 0) {
        sim_obtain(sim, t, b, 0, HW_OP_ALLOC_BARRIER, b->size, sim_hw_barrier);
        return;
    }
    if (b->id == SIM_ID_SOFTWARE) {
        sim_sw_barrier(sim, t);
        return;
    }
    sim_post(sim, t, HW_OP_BARRIER_WAIT, b, b->id);
    sim_wait(sim, t, SIM_WHY_OBJECT, barrier_answered);
}
