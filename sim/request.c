/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes and barriers in hardware: libsubutai/engine/ni/mutex.c and barrier.c in virtual time. If the NI refuses a
 * request as stale, the object's primitive was evicted: then the object gets another one.
 */
#include "request.h"

#include "again.h"
#include "noc.h"
#include "owner.h"
#include "primitive.h"
#include "return.h"
#include "software.h"

/*
 * The thread keeps its core for so long, and goes on with `then`. If that ends its call, and no other thread is ready
 * to take the core and make the call longer, this time and the work after it are one step: that saves an event for each
 * call. A thread that becomes ready within these few ns is treated as if it came during the work.
 */
static void go_on_after(struct sim *sim, struct sim_thread *t, uint32_t cycles, sim_then *then) {
    if (then == sim_return && sim->cores[t->core].sched.n_ready == 0)
        sim_return_after(sim, t, cycles);
    else
        sim_core_run(sim, t, cycles, then);
}

/* The NI has refused a request. Was that for the object's present ID? If not, the object has another ID by now. */
static bool is_stale(const struct sim_object *o, const struct hw_message *answer) {
    return o->evicted || o->id == answer->primitive;
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
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_AGAIN) { /* the paper's EAGAIN; this program tries again */
        sim_again_wait(sim, t, SIM_WHY_OBJECT, sim_request_lock);
    } else if (is_stale(t->mutex, &answer)) {
        sim_primitive_obtain(sim, t, t->mutex, t->mutex->id, HW_OP_ALLOC_MUTEX, 0, sim_request_lock);
    } else { /* the object has another ID by now */
        sim_request_lock(sim, t);
    }
}

void sim_request_lock(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->id == 0) {
        sim_primitive_obtain(sim, t, m, 0, HW_OP_ALLOC_MUTEX, 0, sim_request_lock);
        return;
    }
    if (m->id == SIM_ID_SOFTWARE) {
        sim_software_lock(sim, t);
        return;
    }
    sim_noc_post(sim, t, HW_OP_LOCK, m, m->id);
    sim_core_wait(sim, t, SIM_WHY_OBJECT, lock_answered);
}

/* An UNLOCK has no answer: the caller goes on when it has handed the request over. */
void sim_request_unlock(struct sim *sim, struct sim_thread *t) {
    sim_owner_released(sim, t->mutex);
    sim_noc_post(sim, t, HW_OP_UNLOCK, t->mutex, t->mutex->id);
    go_on_after(sim, t, sim->hw.timing.handover_cycles, t->unlocked);
}

static void try_answered(struct sim *sim, struct sim_thread *t);

static void try_post(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->object;
    if (m->id == 0) {
        sim_primitive_obtain(sim, t, m, 0, HW_OP_ALLOC_MUTEX, 0, try_post);
    } else if (m->id == SIM_ID_SOFTWARE) {
        sim_software_try(sim, t, t->locked);
    } else {
        sim_noc_post(sim, t, HW_OP_TRYLOCK, m, m->id);
        sim_core_wait(sim, t, SIM_WHY_ANSWER, try_answered);
    }
}

static void try_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_NACK && is_stale(t->object, &answer)) {
        sim_primitive_obtain(sim, t, t->object, t->object->id, HW_OP_ALLOC_MUTEX, 0, try_post);
    } else if (answer.op == HW_OP_NACK) {
        try_post(sim, t);
    } else {
        t->n_obtained = 0;
        if (answer.op == HW_OP_GRANT) /* free here, and held in the trace: released before any thread can see it */
            sim_noc_post(sim, t, HW_OP_UNLOCK, t->object, t->object->id);
        t->locked(sim, t);
    }
}

void sim_request_try(struct sim *sim, struct sim_thread *t, sim_then *then) {
    t->locked = then;
    try_post(sim, t);
}
/* ---- barriers ---- */

static void barrier_answered(struct sim *sim, struct sim_thread *t) {
    if (hw_packet_op(&t->answer) == HW_OP_RELEASE) {
        uint32_t resume = hw_packet_ends_wait(&t->answer) ? sim->hw.timing.resume_cycles : 0;
        t->n_obtained = 0;
        go_on_after(sim, t, resume, sim_return);
        return;
    }
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_AGAIN) {
        sim_again_wait(sim, t, SIM_WHY_OBJECT, sim_request_barrier);
    } else if (is_stale(t->object, &answer)) {
        sim_primitive_obtain(sim, t, t->object, t->object->id, HW_OP_ALLOC_BARRIER, t->object->size,
                             sim_request_barrier);
    } else {
        sim_request_barrier(sim, t);
    }
}

void sim_request_barrier(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (b->id == 0 && (b->size > UINT16_MAX || b->size - 1 > sim->hw.n_queue)) {
        b->id = SIM_ID_SOFTWARE; /* it fits into no NI: the count has 16 bits, and each waiter needs an element */
        sim->summary.n_software_objects++;
    }
    if (b->id == 0) {
        sim_primitive_obtain(sim, t, b, 0, HW_OP_ALLOC_BARRIER, b->size, sim_request_barrier);
        return;
    }
    if (b->id == SIM_ID_SOFTWARE) {
        sim_software_barrier(sim, t);
        return;
    }
    sim_noc_post(sim, t, HW_OP_BARRIER_WAIT, b, b->id);
    sim_core_wait(sim, t, SIM_WHY_OBJECT, barrier_answered);
}
