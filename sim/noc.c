/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine: the state machines and the mesh of emu_hw, driven as libsubutai/engine/ni/serve.c drives them. The way
 * of a request:
 *  1. The core hands it over, and it crosses the mesh (noc.c).
 *  2. It has arrived. The state machine steps it as soon as it is free. A request that the NI holds back is stepped
 *     again when there is room (noc_step.c).
 *  3. The first packet of a step enters the mesh at once, because it leaves the NI within a few cycles. The other
 *     packets of a barrier leave over a microsecond. Each of them enters the mesh when its time has come, so that the
 *     ports' calendars are asked in the order of time.
 *  4. The answer has arrived at its core, and the thread wakes (noc.c).
 *
 * The simulator also keeps the queue of each condition (sim_object.queued): what a woken thread does next depends on
 * which thread the wake-up was meant for, see request_cond.c.
 */
#include "noc.h"

#include "core.h"
#include "owner.h"
#include "signals.h"

/*
 * Bytes from one scratchpad to the next: an odd number of lines. Most scratchpads are used only at their beginnings.
 * With an even number all beginnings would share a few lines of the host's cache.
 */
static size_t scratchpad_bytes(const struct sim *sim) {
    return sim_line_bytes(hw_config_spm_bytes(&sim->hw)) | SIM_LINE;
}

static bool init_mesh(struct sim *sim) {
    const struct sim_config *config = &sim->config;
    struct hw_mesh_config mesh = hw_mesh_config_default();
    mesh.width = config->width;
    mesh.height = config->height;
    mesh.timing = config->timing;
    mesh.load_permille = config->load_permille;
    mesh.qos = config->qos;
    mesh.seed = config->seed;
    sim->ports = aligned_alloc(SIM_LINE, sim_line_bytes(hw_mesh_bytes(mesh.width, mesh.height)));
    return sim->ports != NULL && hw_mesh_init(&sim->mesh, &mesh, sim->ports);
}

static bool init_tiles(struct sim *sim) {
    const struct sim_config *config = &sim->config;
    size_t bytes = scratchpad_bytes(sim);
    sim->tiles = sim_line_zeroed(sim->n_cores * sizeof *sim->tiles);
    sim->scratchpads = sim_line_zeroed(sim->n_cores * bytes);
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

bool sim_noc_init(struct sim *sim) {
    const struct sim_config *config = &sim->config;
    sim->hw = config->strict_paper ? hw_config_paper() : hw_config_default();
    sim->hw.timing = config->timing;
    sim->hw.n_tiles = sim->n_cores;
    sim->hw.n_control = config->n_control;
    sim->hw.n_queue = config->n_queue;
    if (config->full_again)
        sim->hw.full = HW_FULL_AGAIN;
    if (!init_mesh(sim) || !hw_layout_init(&sim->layout, sim->n_cores, config->n_control))
        return false;
    return !sim_sync_has_nis(config->sync) || init_tiles(sim);
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

/* ---- a packet's way ---- */

uint64_t sim_noc_arrival_counted(struct sim *sim, uint32_t from, uint32_t to, uint64_t ready) {
    /* The data packet is followed first: it does not wait for its own companion. */
    struct hw_delivery data = hw_mesh_follow(&sim->mesh, from, to, ready);
    struct hw_delivery control = hw_mesh_send(&sim->mesh, from, to, ready, NULL);
    if (from != to) {
        sim_spread_add(&sim->packets[SIM_CONTROL_PACKET], control.tail_cycles - ready);
        sim_spread_add(&sim->packets[SIM_DATA_PACKET], data.tail_cycles - ready);
    }
    return control.head_cycles;
}

/* ---- from a core ---- */

static inline void hand_in(struct sim *sim, struct sim_thread *t, uint32_t home, const struct hw_packet *packet) {
    uint64_t ready = hw_timing_hand_over(&sim->hw.timing, &sim->cores[t->core].handed_until, sim_now(sim));
    uint64_t at = sim_noc_arrival(sim, t->core, home, ready);
    /*
     * A request never overtakes an earlier request to the same NI, as in a real router. In the model it could: data
     * traffic can let a packet find a gap before the packet that it follows, and a thread that has changed its core can
     * be nearer now.
     */
    if (t->last_home == home && at < t->last_arrival)
        at = t->last_arrival;
    t->last_home = home;
    t->last_arrival = at;
    sim_events_put_packet(&sim->events, at, SIM_EV_REQUEST, packet, &sim->tiles[home]);
}

struct hw_packet sim_noc_packet(const struct sim *sim, const struct sim_thread *t, enum hw_op op,
                                const struct sim_object *o, uint32_t id) {
    struct hw_packet packet = hw_packet_alloc(&sim->layout, op, hw_id_ni(&sim->layout, id), id, t->core, t->id);
    /*
     * A stale ID stays stale, even if its element has been allocated so often that the generation has wrapped. So the
     * ID is sent without a kind: every allocated primitive has a kind.
     */
    if (o != NULL && o->evicted && o->id == id)
        packet.flit[1] &= ~(UINT32_C(3) << (sim->layout.self_bits - HW_KIND_BITS));
    return packet;
}

void sim_noc_post(struct sim *sim, struct sim_thread *t, enum hw_op op, struct sim_object *o, uint32_t id) {
    struct hw_packet packet = sim_noc_packet(sim, t, op, o, id);
    hand_in(sim, t, hw_id_ni(&sim->layout, id), &packet);
}

void sim_noc_post_alloc(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t tile, uint32_t flit1) {
    struct hw_packet packet = hw_packet_alloc(&sim->layout, op, tile, flit1, t->core, t->id);
    hand_in(sim, t, tile, &packet);
}

void sim_noc_post_absent(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t id) {
    uint32_t home = hw_id_ni(&sim->layout, id);
    struct hw_packet packet = hw_packet_alloc(&sim->layout, op, home, id, t->core, SIM_NO_THREAD);
    hand_in(sim, t, home, &packet);
}

struct hw_message sim_noc_answer_of(const struct sim *sim, const struct sim_thread *t) {
    return hw_packet_decode(&sim->layout, &t->answer);
}

/* ---- from an NI to a core ---- */

void sim_noc_send(struct sim *sim, const struct hw_packet *packet) {
    sim_noc_leave(sim, packet, hw_packet_decode(&sim->layout, packet).source, sim_now(sim));
}

/* A thread that has been told of a broadcast is on its way back already. */
static uint64_t way_back(const struct sim *sim, const struct sim_thread *t) {
    uint64_t back = sim->hw.timing.resume_cycles, now = sim_now(sim);
    if (t->told_at == 0)
        return back;
    uint64_t left = t->told_at > now ? t->told_at - now : 0;
    return left < back ? left : back;
}

void sim_noc_answer(struct sim *sim, const struct hw_packet *packet) {
    struct sim_thread *t = sim->by_id[hw_high(packet->flit[2])];
    enum hw_op op = hw_packet_op(packet);
    if (op == HW_OP_NACK) {
        enum hw_op refused = hw_nack_op(hw_packet_decode(&sim->layout, packet).argument);
        if (refused == HW_OP_UNLOCK || refused == HW_OP_SIGNAL || refused == HW_OP_BROADCAST ||
            refused == HW_OP_DEALLOC)
            return; /* the caller went on long ago */
    }
    if (__builtin_expect(t == NULL, 0)) /* sim_noc_post_absent */
        return;
    t->answer = *packet;
    if (op == HW_OP_GRANT && t->kind != SIM_TRYLOCK) { /* it owns the mutex, and has its priority, before it is ready */
        t->uncounted = t->event.op == SBT_TRACE_COND_WAIT && t->why == SIM_WHY_SIGNAL &&
                       (!sim_signals_has(t->object, t->awaited) || sim_owner_is_early(sim, t, t->mutex));
        sim_owner_acquired(sim, t, t->mutex);
    }
    /* A barrier's way back and the work after it are one step: barrier_answered in request.c. */
    sim_core_wake(sim, t, op == HW_OP_GRANT && hw_packet_ends_wait(packet) ? way_back(sim, t) : 0);
}
