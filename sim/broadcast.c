/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broadcast.h"

#include "pools.h"

enum { MAX_UNDER_WAY = 1 << 26 /* copies: 1 GiB of nodes */ };

bool sim_broadcast_init(struct sim *sim) {
    struct sim_broadcast *b = calloc(1, sizeof *b);
    if (b == NULL)
        return false;
    sim->broadcast = b;
    struct hw_optical_config *config = &sim->config.optical;
    config->n_cores = sim->n_cores;
    config->clock_mhz = sim->config.timing.clock_mhz;
    b->memory = sim_line_zeroed(hw_optical_bytes(config));
    b->channels = calloc(config->n_channels, sizeof(struct sim_channel *));
    return b->memory != NULL && b->channels != NULL && hw_optical_init(&b->net, config, b->memory);
}

static void free_channel(struct sim_channel *channel) {
    for (struct sim_port *port = channel->ports, *next; port != NULL; port = next) {
        next = port->next;
        free(port->counts);
        free(port);
    }
    free(channel->port_of);
    free(channel);
}

void sim_broadcast_free(struct sim *sim) {
    struct sim_broadcast *b = sim->broadcast;
    if (b == NULL)
        return;
    for (uint32_t i = 0; b->channels != NULL && i < sim->config.optical.n_channels; i++)
        if (b->channels[i] != NULL)
            free_channel(b->channels[i]);
    free(b->net.nodes);
    free(b->net.slots);
    free(b->notes);
    free(b->channels);
    free(b->memory);
    free(b);
    sim->broadcast = NULL;
}

void sim_broadcast_add(const struct sim *sim, struct sim_summary *summary) {
    struct hw_optical_counts sum = hw_optical_sum(&sim->broadcast->net);
    summary->n_messages = sum.n_sent;
    summary->n_retrieved = sum.n_received + sim->broadcast->n_found;
    summary->n_transferred = sum.n_transferred;
    summary->message_delay_ns = sum.delay_cycles;
    summary->max_lambda = sum.max_lambda;
    summary->max_buffer = sum.max_buffer;
}

/* ---- channels ---- */

struct sim_channel *sim_broadcast_channel(struct sim *sim, struct sim_object *o,
                                          void (*come)(struct sim *sim, struct sim_port *port)) {
    struct sim_broadcast *b = sim->broadcast;
    uint32_t number = 0;
    if (o->channel != NULL)
        return o->channel;
    while (number < sim->config.optical.n_channels && b->channels[number] != NULL)
        number++;
    if (number == sim->config.optical.n_channels)
        return NULL;
    struct sim_channel *channel = calloc(1, sizeof *channel);
    struct sim_port **port_of = calloc(sim->n_cores, sizeof(struct sim_port *));
    if (channel == NULL || port_of == NULL) {
        free(channel);
        free(port_of);
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    *channel =
        (struct sim_channel){.object = o, .number = number, .serial = ++b->n_serials, .port_of = port_of, .come = come};
    return o->channel = b->channels[number] = channel;
}

void sim_broadcast_forget(struct sim *sim, struct sim_object *o) {
    struct sim_channel *channel = o->channel;
    while (channel->ports != NULL)
        sim_broadcast_drop_port(sim, channel->ports);
    sim->broadcast->channels[channel->number] = NULL;
    o->channel = NULL;
    free_channel(channel);
}

/* ---- ports ---- */

struct sim_port *sim_broadcast_port(struct sim *sim, struct sim_channel *channel, uint32_t core) {
    struct sim_port *port = channel->port_of[core];
    if (port != NULL)
        return port;
    if ((port = calloc(1, sizeof *port)) == NULL) {
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    *port = (struct sim_port){.channel = channel, .next = channel->ports, .core = (uint16_t)core};
    /* As if it had been there since the episode began: what has been sent is in the buffer. */
    port->from = channel->n_sent;
    port->n_waiting = channel->arrived;
    port->waiting_episode = channel->episode;
    channel->ports = channel->port_of[core] = port;
    hw_optical_subscribe(&sim->broadcast->net, core, channel->number, sim_now(sim));
    return port;
}

void sim_broadcast_drop_port(struct sim *sim, struct sim_port *port) {
    struct hw_optical *net = &sim->broadcast->net;
    struct sim_channel *channel = port->channel;
    struct hw_optical_received received;
    struct sim_port **link = &channel->ports;
    while (*link != port)
        link = &(*link)->next;
    *link = port->next;
    channel->port_of[port->core] = NULL;
    hw_optical_unsubscribe(net, port->core, channel->number, sim_now(sim));
    while (hw_optical_receive(net, port->core, channel->number, sim_now(sim), &received))
        net->cores[port->core].counts.n_received--; /* no thread has it */
    free(port->counts);
    free(port);
}

/* ---- messages ---- */

/* Room for more messages. False: there is none, and the run has failed. */
static bool make_room(struct sim *sim) {
    struct sim_broadcast *b = sim->broadcast;
    void *notes = b->notes;
    enum sim_pools_status status = sim_pools_grow(&b->net, sim_now(sim), MAX_UNDER_WAY, &notes, sizeof *b->notes);
    b->notes = notes;
    if (status != SIM_POOLS_OK)
        sim_fail(sim, SIM_NO_MEMORY, "no memory for %u messages under way", b->net.n_slots);
    return status == SIM_POOLS_OK;
}

void sim_broadcast_send(struct sim *sim, struct sim_channel *channel, uint32_t core, struct sim_note note) {
    struct sim_broadcast *b = sim->broadcast;
    struct hw_optical_message message = {.size = 4, .channel = channel->number, .signature = 1, .wavelength = core};
    uint32_t slot;
    while (hw_optical_send(&b->net, &message, sim_now(sim), &slot) != HW_OPTICAL_OK)
        if (!make_room(sim))
            return;
    note.serial = channel->serial;
    note.number = channel->n_sent++;
    b->notes[slot] = note;
    for (struct sim_port *port = channel->ports; port != NULL; port = port->next)
        if (port->listens || (port->reader != NULL && sim_broadcast_waits(port->reader)))
            sim_broadcast_arm(sim, port);
}

bool sim_broadcast_take(struct sim *sim, struct sim_port *port, struct sim_note *note) {
    struct sim_broadcast *b = sim->broadcast;
    struct hw_optical_received received;
    if (port->n_waiting > 0) {
        port->n_waiting--;
        b->n_found++;
        *note = (struct sim_note){.episode = port->waiting_episode, .of = port->waiting_of};
        return true;
    }
    while (hw_optical_receive(&b->net, port->core, port->channel->number, sim_now(sim), &received)) {
        *note = b->notes[received.slot];
        /* Not of another channel with this number, and not one of those that were waiting. */
        if (note->serial == port->channel->serial && note->number >= port->from)
            return true;
        b->net.cores[port->core].counts.n_received--;
    }
    return false;
}

void sim_broadcast_arm(struct sim *sim, struct sim_port *port) {
    struct hw_optical *net = &sim->broadcast->net;
    uint64_t now = sim_now(sim), at = now;
    if (port->armed)
        return;
    if (port->n_waiting == 0) {
        hw_optical_advance(net, port->core, now);
        at = hw_optical_next(net, port->core, port->channel->number);
    }
    if (at == UINT64_MAX)
        return;
    port->armed = true;
    sim_events_put_words(&sim->events, at > now ? at : now, SIM_EV_MESSAGE, port->core | port->channel->number << 16,
                         ++port->generation, port->channel->serial, port);
}

/* The network is flat: no message that was sent later has made it earlier. */
void sim_broadcast_event(struct sim *sim, const struct sim_event *event) {
    struct sim_broadcast *b = sim->broadcast;
    uint32_t core = event->packet.flit[0] & UINT16_MAX, number = event->packet.flit[0] >> 16;
    struct sim_channel *channel = b->channels[number];
    if (channel == NULL || channel->serial != event->packet.flit[2])
        return;
    struct sim_port *port = channel->port_of[core];
    if (port == NULL || port->generation != event->packet.flit[1] || !port->armed)
        return;
    port->armed = false;
    hw_optical_advance(&b->net, core, sim_now(sim));
    if (port->n_waiting > 0 || hw_optical_first(&b->net, core, number) <= sim_now(sim))
        channel->come(sim, port);
    else
        sim_broadcast_arm(sim, port);
}
