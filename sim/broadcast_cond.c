/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A condition's broadcast: one message, for its NI and for its waiters; or without NIs for its waiters alone. */
#include "broadcast.h"

#include "noc.h"

static void drop_if_unused(struct sim *sim, struct sim_port *port) {
    if (port->waiters == NULL && port->n_for_ni == 0)
        sim_broadcast_drop_port(sim, port);
}

/*
 * A thread that has slept needs the whole way back in any case. One that has begun to wait after the broadcast was sent
 * is not told by it, though the message comes to its core later.
 */
static void tell_waiters(const struct sim *sim, const struct sim_port *port, uint64_t number) {
    for (struct sim_thread *w = port->waiters; w != NULL; w = w->vc.next)
        if (w->place == SIM_AWAKE && w->core == port->core && w->told_at == 0 && number >= w->vc.from)
            w->told_at = sim_now(sim) + sim_broadcast_take_cycles(sim);
}

/* Without NIs: the waiters that a broadcast has chosen. They sleep in the kernel, where signals find them too. */
static void wake_chosen(struct sim *sim, const struct sim_port *port) {
    for (struct sim_thread *w = port->waiters, *next; w != NULL; w = next) {
        next = w->vc.next;
        if (!w->vc.done)
            continue;
        w->vc.done = false;
        sim_core_wake(sim, w, sim_broadcast_take_cycles(sim) + sim_broadcast_back_cycles(sim));
    }
}

static void broadcast_came(struct sim *sim, struct sim_port *port) {
    struct sim_note note;
    while (sim_broadcast_take(sim, port, &note)) {
        if (!sim_sync_has_nis(sim->config.sync)) {
            wake_chosen(sim, port);
            continue;
        }
        tell_waiters(sim, port, note.number);
        if (hw_packet_destination(&sim->layout, &note.request) == port->core && port->n_for_ni > 0) {
            port->n_for_ni--;
            sim_events_put_packet(&sim->events, sim_now(sim), SIM_EV_REQUEST, &note.request, &sim->tiles[port->core]);
        }
    }
    sim_broadcast_arm(sim, port);
    drop_if_unused(sim, port);
}

static struct sim_channel *channel_of(struct sim *sim, struct sim_object *c) {
    if (c->channel != NULL || c->without_channel)
        return c->channel;
    c->without_channel = sim_broadcast_channel(sim, c, broadcast_came) == NULL;
    sim->summary.n_without_channel += c->without_channel;
    return c->channel;
}

void sim_broadcast_listen(struct sim *sim, struct sim_thread *t, struct sim_object *condition) {
    struct sim_channel *channel = sim->broadcast != NULL ? channel_of(sim, condition) : NULL;
    struct sim_port *port = channel != NULL ? sim_broadcast_port(sim, channel, t->core) : NULL;
    t->told_at = 0;
    t->vc.port = port;
    t->vc.done = false;
    if (port == NULL)
        return;
    port->listens = true;
    t->vc.from = channel->n_sent;
    t->vc.next = port->waiters;
    port->waiters = t;
}

void sim_broadcast_listen_end(struct sim *sim, struct sim_thread *t) {
    struct sim_port *port = t->vc.port;
    t->told_at = 0;
    t->vc.port = NULL;
    if (port == NULL)
        return;
    struct sim_thread **link = &port->waiters;
    while (*link != t)
        link = &(*link)->vc.next;
    *link = t->vc.next;
    drop_if_unused(sim, port);
}

/* The network does not bring a core its own messages: the NI of the sender's core gets the request as any other. */
static void send_now(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    uint32_t home = hw_id_ni(&sim->layout, c->id);
    struct sim_note note = {.request = sim_noc_packet(sim, t, HW_OP_BROADCAST, c, c->id)};
    if (home == t->core) {
        sim_noc_post(sim, t, HW_OP_BROADCAST, c, c->id);
    } else {
        struct sim_port *port = sim_broadcast_port(sim, c->channel, home);
        if (port == NULL)
            return;
        port->listens = true;
        port->n_for_ni++;
    }
    sim_broadcast_send(sim, c->channel, t->core, note);
    t->unlocked(sim, t);
}

bool sim_broadcast_condition(struct sim *sim, struct sim_thread *t, sim_then *then) {
    if (sim->broadcast == NULL || channel_of(sim, t->object) == NULL)
        return false;
    t->unlocked = then;
    sim_core_run(sim, t, sim->config.interface_cycles, send_now);
    return true;
}

static void send_to_targets(struct sim *sim, struct sim_thread *t) {
    struct sim_channel *channel = t->object->channel;
    bool any = t->targets.first != NULL;
    for (struct sim_thread *w; (w = sim_list_shift(&t->targets)) != NULL;)
        w->vc.done = true;
    if (any && channel->port_of[t->core] != NULL) /* its own core gets no message */
        wake_chosen(sim, channel->port_of[t->core]);
    if (any)
        sim_broadcast_send(sim, channel, t->core, (struct sim_note){0});
    t->unlocked(sim, t);
}

bool sim_broadcast_targets(struct sim *sim, struct sim_thread *t, sim_then *then) {
    if (sim->broadcast == NULL || sim_sync_has_nis(sim->config.sync) || t->object->channel == NULL)
        return false;
    t->unlocked = then;
    sim_core_run(sim, t, t->targets.first != NULL ? sim->config.interface_cycles : 0, send_to_targets);
    return true;
}
