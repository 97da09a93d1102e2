/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mesh.h"

#include <string.h>

enum { N_FLITS = 3, MAX_LOAD_PERMILLE = 900, CATCH_UP = 64 };

struct hw_mesh_config hw_mesh_config_default(void) {
    return (struct hw_mesh_config){.width = 8,
                                   .height = 8,
                                   .timing = hw_timing_default(),
                                   .qos = HW_QOS_CONTROL_FIRST,
                                   .data_flits = 18,
                                   .seed = 1};
}

bool hw_mesh_init(struct hw_mesh *mesh, const struct hw_mesh_config *config, struct hw_port *ports) {
    if (config->width < 1 || config->width > HW_MESH_MAX_SIDE || config->height < 1 ||
        config->height > HW_MESH_MAX_SIDE || config->load_permille > MAX_LOAD_PERMILLE || config->data_flits < 1)
        return false;
    size_t n = hw_mesh_n_ports(config->width, config->height);
    memset(ports, 0, n * sizeof *ports);
    *mesh = (struct hw_mesh){.config = *config, .ports = ports};
    if (config->load_permille)
        mesh->data_gap = (uint64_t)config->data_flits * config->timing.link_cycles * 1000 / config->load_permille;
    for (size_t i = 0; i < n; i++)
        ports[i].random = (config->seed + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    return true;
}

/* ---- data traffic ---- */

static uint64_t next_random(struct hw_port *port) {
    uint64_t x = port->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    port->random = x;
    return x;
}

/* When a control packet that wants the port at `at` can have it, as far as data is concerned. */
static uint64_t after_data(const struct hw_mesh *mesh, struct hw_port *port, uint64_t at) {
    uint64_t gap = mesh->data_gap, length = (uint64_t)mesh->config.data_flits * mesh->config.timing.link_cycles;
    /* A queue that is less than full forgets: what came long ago has left. It bounds the work after a quiet time. */
    if (at > port->data_next && at - port->data_next > CATCH_UP * gap)
        port->data_next = at - CATCH_UP * gap;
    while (port->data_next <= at) {
        uint64_t start = port->data_until > port->data_next ? port->data_until : port->data_next;
        port->data_until = start + length;
        port->data_next += 1 + next_random(port) % (2 * gap - 1);
    }
    if (port->data_until <= at)
        return at;
    if (mesh->config.qos == HW_QOS_NONE)
        return port->data_until;
    return at + (port->data_until - at) % length;
}

/* ---- calendar ---- */

static uint32_t slot(const struct hw_port *port, uint32_t i) {
    return (port->first + i) & (HW_CALENDAR - 1);
}

/* Entry i of the calendar, which is between its neighbours in time. A full calendar forgets its first entry. */
static void note(struct hw_port *port, uint32_t i, uint64_t from, uint64_t to) {
    if (i > 0 && port->taken[slot(port, i - 1)].to == from) {
        port->taken[slot(port, i - 1)].to = to;
        return;
    }
    if (i < port->n_taken && port->taken[slot(port, i)].from == to) {
        port->taken[slot(port, i)].from = from;
        return;
    }
    if (port->n_taken == HW_CALENDAR) {
        if (i == 0) {
            port->forgotten = to;
            return;
        }
        port->forgotten = port->taken[port->first].to;
        port->first = slot(port, 1);
        i--;
    } else {
        port->n_taken++;
    }
    for (uint32_t k = port->n_taken - 1; k > i; k--)
        port->taken[slot(port, k)] = port->taken[slot(port, k - 1)];
    port->taken[slot(port, i)].from = from;
    port->taken[slot(port, i)].to = to;
}

/* First gap of `length` at or after `at`, and the place in the calendar where it belongs. */
static uint64_t find_gap(const struct hw_port *port, uint64_t at, uint64_t length, uint32_t *place) {
    uint32_t n = port->n_taken, i = n;
    if (n > 0 && at < port->taken[slot(port, n - 1)].to) {
        at = at > port->forgotten ? at : port->forgotten;
        for (i = 0; i < n && at + length > port->taken[slot(port, i)].from; i++)
            if (at < port->taken[slot(port, i)].to)
                at = port->taken[slot(port, i)].to;
    }
    *place = i;
    return at;
}

/* The header wants to leave by this port at `at`; when it does. */
static uint64_t take(struct hw_mesh *mesh, uint32_t number, uint64_t at) {
    struct hw_port *port = &mesh->ports[number];
    uint64_t length = (uint64_t)N_FLITS * mesh->config.timing.link_cycles;
    uint32_t place;
    uint64_t start = find_gap(port, at, length, &place);
    if (mesh->data_gap && number % HW_N_DIRECTIONS != HW_INJECT) {
        for (uint64_t later = after_data(mesh, port, start); later != start; later = after_data(mesh, port, start)) {
            start = find_gap(port, later, length, &place);
            if (start == later)
                break;
        }
        port->data_until = (port->data_until > start ? port->data_until : start) + length;
    }
    note(port, place, start, start + length);
    port->n_packets++;
    port->contention_cycles += start - at;
    return start;
}

/* ---- the way of a packet ---- */

static uint32_t apart(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

struct hw_delivery hw_mesh_distance(const struct hw_mesh *mesh, uint32_t from, uint32_t to) {
    if (from == to)
        return (struct hw_delivery){0};
    const struct hw_timing *t = &mesh->config.timing;
    uint32_t w = mesh->config.width, n_hops = apart(from % w, to % w) + apart(from / w, to / w);
    uint64_t head = (uint64_t)(n_hops + 1) * (t->link_cycles + t->router_cycles);
    return (struct hw_delivery){
        .head_cycles = head, .tail_cycles = head + (uint64_t)N_FLITS * t->link_cycles, .n_hops = n_hops};
}

struct hw_delivery hw_mesh_send(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles,
                                struct hw_hop *trace) {
    if (from == to) {
        mesh->n_local++;
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    }
    const struct hw_timing *t = &mesh->config.timing;
    uint32_t w = mesh->config.width, x = from % w, y = from / w, to_x = to % w, to_y = to / w;
    uint32_t n_hops = 0;
    uint64_t now = at_cycles;
    for (enum hw_direction direction = HW_INJECT;;) {
        uint32_t port = (y * w + x) * HW_N_DIRECTIONS + (uint32_t)direction;
        now = take(mesh, port, now);
        if (trace)
            *trace++ = (struct hw_hop){port, now};
        if (direction == HW_EJECT)
            break;
        x += (direction == HW_EAST) - (uint32_t)(direction == HW_WEST);
        y += (direction == HW_SOUTH) - (uint32_t)(direction == HW_NORTH);
        n_hops += direction != HW_INJECT;
        now += t->link_cycles + t->router_cycles;
        if (x != to_x)
            direction = x < to_x ? HW_EAST : HW_WEST;
        else if (y != to_y)
            direction = y < to_y ? HW_SOUTH : HW_NORTH;
        else
            direction = HW_EJECT;
    }
    uint64_t waited = now - at_cycles - (uint64_t)(n_hops + 1) * (t->link_cycles + t->router_cycles);
    mesh->n_packets++;
    mesh->n_hops += n_hops;
    mesh->contention_cycles += waited;
    return (struct hw_delivery){.head_cycles = now,
                                .tail_cycles = now + (uint64_t)N_FLITS * t->link_cycles,
                                .n_hops = n_hops,
                                .contention_cycles = (uint32_t)waited};
}
