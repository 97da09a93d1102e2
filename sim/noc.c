/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine: the state machines and the mesh of emu_hw, driven as libsubutai/engine/ni/serve.c does.
 *
 * A request is handed over, crosses the mesh, and is stepped when it arrives, or rather when the state machine is free;
 * one that is held is stepped again when there is room. Of a step's packets the first goes into the mesh at once, since
 * it leaves in a few cycles; the others of a barrier, which leave over a microsecond, when their time has come, so that
 * the ports' calendars are asked in the order of time.
 *
 * The queue of each condition is known here too (sim_object.queued): whose wake-up it was decides what a woken thread
 * does next, see requests.c.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* From one to the next: an odd number of lines, or their beginnings, which are all that is used of most, would share a
 * few lines of the host's cache. */
static size_t scratchpad_bytes(const struct sim *sim) {
    return sim_lines(hw_config_spm_bytes(&sim->hw)) | SIM_LINE;
}

bool sim_noc_init(struct sim *sim) {
    const struct sim_config *config = &sim->config;
    struct hw_mesh_config mesh = hw_mesh_config_default();
    sim->hw = config->strict_paper ? hw_config_paper() : hw_config_default();
    sim->hw.timing = config->timing;
    sim->hw.n_tiles = sim->n_cores;
    sim->hw.n_control = config->n_control;
    sim->hw.n_queue = config->n_queue;
    mesh.width = config->width;
    mesh.height = config->height;
    mesh.timing = sim->hw.timing;
    mesh.load_permille = config->load_permille;
    mesh.seed = config->seed;
    sim->ports = aligned_alloc(SIM_LINE, sim_lines(hw_mesh_bytes(mesh.width, mesh.height)));
    if (sim->ports == NULL || !hw_mesh_init(&sim->mesh, &mesh, sim->ports) ||
        !hw_layout_init(&sim->layout, sim->n_cores, config->n_control))
        return false;
    if (config->sync == SIM_SOFTWARE)
        return true;
    size_t bytes = scratchpad_bytes(sim);
    sim->tiles = sim_zeroed(sim->n_cores * sizeof *sim->tiles);
    sim->scratchpads = sim_zeroed(sim->n_cores * bytes);
    sim->owners = calloc((size_t)sim->n_cores * config->n_control, sizeof(struct sim_object *));
    sim->outputs = calloc(config->n_queue + 2u, sizeof *sim->outputs);
    if (sim->tiles == NULL || sim->scratchpads == NULL || sim->owners == NULL || sim->outputs == NULL)
        return false;
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        sim->tiles[i].owner = &sim->owners[(size_t)i * config->n_control];
        if (!hw_ni_init(&sim->tiles[i].ni, &sim->hw, i, sim->scratchpads + i * bytes))
            return false;
    }
    return true;
}

void sim_noc_free(struct sim *sim) {
    for (uint32_t i = 0; sim->tiles != NULL && i < sim->n_cores; i++)
        free(sim->tiles[i].held);
    free(sim->tiles);
    free(sim->scratchpads);
    free(sim->owners);
    free(sim->outputs);
    free(sim->ports);
    sim->tiles = NULL;
    sim->scratchpads = NULL;
    sim->owners = NULL;
    sim->outputs = NULL;
    sim->ports = NULL;
}

void sim_noc_clear(struct sim *sim) {
    size_t bytes = scratchpad_bytes(sim);
    for (uint32_t i = 0; sim->tiles != NULL && i < sim->n_cores; i++) {
        struct sim_tile *tile = &sim->tiles[i];
        struct hw_ni_stats stats = tile->ni.stats;
        hw_ni_init(&tile->ni, &sim->hw, i, sim->scratchpads + i * bytes); /* as it has done before */
        tile->ni.stats = stats;
        tile->n_held = tile->hand = 0;
        for (uint32_t k = 0; k < sim->config.n_control; k++)
            tile->owner[k] = NULL;
    }
    sim->parked = (struct sim_list){0};
}

/* ---- from a core ---- */

static inline void hand_in(struct sim *sim, struct sim_thread *t, uint32_t home, const struct hw_packet *packet) {
    uint64_t ready = sim_now(sim) + sim->hw.timing.handover_cycles;
    uint64_t at = hw_mesh_arrival(&sim->mesh, t->core, home, ready);
    /* Data traffic can let a packet find a gap before the one it follows, where a real router would not; and a thread
     * that has changed its core can be nearer now. */
    if (t->last_home == home && at < t->last_arrival)
        at = t->last_arrival;
    t->last_home = home;
    t->last_arrival = at;
    sim_events_put_packet(&sim->events, at, SIM_EV_REQUEST, packet, &sim->tiles[home]);
}

void sim_post(struct sim *sim, struct sim_thread *t, enum hw_op op, struct sim_object *o, uint32_t id) {
    uint32_t home = hw_id_ni(&sim->layout, id);
    struct hw_packet packet = hw_packet_alloc(&sim->layout, op, home, id, t->core, t->id);
    if (o != NULL && o->evicted && o->id == id) /* as stale as it is, however often its element has been dealt out: */
        packet.flit[1] &= ~(UINT32_C(3) << (sim->layout.self_bits - 2)); /* nothing that is allocated is of no kind */
    hand_in(sim, t, home, &packet);
}

void sim_post_alloc(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t tile, uint32_t flit1) {
    struct hw_packet packet = hw_packet_alloc(&sim->layout, op, tile, flit1, t->core, t->id);
    hand_in(sim, t, tile, &packet);
}

struct hw_message sim_answer_of(const struct sim *sim, const struct sim_thread *t) {
    return hw_packet_decode(&sim->layout, &t->answer);
}

/* ---- a step ---- */

static void leave(struct sim *sim, const struct hw_packet *packet, uint32_t from, uint64_t ready) {
    uint32_t to = hw_packet_destination(&sim->layout, packet);
    uint64_t at = hw_mesh_arrival(&sim->mesh, from, to, ready) + hw_mesh_tail(&sim->mesh, from, to);
    sim_events_put_packet(&sim->events, at, SIM_EV_ANSWER, packet, sim->by_id[hw_high(packet->flit[2])]);
}

void sim_noc_send(struct sim *sim, const struct hw_packet *packet) {
    leave(sim, packet, hw_packet_decode(&sim->layout, packet).source, sim_now(sim));
}

static bool is_alloc(enum hw_op op) {
    return op == HW_OP_ALLOC_MUTEX || op == HW_OP_ALLOC_CONDITION || op == HW_OP_ALLOC_BARRIER;
}

static void rescue(struct sim *sim, const struct sim_thread *t, uint32_t id) {
    struct hw_packet packet = hw_packet_request(&sim->layout, HW_OP_SIGNAL, id, t->core, t->id);
    sim->summary.n_passed_on++;
    sim_events_put_packet(&sim->events, sim_now(sim), SIM_EV_REQUEST, &packet, t);
}

/* What the step means for those who know which object it was. */
static void note(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet, const struct hw_step *step) {
    const struct hw_message message = hw_packet_decode(&sim->layout, packet), *m = &message;
    uint32_t index = hw_id_index(&sim->layout, m->primitive);
    struct sim_object *o = tile->owner[index < sim->hw.n_control ? index : 0];
    struct sim_thread *t = sim->by_id[m->thread];
    struct hw_message first = {.op = HW_OP_NONE};
    if (step->n_outputs > 0)
        first = hw_packet_decode(&sim->layout, &sim->outputs[0].packet);
    if (is_alloc(m->op)) {
        if (first.op == HW_OP_ALLOCATED)
            tile->owner[hw_id_index(&sim->layout, first.primitive)] = t->obtain.object;
        return;
    }
    switch (m->op) {
    case HW_OP_COND_WAIT:
        /* Granted to another thread or to nobody, it waits; otherwise the one packet is its own. */
        if (step->n_outputs > 0 && first.thread == m->thread)
            break;
        sim_append(&t->object->queued, t);
        if (sim_has_happened(t->object, t->awaited)) /* the signal was quicker, as only a replay's can be */
            rescue(sim, t, m->primitive);
        break;
    case HW_OP_SIGNAL:
        if (o != NULL)
            sim_shift(&o->queued);
        break;
    case HW_OP_BROADCAST:
        if (o != NULL)
            o->queued = (struct sim_list){0};
        break;
    case HW_OP_EVICT:
        if (first.op != HW_OP_EVICTED)
            break;
        if (o != NULL && o->id == m->primitive)
            o->evicted = true;
        tile->owner[index] = NULL;
        break;
    case HW_OP_DEALLOC:
        tile->owner[index] = NULL;
        break;
    default:
        break;
    }
}

/* The thread may find out later than there is room again. */
static void refuse(struct sim *sim, const struct sim_tile *tile, const struct hw_packet *packet) {
    struct sim_thread *t = sim->by_id[hw_high(packet->flit[2])];
    if (t == NULL)
        return;
    t->refused_by = (uint32_t)(tile - sim->tiles);
    t->refused_room = tile->n_rooms;
}

/* False: it is held. */
static inline __attribute__((always_inline)) bool step(struct sim *sim, uint32_t number, const struct hw_packet *packet,
                                                       bool *made_room) {
    struct sim_tile *tile = &sim->tiles[number];
    uint64_t now = sim_now(sim), start = tile->free_at > now ? tile->free_at : now;
    enum hw_op op = hw_packet_op(packet);
    struct hw_step done;
    hw_fsm_step(&tile->ni, packet, &done, sim->outputs);
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
            sim->config.on_packet(sim->config.context, number, &sim->outputs[i].packet);
    leave(sim, &sim->outputs[0].packet, number, start + sim->outputs[0].at_cycles);
    for (uint32_t i = 1; i < done.n_outputs; i++)
        sim_events_put_packet(&sim->events, start + sim->outputs[i].at_cycles, SIM_EV_SEND, &sim->outputs[i].packet,
                              tile);
    return true;
}

static void hold(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet) {
    if (tile->n_held == tile->held_capacity) {
        uint32_t n = tile->held_capacity == 0 ? 16 : 2 * tile->held_capacity;
        struct hw_packet *held = realloc(tile->held, n * sizeof *held);
        if (held == NULL) {
            sim_fail(sim, SIM_NO_MEMORY, "out of memory");
            return;
        }
        tile->held = held;
        tile->held_capacity = n;
    }
    tile->held[tile->n_held++] = *packet;
    sim->summary.n_held++;
}

/* There may be elements now: all held requests again, in their order, some need none. */
static __attribute__((noinline)) void retry_held(struct sim *sim, uint32_t number) {
    struct sim_tile *tile = &sim->tiles[number];
    bool made_room = true;
    while (made_room && tile->n_held > 0) {
        uint32_t n = tile->n_held, kept = 0;
        made_room = false;
        for (uint32_t i = 0; i < n; i++) {
            struct hw_packet packet = tile->held[i];
            if (!step(sim, number, &packet, &made_room))
                tile->held[kept++] = packet;
        }
        tile->n_held = kept;
    }
}

/* A withdrawal of a request that is held takes that away, without a step. Only others than our applications withdraw.
 */
static bool withdraw_held(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet) {
    uint32_t i = 0;
    while (i < tile->n_held && tile->held[i].flit[2] != packet->flit[2])
        i++;
    if (i == tile->n_held)
        return false;
    memmove(&tile->held[i], &tile->held[i + 1], (--tile->n_held - i) * sizeof *tile->held);
    struct hw_message m = hw_packet_decode(&sim->layout, packet);
    m.destination = m.core;
    m.source = (uint32_t)(tile - sim->tiles);
    m.op = HW_OP_WITHDRAWN;
    struct hw_packet answer = hw_packet_encode(&sim->layout, &m);
    if (sim->config.on_packet != NULL)
        sim->config.on_packet(sim->config.context, m.source, &answer);
    return true;
}

bool sim_feed(struct sim *sim, const struct hw_packet *request) {
    const struct sim_event *event;
    enum sim_event_kind kind;
    uint32_t number = hw_packet_destination(&sim->layout, request);
    if (sim->tiles == NULL || number >= sim->n_cores)
        return false;
    if (hw_packet_op(request) != HW_OP_WITHDRAW || !withdraw_held(sim, &sim->tiles[number], request))
        sim_noc_request(sim, request);
    while ((event = sim_events_take(&sim->events, &kind)) != NULL)
        if (kind == SIM_EV_SEND)
            sim_noc_send(sim, &event->packet);
    return sim->status == SIM_OK && !sim->events.no_memory;
}

void sim_noc_request(struct sim *sim, const struct hw_packet *arrived) {
    struct hw_packet own = {{arrived->flit[0], arrived->flit[1], arrived->flit[2]}}, *packet = &own;
    uint32_t number = hw_packet_destination(&sim->layout, packet);
    struct sim_tile *tile = &sim->tiles[number];
    bool made_room = false;
    if (!step(sim, number, packet, &made_room))
        hold(sim, tile, packet);
    if (!made_room)
        return;
    tile->n_rooms++;
    if (tile->n_held > 0)
        retry_held(sim, number);
    if (sim->parked.first != NULL)
        sim_hw_room(sim, tile);
}

/* ---- to a core ---- */

void sim_noc_answer(struct sim *sim, const struct hw_packet *packet) {
    struct sim_thread *t = sim->by_id[hw_high(packet->flit[2])];
    enum hw_op op = hw_packet_op(packet);
    if (op == HW_OP_NACK) {
        enum hw_op refused = hw_nack_op(hw_packet_decode(&sim->layout, packet).argument);
        if (refused == HW_OP_UNLOCK || refused == HW_OP_SIGNAL || refused == HW_OP_BROADCAST ||
            refused == HW_OP_DEALLOC)
            return; /* nobody waits for these */
    }
    t->answer = *packet;
    if (op == HW_OP_GRANT && t->kind != SIM_TRYLOCK) { /* before it is ready: it has priority for what it holds */
        t->uncounted = t->event.op == SBT_TRACE_COND_WAIT && t->why == SIM_WHY_SIGNAL &&
                       (!sim_has_happened(t->object, t->awaited) || sim_is_early(sim, t, t->mutex));
        sim_acquired(sim, t, t->mutex);
    }
    /* After a barrier it is one step with the work that follows: barrier_answered. */
    sim_wake(sim, t, op == HW_OP_GRANT && hw_packet_ends_wait(packet) ? sim->hw.timing.resume_cycles : 0);
}
