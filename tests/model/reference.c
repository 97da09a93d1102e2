/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reference.h"

#include <string.h>

void ref_init(struct ref *ref, const struct hw_config *config) {
    memset(ref, 0, sizeof *ref);
    ref->n_control = config->n_control;
    ref->n_queue = config->n_queue;
    ref->again = config->full == HW_FULL_AGAIN;
    ref->reserve = config->reserve;
}

static uint32_t n_free(const struct ref *ref) {
    uint32_t n = ref->n_queue;
    for (uint32_t i = 0; i < ref->n_control; i++)
        n -= ref->p[i].n;
    return n;
}

static uint32_t n_room(const struct ref *ref) {
    uint32_t n = n_free(ref);
    for (uint32_t i = 0; ref->reserve && i < ref->n_control; i++)
        if (ref->p[i].kind == HW_KIND_BARRIER)
            n -= ref->p[i].max - 1 - ref->p[i].n;
    return n;
}

static void answer(struct ref *ref, enum hw_op op, uint32_t argument, uint32_t primitive, uint32_t thread) {
    ref->answers[ref->n_answers++] = (struct ref_answer){op, argument, primitive, thread};
}

static void put(struct ref_primitive *p, uint32_t thread) {
    p->thread[p->n++] = thread;
}

static uint32_t take(struct ref_primitive *p, uint32_t at) {
    uint32_t thread = p->thread[at];
    p->n--;
    memmove(&p->thread[at], &p->thread[at + 1], (p->n - at) * sizeof p->thread[0]);
    return thread;
}

static enum hw_status full(struct ref *ref, uint32_t id, uint32_t thread) {
    if (ref->again)
        answer(ref, HW_OP_AGAIN, 0, id, thread);
    return ref->again ? HW_STATUS_DONE : HW_STATUS_HELD;
}

static void allocate(struct ref *ref, enum hw_kind kind, const struct hw_message *m, uint32_t thread, uint32_t bound,
                     uint32_t max, uint32_t new_id) {
    uint32_t i = 0;
    while (i < ref->n_control && ref->p[i].id != 0)
        i++;
    if (kind == HW_KIND_BARRIER && ref->reserve && max - 1 > n_room(ref))
        answer(ref, HW_OP_NO_SPACE, HW_SPACE_QUEUE, m->primitive, thread);
    else if (i == ref->n_control)
        answer(ref, HW_OP_NO_SPACE, HW_SPACE_CONTROL, m->primitive, thread);
    else {
        ref->p[i] = (struct ref_primitive){.id = new_id, .kind = kind, .bound = bound, .max = max};
        answer(ref, HW_OP_ALLOCATED, 0, new_id, thread);
    }
}

static bool is_idle(const struct ref_primitive *p) {
    return p->n == 0 && !p->held;
}

static enum hw_status lock(struct ref *ref, struct ref_primitive *p, uint32_t thread) {
    if (p->held && n_room(ref) == 0)
        return full(ref, p->id, thread);
    if (p->held)
        put(p, thread);
    else
        answer(ref, HW_OP_GRANT, 0, p->id, thread);
    p->held = true;
    return HW_STATUS_DONE;
}

static void unlock(struct ref *ref, struct ref_primitive *p) {
    p->held = p->n > 0;
    if (p->held)
        answer(ref, HW_OP_GRANT, 1, p->id, take(p, 0));
}

static enum hw_status barrier_wait(struct ref *ref, struct ref_primitive *p, uint32_t thread) {
    if (p->n + 1 < p->max) {
        if (n_free(ref) == 0)
            return full(ref, p->id, thread);
        put(p, thread);
        return HW_STATUS_DONE;
    }
    answer(ref, HW_OP_RELEASE, 1, p->id, thread);
    while (p->n > 0)
        answer(ref, HW_OP_RELEASE, 0, p->id, take(p, 0));
    return HW_STATUS_DONE;
}

static void cond_wait(struct ref *ref, struct ref_primitive *p, struct ref_primitive *mutex, uint32_t thread) {
    bool room = n_room(ref) > 0;
    if (!room && ref->again) {
        answer(ref, HW_OP_AGAIN, 0, p->id, thread);
        return;
    }
    if (room || mutex->n > 0)
        put(p, thread);
    else
        answer(ref, HW_OP_WOKEN, 0, p->id, thread);
    unlock(ref, mutex);
}

static void wake(struct ref *ref, struct ref_primitive *p, struct ref_primitive *mutex, bool all) {
    do {
        uint32_t thread = take(p, 0);
        if (mutex->held)
            put(mutex, thread);
        else
            answer(ref, HW_OP_GRANT, 1, mutex->id, thread);
        mutex->held = true;
    } while (all && p->n > 0);
}

static void withdraw(struct ref *ref, struct ref_primitive *p, uint32_t thread) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->thread[i] == thread) {
            take(p, i);
            answer(ref, HW_OP_WITHDRAWN, 0, p->id, thread);
            return;
        }
    answer(ref, HW_OP_GONE, 0, p->id, thread);
}

static void evict(struct ref *ref, struct ref_primitive *p, uint32_t thread) {
    bool idle = is_idle(p);
    for (uint32_t i = 0; i < ref->n_control; i++)
        idle &= !(p->kind == HW_KIND_MUTEX && ref->p[i].kind == HW_KIND_CONDITION && &ref->p[ref->p[i].bound] == p);
    answer(ref, idle ? HW_OP_EVICTED : HW_OP_BUSY, 0, p->id, thread);
    if (idle)
        *p = (struct ref_primitive){0};
}

static enum hw_status refuse(struct ref *ref, const struct hw_message *m, enum hw_reason reason) {
    enum hw_op op = hw_op_is_request((uint32_t)m->op) ? m->op : HW_OP_NONE;
    answer(ref, HW_OP_NACK, hw_nack_argument(op, reason), m->primitive, (uint32_t)m->thread << 16 | m->source);
    return HW_STATUS_REFUSED;
}

enum hw_status ref_step(struct ref *ref, const struct hw_layout *layout, uint32_t ni, const struct hw_packet *request,
                        uint32_t new_id) {
    struct hw_message m = hw_packet_decode(layout, request);
    uint32_t thread = request->flit[2];
    ref->n_answers = 0;
    if (!hw_packet_is_request(layout, request, ni))
        return m.source < layout->n_tiles ? refuse(ref, &m, HW_REASON_MALFORMED) : HW_STATUS_DROPPED;
    if (m.op == HW_OP_ALLOC_MUTEX || m.op == HW_OP_ALLOC_BARRIER) {
        bool barrier = m.op == HW_OP_ALLOC_BARRIER;
        allocate(ref, barrier ? HW_KIND_BARRIER : HW_KIND_MUTEX, &m, thread, 0, barrier ? m.primitive : 0, new_id);
        return HW_STATUS_DONE;
    }
    struct ref_primitive *p = NULL;
    for (uint32_t i = 0; i < ref->n_control; i++)
        if (ref->p[i].id == m.primitive && m.primitive != 0)
            p = &ref->p[i];
    if (!p)
        return refuse(ref, &m, HW_REASON_STALE);
    bool mutex = p->kind == HW_KIND_MUTEX, condition = p->kind == HW_KIND_CONDITION,
         barrier = p->kind == HW_KIND_BARRIER;
    struct ref_primitive *bound = condition && ref->p[p->bound].kind == HW_KIND_MUTEX ? &ref->p[p->bound] : NULL;
    if (m.op == HW_OP_LOCK && mutex)
        return lock(ref, p, thread);
    if (m.op == HW_OP_UNLOCK && mutex)
        unlock(ref, p);
    else if (m.op == HW_OP_TRYLOCK && mutex) {
        answer(ref, p->held ? HW_OP_BUSY : HW_OP_GRANT, 0, p->id, thread);
        p->held = true;
    } else if (m.op == HW_OP_BARRIER_WAIT && barrier)
        return barrier_wait(ref, p, thread);
    else if ((m.op == HW_OP_SIGNAL || m.op == HW_OP_BROADCAST) && condition && p->n == 0)
        return HW_STATUS_DONE;
    else if ((m.op == HW_OP_SIGNAL || m.op == HW_OP_BROADCAST || m.op == HW_OP_COND_WAIT) && condition) {
        if (!bound)
            return refuse(ref, &m, HW_REASON_UNBOUND);
        if (m.op == HW_OP_COND_WAIT)
            cond_wait(ref, p, bound, thread);
        else
            wake(ref, p, bound, m.op == HW_OP_BROADCAST);
    } else if (m.op == HW_OP_ALLOC_CONDITION && mutex)
        allocate(ref, HW_KIND_CONDITION, &m, thread, (uint32_t)(p - ref->p), 0, new_id);
    else if (m.op == HW_OP_WITHDRAW && !barrier)
        withdraw(ref, p, thread);
    else if (m.op == HW_OP_EVICT)
        evict(ref, p, thread);
    else if (m.op == HW_OP_DEALLOC && is_idle(p))
        *p = (struct ref_primitive){0};
    else
        return refuse(ref, &m, m.op == HW_OP_DEALLOC ? HW_REASON_BUSY : HW_REASON_KIND);
    return HW_STATUS_DONE;
}

const char *ref_compare(const struct ref *ref, enum hw_status status, const struct hw_layout *layout,
                        const struct hw_step *step, const struct hw_output *outputs) {
    if (status != step->status)
        return "another status than the reference";
    if (ref->n_answers != step->n_outputs)
        return "more or fewer packets than the reference";
    uint32_t last = 0;
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        struct hw_message m = hw_packet_decode(layout, &outputs[i].packet);
        const struct ref_answer *a = &ref->answers[i];
        if (m.op != a->op || m.argument != a->argument || m.primitive != a->primitive)
            return "another packet than the reference";
        if (outputs[i].packet.flit[2] != a->thread || m.destination != (a->thread & 0xffff))
            return "a packet to another thread than the reference's";
        if (outputs[i].at_cycles <= last || outputs[i].at_cycles >= step->response_cycles)
            return "packets out of order, or after the end";
        last = outputs[i].at_cycles;
    }
    for (uint32_t i = 0; i < ref->n_control; i++)
        for (uint32_t j = 0; j < i; j++)
            if (ref->p[i].id && ref->p[i].id == ref->p[j].id)
                return "one ID for two primitives";
    return NULL;
}
