/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "travel.h"

#include <stdlib.h>

#define NO_PACKET UINT32_MAX

struct packet {
    enum sim_packet_kind kind;
    bool counts;
    uint32_t from, to, tile; /* tile: of the port where it is */
    enum hw_direction direction;
    uint64_t ready, came;
    uint32_t next; /* in a queue, or of the free packets */
};

struct queue {
    uint32_t first, last;
};

/* With HW_QOS_NONE all packets are in the first queue. */
struct port {
    struct queue queue[SIM_N_PACKETS];
    uint64_t until; /* taken until then */
    uint64_t data_cycles;
    bool chooses; /* there is an event for its next choice */
};

/* In the order of an event's cycle: what comes to a port is there when the port chooses. */
enum what { SEND, COME, CHOOSE };

struct event {
    uint64_t at;
    uint64_t order; /* what << 56 | number */
    uint32_t which; /* a tile's source, a packet, a port */
};

struct net {
    struct sim_travel_config config;
    struct sim_travel_result *result;
    uint32_t n_tiles, hop, length[SIM_N_PACKETS];
    uint64_t gap[SIM_N_PACKETS]; /* mean cycles between packets of a tile; 0: none */
    uint64_t end, random, n_numbered;
    struct port *ports;
    struct packet *packets;
    uint32_t n_packets, free_packets;
    struct event *heap;
    size_t n_events, heap_size;
    bool no_memory;
};

/* ---- events: a binary heap ---- */

static bool before(const struct event *a, const struct event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct net *net, uint64_t at, enum what what, uint32_t which) {
    if (net->n_events == net->heap_size) {
        size_t n = net->heap_size == 0 ? 1024 : 2 * net->heap_size;
        struct event *heap = realloc(net->heap, n * sizeof *heap);
        if (heap == NULL) {
            net->no_memory = true;
            return;
        }
        net->heap = heap;
        net->heap_size = n;
    }
    struct event event = {at, (uint64_t)what << 56 | net->n_numbered++, which};
    size_t i = net->n_events++;
    for (; i > 0 && before(&event, &net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        net->heap[i] = net->heap[(i - 1) / 2];
    net->heap[i] = event;
}

static struct event get(struct net *net) {
    struct event first = net->heap[0], last = net->heap[--net->n_events];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < net->n_events; i = child) {
        child += child + 1 < net->n_events && before(&net->heap[child + 1], &net->heap[child]);
        if (!before(&net->heap[child], &last))
            break;
        net->heap[i] = net->heap[child];
    }
    net->heap[i] = last;
    return first;
}

/* ---- packets and queues ---- */

static uint64_t draw(struct net *net, uint64_t n) {
    uint64_t x = net->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    net->random = x;
    return (x >> 32) * n >> 32;
}

static uint32_t new_packet(struct net *net) {
    uint32_t i = net->free_packets;
    if (i != NO_PACKET) {
        net->free_packets = net->packets[i].next;
        return i;
    }
    if ((net->n_packets & (net->n_packets - 1)) == 0) { /* room for 0, 1, 2, 4, ... */
        uint32_t n = net->n_packets == 0 ? 1 : 2 * net->n_packets;
        struct packet *packets = realloc(net->packets, n * sizeof *packets);
        if (packets == NULL) {
            net->no_memory = true;
            return NO_PACKET;
        }
        net->packets = packets;
    }
    return net->n_packets++;
}

static void append(struct net *net, struct queue *queue, uint32_t packet) {
    net->packets[packet].next = NO_PACKET;
    if (queue->first == NO_PACKET)
        queue->first = packet;
    else
        net->packets[queue->last].next = packet;
    queue->last = packet;
}

static uint32_t shift(struct net *net, struct queue *queue) {
    uint32_t packet = queue->first;
    if (packet != NO_PACKET)
        queue->first = net->packets[packet].next;
    return packet;
}

/* ---- the way of a packet ---- */

static uint32_t apart(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static uint32_t distance(const struct net *net, const struct packet *p) {
    uint32_t w = net->config.mesh.width;
    uint32_t n_hops = apart(p->from % w, p->to % w) + apart(p->from / w, p->to / w);
    return (n_hops + 1) * net->hop + net->length[p->kind];
}

/* The port by which a packet leaves the router of its tile. */
static enum hw_direction towards(const struct net *net, const struct packet *p) {
    uint32_t w = net->config.mesh.width;
    if (p->tile % w != p->to % w)
        return p->tile % w < p->to % w ? HW_EAST : HW_WEST;
    if (p->tile / w != p->to / w)
        return p->tile / w < p->to / w ? HW_SOUTH : HW_NORTH;
    return HW_EJECT;
}

static void arrive(struct net *net, uint32_t number, uint64_t head) {
    struct packet *p = &net->packets[number];
    uint64_t latency = head + net->length[p->kind] - p->ready;
    if (p->counts) {
        sim_spread_add(&net->result->latency[p->kind], latency);
        sim_spread_add(&net->result->wait[p->kind], latency - distance(net, p));
    }
    p->next = net->free_packets;
    net->free_packets = number;
}

static void come(struct net *net, uint32_t number, uint64_t now) {
    struct packet *p = &net->packets[number];
    uint32_t at = p->tile * HW_N_DIRECTIONS + (uint32_t)p->direction;
    struct port *port = &net->ports[at];
    p->came = now;
    append(net, &port->queue[net->config.mesh.qos == HW_QOS_NONE ? 0 : p->kind], number);
    if (!port->chooses) {
        port->chooses = true;
        put(net, now > port->until ? now : port->until, CHOOSE, at);
    }
}

/* From the port that it leaves at `now` to the next one. */
static void advance(struct net *net, uint32_t number, uint64_t now) {
    struct packet *p = &net->packets[number];
    uint32_t w = net->config.mesh.width;
    switch (p->direction) {
    case HW_EAST:
        p->tile++;
        break;
    case HW_WEST:
        p->tile--;
        break;
    case HW_NORTH:
        p->tile -= w;
        break;
    case HW_SOUTH:
        p->tile += w;
        break;
    case HW_EJECT:
        arrive(net, number, now);
        return;
    case HW_INJECT:
    case HW_N_DIRECTIONS:
        break;
    }
    p->direction = towards(net, p);
    put(net, now + net->hop, COME, number);
}

static void choose(struct net *net, uint32_t at, uint64_t now) {
    struct port *port = &net->ports[at];
    uint32_t number = shift(net, &port->queue[SIM_CONTROL_PACKET]);
    if (number == NO_PACKET)
        number = shift(net, &port->queue[SIM_DATA_PACKET]);
    const struct packet *p = &net->packets[number];
    port->until = now + net->length[p->kind];
    if (p->kind == SIM_DATA_PACKET && now < net->end)
        port->data_cycles += net->length[p->kind];
    if (net->config.on_hop != NULL)
        net->config.on_hop(net->config.context, &(struct sim_travel_hop){p->kind, at, p->came, now});
    advance(net, number, now);
    port->chooses = port->queue[0].first != NO_PACKET || port->queue[1].first != NO_PACKET;
    if (port->chooses)
        put(net, port->until, CHOOSE, at);
}

/* A source: tile * SIM_N_PACKETS + kind. */
static void send(struct net *net, uint32_t source, uint64_t now) {
    enum sim_packet_kind kind = (enum sim_packet_kind)(source % SIM_N_PACKETS);
    uint32_t tile = source / SIM_N_PACKETS, to = (uint32_t)draw(net, net->n_tiles - 1), number = new_packet(net);
    uint64_t next = now + 1 + draw(net, 2 * net->gap[kind] - 1);
    if (number == NO_PACKET)
        return;
    net->packets[number] = (struct packet){.kind = kind,
                                           .counts = now >= net->config.warm_cycles,
                                           .from = tile,
                                           .to = to + (to >= tile),
                                           .tile = tile,
                                           .direction = HW_INJECT,
                                           .ready = now};
    come(net, number, now);
    if (next < net->end)
        put(net, next, SEND, source);
}

/* ---- the whole ---- */

/* Data packets on the busiest link or eject port of a mesh for each packet that a tile sends, times n_tiles - 1. */
static double busiest(const struct hw_mesh_config *mesh) {
    uint32_t w = mesh->width, h = mesh->height;
    uint32_t east = (w / 2) * (w - w / 2) * h, south = (h / 2) * (h - h / 2) * w;
    return east > south ? east : south;
}

static bool open_net(struct net *net) {
    const struct hw_mesh_config *mesh = &net->config.mesh;
    size_t n_ports = hw_mesh_n_ports(mesh->width, mesh->height);
    net->n_tiles = mesh->width * mesh->height;
    net->hop = mesh->timing.router_cycles + mesh->timing.link_cycles;
    net->length[SIM_CONTROL_PACKET] = HW_MESH_N_FLITS * mesh->timing.link_cycles;
    net->length[SIM_DATA_PACKET] = mesh->data_flits * mesh->timing.link_cycles;
    net->gap[SIM_CONTROL_PACKET] = net->config.control_gap;
    if (mesh->load_permille != 0)
        net->gap[SIM_DATA_PACKET] = (uint64_t)((double)net->length[SIM_DATA_PACKET] * 1000 * busiest(mesh) /
                                                   ((double)mesh->load_permille * (net->n_tiles - 1)) +
                                               0.5);
    net->end = net->config.warm_cycles + net->config.n_cycles;
    net->random = (mesh->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    net->free_packets = NO_PACKET;
    net->ports = malloc(n_ports * sizeof *net->ports);
    for (size_t i = 0; net->ports != NULL && i < n_ports; i++)
        net->ports[i] = (struct port){.queue = {{NO_PACKET, NO_PACKET}, {NO_PACKET, NO_PACKET}}};
    return net->ports != NULL;
}

/* Each source begins as if it had always sent: at a random time of a gap. */
static void begin(struct net *net) {
    for (uint32_t source = 0; source < net->n_tiles * SIM_N_PACKETS; source++)
        if (net->gap[source % SIM_N_PACKETS] != 0)
            put(net, draw(net, 2 * net->gap[source % SIM_N_PACKETS]), SEND, source);
}

static void sum_links(const struct net *net) {
    uint32_t w = net->config.mesh.width, h = net->config.mesh.height;
    struct sim_travel_result *r = net->result;
    r->n_cycles = net->end;
    r->n_links = 2 * ((uint64_t)(w - 1) * h + (uint64_t)w * (h - 1));
    for (uint32_t i = 0; i < net->n_tiles * HW_N_DIRECTIONS; i++) {
        uint32_t direction = i % HW_N_DIRECTIONS;
        if (direction == HW_INJECT || direction == HW_EJECT)
            continue;
        uint64_t cycles = net->ports[i].data_cycles;
        r->busy_cycles += cycles;
        r->busiest_cycles = cycles > r->busiest_cycles ? cycles : r->busiest_cycles;
    }
}

bool sim_travel(const struct sim_travel_config *config, struct sim_travel_result *result) {
    struct net net = {.config = *config, .result = result};
    *result = (struct sim_travel_result){0};
    if (!hw_mesh_possible(&config->mesh) || config->mesh.width * config->mesh.height < 2 || !open_net(&net))
        return false;
    begin(&net);
    while (net.n_events > 0 && !net.no_memory) {
        struct event event = get(&net);
        switch ((enum what)(event.order >> 56)) {
        case SEND:
            send(&net, event.which, event.at);
            break;
        case COME:
            come(&net, event.which, event.at);
            break;
        case CHOOSE:
            choose(&net, event.which, event.at);
            break;
        }
    }
    sum_links(&net);
    free(net.ports);
    free(net.packets);
    free(net.heap);
    return !net.no_memory;
}
