/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slotted.h"

/* ---- memory ---- */

static size_t n_tiles(uint32_t width, uint32_t height) {
    return (size_t)width * height;
}

size_t hw_slotted_bytes(uint32_t width, uint32_t height) {
    size_t tiles = n_tiles(width, height), ports = hw_mesh_n_ports(width, height);
    return (ports * HW_CALENDAR_WORDS + tiles * tiles + ports + tiles) * sizeof(uint64_t);
}

bool hw_slotted_init(struct hw_slotted *net, const struct hw_mesh_config *config, uint64_t *memory) {
    if (!hw_mesh_possible(config))
        return false;
    size_t tiles = n_tiles(config->width, config->height), ports = hw_mesh_n_ports(config->width, config->height);
    *net = (struct hw_slotted){.config = *config,
                               .calendars = memory,
                               .n_packets = memory + ports * HW_CALENDAR_WORDS,
                               .hop = config->timing.router_cycles + config->timing.link_cycles,
                               .length = HW_MESH_N_FLITS * config->timing.link_cycles,
                               .by_width = hw_mesh_by_width(config->width)};
    net->waited = net->n_packets + tiles * tiles;
    net->forgotten = net->waited + ports;
    net->hop_slots = net->hop / net->length;
    net->hop_rest = net->hop % net->length;
    for (uint32_t i = 0; i < HW_MESH_MAX_SIDE; i++)
        net->frame[i] = (uint8_t)(net->hop * i % net->length);
    net->data = hw_data_init(config->load_permille, (uint64_t)config->data_flits * config->timing.link_cycles,
                             config->qos, config->seed);
    return true;
}

/* ---- the way of a packet ---- */

/* A packet on its way. At a port the time is slot * length + frame + phase, but for what turns have rounded. */
struct way {
    struct hw_slotted *net;
    uint64_t slot, waited;
    uint32_t frame, phase, n_forgotten;
};

static inline void add(uint64_t *counter, uint64_t n) {
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* The rest of the packet waits for data, and then for a free slot. */
static inline void take(struct way *way, uint32_t port, bool has_data) {
    struct hw_slotted *net = way->net;
    uint64_t waited = 0;
    bool forgotten;
    if (__builtin_expect(has_data, 0)) {
        waited = hw_data_wait_at(&net->data, port, way->slot * net->length + way->frame + way->phase);
        uint64_t phase = way->phase + waited;
        way->slot += phase / net->length;
        way->phase = (uint32_t)(phase % net->length);
    }
    uint64_t slot = hw_calendar_take(&net->calendars[(size_t)port * HW_CALENDAR_WORDS], way->slot, &forgotten);
    waited += (slot - way->slot) * net->length;
    way->slot = slot;
    way->n_forgotten += forgotten;
    if (__builtin_expect(waited != 0, 0)) {
        way->waited += waited;
        add(&net->waited[port], waited);
    }
}

/* To a port that is not the next of a straight line. The rounded advance is that of the nearest slot. */
static inline void turn(struct way *way, uint32_t frame) {
    const struct hw_slotted *net = way->net;
    way->slot += (net->length + net->hop + way->frame - frame + net->length / 2) / net->length - 1;
    way->frame = frame;
}

/* Through n routers, `stride` tiles apart, by the same port of each. */
static inline void go(struct way *way, uint32_t tile, enum hw_direction direction, int32_t stride, uint32_t n,
                      uint32_t frame) {
    const struct hw_slotted *net = way->net;
    uint32_t port = tile * HW_N_DIRECTIONS + (uint32_t)direction;
    if (n == 0)
        return;
    turn(way, frame);
    take(way, port, net->data.gap != 0);
    while (--n > 0) {
        port += (uint32_t)(stride * HW_N_DIRECTIONS);
        way->frame += net->hop_rest;
        way->slot += net->hop_slots;
        if (way->frame >= net->length) {
            way->frame -= net->length;
            way->slot++;
        }
        take(way, port, net->data.gap != 0);
    }
}

/* Where a way turns. */
struct corners {
    uint32_t x, y, to_x, to_y;
    uint32_t n_x, n_y; /* links along its row and its column */
};

static inline struct corners corners_of(const struct hw_slotted *net, uint32_t from, uint32_t to) {
    uint32_t w = net->config.width;
    struct corners c = {.y = hw_mesh_row(net->by_width, from), .to_y = hw_mesh_row(net->by_width, to)};
    c.x = from - c.y * w;
    c.to_x = to - c.to_y * w;
    c.n_x = c.x > c.to_x ? c.x - c.to_x : c.to_x - c.x;
    c.n_y = c.y > c.to_y ? c.y - c.to_y : c.to_y - c.y;
    return c;
}

struct hw_delivery hw_slotted_send(struct hw_slotted *net, uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (from == to)
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    uint32_t w = net->config.width, h = net->config.height;
    struct corners c = corners_of(net, from, to);
    struct way way = {.net = net, .slot = at_cycles / net->length, .phase = (uint32_t)(at_cycles % net->length)};
    bool east = c.x < c.to_x, south = c.y < c.to_y;
    enum hw_direction along = east ? HW_EAST : HW_WEST, across = south ? HW_SOUTH : HW_NORTH;
    int32_t stride_x = east ? 1 : -1, stride_y = south ? (int32_t)w : -(int32_t)w;
    uint32_t corner = c.y * w + c.to_x;
    take(&way, from * HW_N_DIRECTIONS + HW_INJECT, false);
    go(&way, from, along, stride_x, c.n_x, net->frame[east ? c.x : w - 1 - c.x]);
    go(&way, corner, across, stride_y, c.n_y, net->frame[south ? c.y : h - 1 - c.y]);
    go(&way, to, HW_EJECT, 0, 1, 0);
    add(&net->n_packets[(size_t)from * n_tiles(w, h) + to], 1);
    if (__builtin_expect(way.n_forgotten != 0, 0))
        add(&net->forgotten[from], way.n_forgotten);
    uint64_t head = at_cycles + (uint64_t)(c.n_x + c.n_y + 1) * net->hop + way.waited;
    return (struct hw_delivery){.head_cycles = head,
                                .tail_cycles = head + net->length,
                                .n_hops = c.n_x + c.n_y,
                                .contention_cycles = (uint32_t)way.waited};
}

/* ---- sums ---- */

/* n packets leave by the ports of the way between two tiles. */
static void add_way(const struct hw_slotted *net, uint32_t from, uint32_t to, uint64_t n, uint64_t *port_packets) {
    struct corners c = corners_of(net, from, to);
    uint32_t tile = from;
    port_packets[from * HW_N_DIRECTIONS + HW_INJECT] += n;
    for (; c.n_x > 0; c.n_x--, tile += c.x < c.to_x ? 1u : -1u)
        port_packets[tile * HW_N_DIRECTIONS + (c.x < c.to_x ? HW_EAST : HW_WEST)] += n;
    for (; c.n_y > 0; c.n_y--, tile += c.y < c.to_y ? net->config.width : -net->config.width)
        port_packets[tile * HW_N_DIRECTIONS + (c.y < c.to_y ? HW_SOUTH : HW_NORTH)] += n;
    port_packets[to * HW_N_DIRECTIONS + HW_EJECT] += n;
}

struct hw_slotted_sums hw_slotted_sum(const struct hw_slotted *net, uint64_t *port_packets) {
    struct hw_slotted_sums sums = {0};
    uint32_t tiles = net->config.width * net->config.height;
    for (uint32_t from = 0; from < tiles; from++) {
        sums.n_forgotten += __atomic_load_n(&net->forgotten[from], __ATOMIC_RELAXED);
        for (uint32_t to = 0; to < tiles; to++) {
            uint64_t n = __atomic_load_n(&net->n_packets[(size_t)from * tiles + to], __ATOMIC_RELAXED);
            if (n == 0)
                continue;
            struct corners c = corners_of(net, from, to);
            sums.n_packets += n;
            sums.n_hops += n * (c.n_x + c.n_y);
            if (port_packets != NULL)
                add_way(net, from, to, n, port_packets);
        }
    }
    for (uint32_t port = 0; port < tiles * HW_N_DIRECTIONS; port++)
        sums.contention_cycles += __atomic_load_n(&net->waited[port], __ATOMIC_RELAXED);
    return sums;
}
