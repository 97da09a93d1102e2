/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A live run's requests, in the place of applications. */
#include "noc.h"

/*
 * Withdraw a request that is held: it is taken away without a step. Only a live run withdraws requests; simulated
 * threads do not.
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
