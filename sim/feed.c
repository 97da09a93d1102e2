/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A live run's requests, in the place of applications. */
#include "noc.h"
#include "request_log.h"

/*
 * Withdraw a request that is held: it is taken away without a step. Only a live run withdraws requests; simulated
 * threads do not.
 */
static bool withdraw_held(struct sim *sim, struct sim_tile *tile, const struct hw_packet *packet) {
    const struct hw_timing *timing = &sim->hw.timing;
    uint32_t i = 0;
    while (i < tile->n_held && tile->held[i].packet.flit[2] != packet->flit[2])
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
        sim->config.on_packet(sim->config.context, m.source, &answer,
                              sim_now(sim) + timing->entry_cycles + timing->fsm_cycles);
    return true;
}

/* The events of a request are all taken before the next one, which may be earlier: in a live run only threads have an
 * order, and NIs. */
bool sim_feed(struct sim *sim, const struct hw_packet *request, uint64_t arrived_at) {
    const struct sim_event *event;
    enum sim_event_kind kind;
    uint32_t number = hw_packet_destination(&sim->layout, request);
    if (sim->tiles == NULL || number >= sim->n_cores)
        return false;
    sim_events_begin_at(&sim->events, arrived_at);
    if (hw_packet_op(request) != HW_OP_WITHDRAW || !withdraw_held(sim, &sim->tiles[number], request))
        sim_noc_request(sim, request);
    while ((event = sim_events_take(&sim->events, &kind)) != NULL)
        if (kind == SIM_EV_SEND)
            sim_noc_send(sim, &event->packet);
    return sim->status == SIM_OK && !sim->events.no_memory;
}

bool sim_feed_state(struct sim *sim, uint32_t ni, const struct hw_log_state *state, const uint8_t *bytes) {
    if (sim->tiles == NULL || ni >= sim->n_cores)
        return false;
    struct sim_tile *tile = &sim->tiles[ni];
    struct hw_spm *spm = &tile->ni.spm;
    memcpy(spm->bytes, bytes, hw_spm_n_bytes(spm->n_control, spm->n_queue));
    spm->generation_skip = state->generation_skip;
    spm->free_head = state->free_head;
    spm->free_tail = state->free_tail;
    spm->n_free = state->n_free;
    spm->n_reserved = state->n_reserved;
    tile->ni.n_control_used = state->n_control_used;
    tile->free_at = state->free_cycles;
    tile->busy_from = state->busy_cycles;
    return state->generation_skip % 2 == 0 && state->n_control_used <= spm->n_control && hw_spm_is_valid(spm, NULL);
}
