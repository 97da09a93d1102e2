/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request that has arrived at its NI. noc.c has the whole way. */
#include "again.h"
#include "noc.h"
#include "signals.h"

/* A signal was given before the wait that it is for: the condition's NI gets it once more. */
static void rescue(struct sim *sim, const struct sim_thread *t, uint32_t id) {
    struct hw_packet packet = hw_packet_request(&sim->layout, HW_OP_SIGNAL, id, t->core, t->id);
    sim->summary.n_passed_on++;
    sim_events_put_packet(&sim->events, sim_now(sim), SIM_EV_REQUEST, &packet, t);
}

static void note_cond_wait(struct sim *sim, const struct hw_message *m, const struct hw_step *step,
                           const struct hw_message *first) {
    struct sim_thread *t = sim->by_id[m->thread];
    if (step->n_outputs > 0 && first->thread == m->thread)
        return; /* the only packet is the thread's own, so it does not wait */
    sim_list_append(&t->object->queued, t);
    if (sim_signals_has(t->object, t->awaited)) /* the signal came before the wait, which can happen only in a replay */
        rescue(sim, t, m->primitive);
}

static void note_evict(struct sim_tile *tile, const struct hw_message *m, uint32_t index) {
    struct sim_object *o = tile->owner[index];
    if (o != NULL && o->id == m->primitive)
        o->evicted = true;
    tile->owner[index] = NULL;
}

/* What the step means for the object of the request. */
static void note(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet, const struct hw_step *step) {
    const struct hw_message message = hw_packet_decode(&sim->layout, packet), *m = &message;
    uint32_t index = hw_id_index(&sim->layout, m->primitive);
    struct sim_object *o = tile->owner[index < sim->hw.n_control ? index : 0];
    struct hw_message first = {.op = HW_OP_NONE};
    if (step->n_outputs > 0)
        first = hw_packet_decode(&sim->layout, &sim->outputs[0].packet);
    switch (m->op) {
    case HW_OP_ALLOC_MUTEX:
    case HW_OP_ALLOC_CONDITION:
    case HW_OP_ALLOC_BARRIER:
        if (first.op == HW_OP_ALLOCATED)
            tile->owner[hw_id_index(&sim->layout, first.primitive)] = sim->by_id[m->thread]->obtain.object;
        break;
    case HW_OP_COND_WAIT:
        note_cond_wait(sim, m, step, &first);
        break;
    case HW_OP_SIGNAL:
        if (o != NULL)
            sim_list_shift(&o->queued);
        break;
    case HW_OP_BROADCAST:
        if (o != NULL)
            o->queued = (struct sim_list){0};
        break;
    case HW_OP_EVICT:
        if (first.op == HW_OP_EVICTED)
            note_evict(tile, m, index);
        break;
    case HW_OP_DEALLOC:
        tile->owner[index] = NULL;
        break;
    default:
        break;
    }
}

/* The thread is answered AGAIN. The NI may have room again before the thread sees that: again.c compares the counts. */
static void refuse(struct sim *sim, const struct sim_tile *tile, const struct hw_packet *packet) {
    struct sim_thread *t = sim->by_id[hw_high(packet->flit[2])];
    if (t == NULL)
        return;
    t->refused_by = (uint32_t)(tile - sim->tiles);
    t->refused_room = tile->n_rooms;
}

/*
 * A request that arrived then is stepped as soon as the state machine is free. False: the NI holds it back.
 *
 * A live run's request (feed.c) may have been stepped behind one of a later time. If the state machine had a pause
 * since the request's time, the step takes no time from later requests, as in libsubutai/engine/ni/step.c.
 */
static inline __attribute__((always_inline)) bool step(struct sim *sim, uint32_t number, const struct hw_packet *packet,
                                                       uint64_t arrived_at, bool *made_room) {
    struct sim_tile *tile = &sim->tiles[number];
    uint64_t start = tile->free_at > arrived_at ? tile->free_at : arrived_at;
    if (arrived_at > tile->free_at)
        tile->busy_from = arrived_at;
    bool late = arrived_at < tile->busy_from;
    enum hw_op op = hw_packet_op(packet);
    struct hw_step done;
    hw_fsm_step(&tile->ni, packet, &done, sim->outputs);
    if (!late)
        tile->free_at = start + done.response_cycles;
    *made_room |= done.made_room;
    if (done.status == HW_STATUS_HELD)
        return false;
    if (op != HW_OP_LOCK && op != HW_OP_UNLOCK && op != HW_OP_BARRIER_WAIT && done.status == HW_STATUS_DONE &&
        sim->n_apps > 0)
        note(sim, tile, packet, &done);
    if (done.n_outputs == 0)
        return true;
    if (sim->config.strict_paper && done.n_outputs == 1 && hw_packet_op(&sim->outputs[0].packet) == HW_OP_AGAIN)
        refuse(sim, tile, packet);
    if (sim->config.on_packet != NULL)
        for (uint32_t i = 0; i < done.n_outputs; i++)
            sim->config.on_packet(sim->config.context, number, &sim->outputs[i].packet,
                                  start + sim->outputs[i].at_cycles);
    sim_noc_leave(sim, &sim->outputs[0].packet, number, start + sim->outputs[0].at_cycles);
    for (uint32_t i = 1; i < done.n_outputs; i++)
        sim_events_put_packet(&sim->events, start + sim->outputs[i].at_cycles, SIM_EV_SEND, &sim->outputs[i].packet,
                              tile);
    return true;
}

static void hold(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet) {
    if (tile->n_held == tile->held_capacity) {
        uint32_t n = tile->held_capacity == 0 ? 16 : 2 * tile->held_capacity;
        struct sim_held *held = realloc(tile->held, n * sizeof *held);
        if (held == NULL) {
            sim_fail(sim, SIM_NO_MEMORY, "out of memory");
            return;
        }
        tile->held = held;
        tile->held_capacity = n;
    }
    tile->held[tile->n_held++] = (struct sim_held){*packet, sim_now(sim)};
    sim->summary.n_held++;
}

/*
 * There may be free elements: step the held requests again, in their order. Some of them need no element. A request
 * that would be held again is not stepped, as in the live engine: a step takes time.
 */
static __attribute__((noinline)) void retry_held(struct sim *sim, uint32_t number) {
    struct sim_tile *tile = &sim->tiles[number];
    bool made_room = true;
    while (made_room && tile->n_held > 0) {
        uint32_t n = tile->n_held, kept = 0;
        made_room = false;
        for (uint32_t i = 0; i < n; i++) {
            struct sim_held held = tile->held[i];
            if (held.arrived_at < tile->free_at) /* it has waited for other threads, not for the state machine */
                held.arrived_at = tile->free_at;
            if (hw_ni_would_hold(&tile->ni, &held.packet) ||
                !step(sim, number, &held.packet, held.arrived_at, &made_room))
                tile->held[kept++] = held;
        }
        tile->n_held = kept;
    }
}

void sim_noc_request(struct sim *sim, const struct hw_packet *arrived) {
    struct hw_packet own = {{arrived->flit[0], arrived->flit[1], arrived->flit[2]}}, *packet = &own;
    uint32_t number = hw_packet_destination(&sim->layout, packet);
    struct sim_tile *tile = &sim->tiles[number];
    bool made_room = false;
    if (!step(sim, number, packet, sim_now(sim), &made_room))
        hold(sim, tile, packet);
    if (!made_room)
        return;
    tile->n_rooms++;
    if (tile->n_held > 0)
        retry_held(sim, number);
    sim_again_room(sim, tile);
}
