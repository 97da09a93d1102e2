/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mesh.h"

#include <string.h>

_Static_assert(HW_WEST == HW_EAST + 1 && HW_SOUTH == HW_NORTH + 1, "carry() computes them");

#define LONGEST INT32_MAX /* an entry of a calendar, and a gap between two */

struct hw_mesh_config hw_mesh_config_default(void) {
    return (struct hw_mesh_config){.width = 8,
                                   .height = 8,
                                   .timing = hw_timing_default(),
                                   .qos = HW_QOS_CONTROL_FIRST,
                                   .data_flits = 18,
                                   .seed = 1};
}

bool hw_mesh_possible(const struct hw_mesh_config *config) {
    return config->width >= 1 && config->width <= HW_MESH_MAX_SIDE && config->height >= 1 &&
           config->height <= HW_MESH_MAX_SIDE && config->load_permille <= HW_MESH_MAX_LOAD_PERMILLE &&
           config->data_flits >= 1;
}

bool hw_mesh_init(struct hw_mesh *mesh, const struct hw_mesh_config *config, struct hw_port *ports) {
    if (!hw_mesh_possible(config))
        return false;
    size_t n = hw_mesh_n_ports(config->width, config->height);
    memset(ports, 0, hw_mesh_bytes(config->width, config->height));
    *mesh = (struct hw_mesh){.config = *config,
                             .ports = ports,
                             .traffic = (struct hw_traffic *)(void *)(ports + n),
                             .hop = config->timing.router_cycles + config->timing.link_cycles,
                             .length = HW_MESH_N_FLITS * config->timing.link_cycles,
                             .by_width = hw_mesh_by_width(config->width)};
    mesh->data =
        hw_data_init(config->load_permille, config->data_flits * config->timing.link_cycles, config->qos, config->seed);
    if (config->load_permille)
        for (size_t i = 0; i < n; i++)
            hw_data_seek(&mesh->data, (uint32_t)i, 0, &mesh->traffic[i].coming);
    return true;
}

/* When data traffic lets a control packet have the port that is ready for it at `at`. */
static uint64_t after_data(const struct hw_mesh *mesh, uint32_t port, uint64_t at) {
    struct hw_traffic *traffic = &mesh->traffic[port];
    if (at > traffic->coming.next && at - traffic->coming.next > 2 * mesh->data.epoch)
        hw_data_seek(&mesh->data, port, at - mesh->data.epoch, &traffic->coming);
    hw_data_pass(&mesh->data, port, at, &traffic->coming, &traffic->until);
    traffic->seen = traffic->seen > at ? traffic->seen : at;
    return at + hw_data_wait(&mesh->data, at, traffic->until);
}

/* ---- calendar ---- */

static inline uint64_t entry(uint64_t gap, uint64_t length) {
    return length << 32 | gap;
}

static inline uint32_t gap_of(uint64_t entry) {
    return (uint32_t)entry;
}

static inline uint32_t length_of(uint64_t entry) {
    return (uint32_t)(entry >> 32);
}

/* A port's calendar, unrolled: its entries in order, with the gaps between them. All time before `forgotten` is taken.
 */
struct calendar {
    uint64_t forgotten;
    struct {
        uint64_t from, to;
    } taken[HW_CALENDAR];
};

static struct calendar unroll(const struct hw_port *port) {
    struct calendar c;
    uint64_t to = port->until;
    for (uint32_t i = HW_CALENDAR; i-- > 0;) {
        uint64_t own = port->taken[(port->n_entries + 1 + i) % HW_CALENDAR];
        c.taken[i].to = to;
        c.taken[i].from = to - length_of(own);
        to = c.taken[i].from - gap_of(own);
    }
    c.forgotten = to;
    return c;
}

/* Entries before a gap or an entry of more than LONGEST are forgotten. */
static void roll(struct hw_port *port, const struct calendar *c) {
    bool known = true;
    for (uint32_t i = HW_CALENDAR; i-- > 0;) {
        uint64_t gap = c->taken[i].from - (i > 0 ? c->taken[i - 1].to : c->forgotten);
        uint64_t length = c->taken[i].to - c->taken[i].from;
        uint64_t known_length = !known ? 0 : length > LONGEST ? LONGEST : length;
        known = known && length <= LONGEST;
        uint64_t known_gap = !known ? 0 : gap > LONGEST ? LONGEST : gap;
        known = known && gap <= LONGEST;
        port->taken[(port->n_entries + 1 + i) % HW_CALENDAR] = entry(known_gap, known_length);
    }
    port->until = c->taken[HW_CALENDAR - 1].to;
}

/* Puts an entry at place i of the calendar, where it is between its neighbours in time. The first entry is forgotten.
 */
static void note(struct calendar *c, uint32_t i, uint64_t from, uint64_t to) {
    if (i > 0 && c->taken[i - 1].to == from) {
        c->taken[i - 1].to = to;
    } else if (i < HW_CALENDAR && c->taken[i].from == to) {
        c->taken[i].from = from;
    } else if (i == 0) {
        c->forgotten = to;
    } else {
        c->forgotten = c->taken[0].to;
        for (uint32_t k = 0; k < i - 1; k++)
            c->taken[k] = c->taken[k + 1];
        c->taken[i - 1].from = from;
        c->taken[i - 1].to = to;
    }
}

/* The first gap of `length` at or after `at`, and the place in the calendar where it belongs. */
static uint64_t find_gap(const struct calendar *c, uint64_t at, uint64_t length, uint32_t *place) {
    uint32_t i;
    at = at > c->forgotten ? at : c->forgotten;
    for (i = 0; i < HW_CALENDAR && at + length > c->taken[i].from; i++)
        if (at < c->taken[i].to)
            at = c->taken[i].to;
    *place = i;
    return at;
}

/* Takes the port, for a header that is ready to leave by it at `at`; the answer is when it leaves. Any case. */
static uint64_t take_any(struct hw_mesh *mesh, struct hw_port *port, bool has_data, uint64_t at, uint64_t length) {
    uint32_t number = (uint32_t)(port - mesh->ports);
    struct calendar c = unroll(port);
    uint32_t place;
    uint64_t start = find_gap(&c, at, length, &place);
    if (has_data) {
        for (uint64_t later; (later = after_data(mesh, number, start)) != start;) {
            start = find_gap(&c, later, length, &place);
            if (start == later)
                break;
        }
        uint64_t *until = &mesh->traffic[number].until;
        *until = (*until > start ? *until : start) + length;
    }
    note(&c, place, start, start + length);
    roll(port, &c);
    port->contention_cycles += start - at;
    mesh->contention_cycles += start - at;
    port->n_joined++;
    return start;
}

/*
 * The same where take() below does not do: a packet is at the port, or has just left it, or none has come for long.
 * Usually the new packet follows one of the last two entries and becomes a part of it, or goes into the gap before one.
 */
static __attribute__((noinline)) uint64_t take_later(struct hw_mesh *mesh, struct hw_port *port, uint64_t at,
                                                     uint64_t length) {
    uint64_t n = port->n_entries, until = port->until, room = UINT64_MAX; /* cycles behind the entry */
    for (uint32_t k = 0; k < 2; k++) {
        uint64_t *own = &port->taken[(n - k) % HW_CALENDAR], own_length = length_of(*own), own_gap = gap_of(*own);
        uint64_t from = until - own_length, free = from - own_gap;
        if (at <= until && at + length > from && room >= length && own_length <= LONGEST - length) {
            *own += entry(0, length);
            if (k == 0)
                port->until = until + length;
            else
                port->taken[n % HW_CALENDAR] -= entry(length, 0);
            port->n_joined++;
            port->contention_cycles += until - at;
            mesh->contention_cycles += until - at;
            return until;
        }
        if (at > free && at + length < from) {
            port->taken[(n + 1) % HW_CALENDAR] = port->taken[n % HW_CALENDAR];
            port->taken[(n + 1 - k) % HW_CALENDAR] = entry(from - (at + length), own_length);
            *own = entry(at - free, length);
            port->n_entries = n + 1;
            return at;
        }
        until = free;
        room = own_gap;
    }
    return take_any(mesh, port, false, at, length);
}

/* The same for a port without data traffic. Usually the port is free: the packet becomes a new last entry. */
static inline uint64_t take(struct hw_mesh *mesh, struct hw_port *port, uint64_t at, uint64_t length) {
    uint64_t gap = at - port->until;
    if (__builtin_expect(gap - 1 >= LONGEST, 0))
        return take_later(mesh, port, at, length);
    port->taken[++port->n_entries % HW_CALENDAR] = entry(gap, length);
    port->until = at + length;
    return at;
}

/* ---- the way of a packet ---- */

static uint32_t apart(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static uint32_t row(const struct hw_mesh *mesh, uint32_t tile) {
    return hw_mesh_row(mesh->by_width, tile);
}

struct hw_delivery hw_mesh_distance(const struct hw_mesh *mesh, uint32_t from, uint32_t to) {
    if (from == to)
        return (struct hw_delivery){0};
    uint32_t w = mesh->config.width, y = row(mesh, from), to_y = row(mesh, to);
    uint32_t n_hops = apart(from - y * w, to - to_y * w) + apart(y, to_y);
    uint64_t head = (uint64_t)(n_hops + 1) * mesh->hop;
    return (struct hw_delivery){.head_cycles = head, .tail_cycles = head + mesh->length, .n_hops = n_hops};
}

/* A packet on its way. */
struct way {
    struct hw_mesh *mesh;
    struct hw_hop *trace;
    uint64_t now, length, hop;
    bool plain; /* no trace, no data traffic */
};

/* Through n routers, `stride` tiles apart, by the same port of each. */
static inline __attribute__((always_inline)) void go(struct way *way, uint32_t tile, enum hw_direction direction,
                                                     int32_t stride, uint32_t n) {
    struct hw_mesh *mesh = way->mesh;
    struct hw_port *port = &mesh->ports[tile * HW_N_DIRECTIONS + (uint32_t)direction];
    for (; n > 0; n--, port += stride * HW_N_DIRECTIONS) {
        if (way->plain || mesh->data.gap == 0 || direction == HW_INJECT)
            way->now = take(mesh, port, way->now, way->length);
        else
            way->now = take_any(mesh, port, true, way->now, way->length);
        if (!way->plain && way->trace)
            *way->trace++ = (struct hw_hop){(uint32_t)(port - mesh->ports), way->now};
        way->now += way->hop;
    }
}

static inline __attribute__((always_inline)) struct hw_delivery
carry(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles, struct hw_hop *trace, bool plain) {
    int32_t w = (int32_t)mesh->config.width, y = (int32_t)row(mesh, from), to_y = (int32_t)row(mesh, to);
    int32_t right = (int32_t)to - to_y * w - ((int32_t)from - y * w), down = to_y - y;
    /*
     * -1 for a way to the west, or to the north, else 0. From here on without comparisons: the compiler makes branches
     * of them, and the host could not predict which way a packet goes.
     */
    int32_t west = right >> 31, north = down >> 31;
    uint32_t n_x = (uint32_t)((right ^ west) - west), n_y = (uint32_t)((down ^ north) - north), n_hops = n_x + n_y;
    struct way way = {
        .mesh = mesh, .trace = trace, .now = at_cycles, .length = mesh->length, .hop = mesh->hop, .plain = plain};
    go(&way, from, HW_INJECT, 0, 1);
    go(&way, from, (enum hw_direction)(HW_EAST - west), (1 ^ west) - west, n_x);
    go(&way, (uint32_t)((int32_t)from + right), (enum hw_direction)(HW_SOUTH + north), (w ^ north) - north, n_y);
    go(&way, to, HW_EJECT, 0, 1);
    uint64_t arrived = way.now - way.hop; /* the last port leads to the NI */
    mesh->n_packets++;
    mesh->n_hops += n_hops;
    return (struct hw_delivery){.head_cycles = arrived,
                                .tail_cycles = arrived + way.length,
                                .n_hops = n_hops,
                                .contention_cycles = (uint32_t)(arrived - at_cycles - (n_hops + 1) * way.hop)};
}

static __attribute__((noinline)) struct hw_delivery carry_any(struct hw_mesh *mesh, uint32_t from, uint32_t to,
                                                              uint64_t at_cycles, struct hw_hop *trace) {
    return carry(mesh, from, to, at_cycles, trace, false);
}

struct hw_delivery hw_mesh_send(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles,
                                struct hw_hop *trace) {
    if (from == to) {
        mesh->n_local++;
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    }
    if (__builtin_expect(mesh->data.gap != 0 || trace != NULL, 0))
        return carry_any(mesh, from, to, at_cycles, trace);
    return carry(mesh, from, to, at_cycles, NULL, true);
}

uint64_t hw_mesh_arrival(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (from == to) {
        mesh->n_local++;
        return at_cycles;
    }
    if (__builtin_expect(mesh->data.gap != 0, 0))
        return carry_any(mesh, from, to, at_cycles, NULL).head_cycles;
    return carry(mesh, from, to, at_cycles, NULL, true).head_cycles;
}

/* ---- a data packet of the load ---- */

/*
 * When data that comes to the port at `at` can leave. What the port knows of its data ends at `seen`; about an earlier
 * time only the pure function of the time can be asked, and that one does not know of control packets.
 */
static uint64_t behind_data(const struct hw_mesh *mesh, uint32_t port, uint64_t at) {
    struct hw_traffic traffic = mesh->traffic[port];
    if (at < traffic.seen) {
        traffic.until = hw_data_until_at(&mesh->data, port, at);
    } else {
        if (at > traffic.coming.next && at - traffic.coming.next > 2 * mesh->data.epoch)
            hw_data_seek(&mesh->data, port, at - mesh->data.epoch, &traffic.coming);
        hw_data_pass(&mesh->data, port, at, &traffic.coming, &traffic.until);
    }
    return traffic.until > at ? traffic.until : at;
}

/* Through n ports; the answer is when the header has come to the router behind the last one. */
static uint64_t follow(const struct hw_mesh *mesh, uint32_t tile, enum hw_direction direction, int32_t stride,
                       uint32_t n, uint64_t at) {
    uint64_t length = (uint64_t)mesh->config.data_flits * mesh->config.timing.link_cycles;
    uint32_t port = tile * HW_N_DIRECTIONS + (uint32_t)direction, place;
    for (; n > 0; n--, port += (uint32_t)(stride * HW_N_DIRECTIONS)) {
        struct calendar control = unroll(&mesh->ports[port]);
        if (mesh->data.gap != 0 && direction != HW_INJECT)
            at = behind_data(mesh, port, at);
        at = find_gap(&control, at, length, &place) + mesh->hop;
    }
    return at;
}

struct hw_delivery hw_mesh_follow(const struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (from == to)
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    uint32_t w = mesh->config.width, y = row(mesh, from), to_y = row(mesh, to);
    uint32_t x = from - y * w, to_x = to - to_y * w, n_x = apart(x, to_x), n_y = apart(y, to_y);
    uint64_t now = follow(mesh, from, HW_INJECT, 0, 1, at_cycles);
    now = follow(mesh, from, x < to_x ? HW_EAST : HW_WEST, x < to_x ? 1 : -1, n_x, now);
    now = follow(mesh, y * w + to_x, y < to_y ? HW_SOUTH : HW_NORTH, y < to_y ? (int32_t)w : -(int32_t)w, n_y, now);
    uint64_t head = follow(mesh, to, HW_EJECT, 0, 1, now) - mesh->hop; /* the last port leads to the NI */
    return (struct hw_delivery){
        .head_cycles = head,
        .tail_cycles = head + (uint64_t)mesh->config.data_flits * mesh->config.timing.link_cycles,
        .n_hops = n_x + n_y,
        .contention_cycles = (uint32_t)(head - at_cycles - (uint64_t)(n_x + n_y + 1) * mesh->hop)};
}
