/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The network: W x H routers, XY routing, three-flit control packets, in virtual time.
 *
 * Tile y * W + x has a router with six ports that packets leave by: from its NI into the router (inject), east, west,
 * north (y - 1), south (y + 1), and to its NI (eject). A header spends router_cycles in each router and link_cycles on
 * each link; the other flits follow it, one every link_cycles, so a port is taken for three of them. A packet to its
 * own tile never enters the network.
 *
 * Contention: each port keeps a short calendar of when it is taken. A header that finds its port taken waits in the
 * router, and the rest of its packet behind it. Routers have room for a whole packet at each input, so a blocked packet
 * leaves the links behind it free (wormhole routing with three-flit packets and buffers of at least three flits; the
 * paper's NI buffers have 16). Buffers that fill up are not modelled.
 *
 * This mesh is for a driver that sends packets about in the order of their injection times: the simulator. A packet
 * that is a little earlier than one sent before it uses the gaps that the calendar still remembers; before the first of
 * those it waits. No port ever carries two flits at once. Also in that order packets from far away come to a port later
 * than packets from near by that were sent after them, and the gaps between them can be too short for a packet. So
 * packets wait longer than where each port serves them in the order of their coming: by half in 8 x 8 tiles, twice as
 * long in 32 x 32. slotted.h does not have that error, and takes packets in any order.
 *
 * Data traffic: each router output, eject included, also carries data packets (data.h), load_permille of its cycles.
 * With HW_QOS_CONTROL_FIRST (the paper's quality of service) a control packet waits at most for the rest of the data
 * packet under way. With HW_QOS_NONE it waits for all data that came before it.
 *
 * A data packet of the load can be followed from tile to tile (hw_mesh_follow). At each port it waits for the data that
 * has come before it, and for the control packets that have been sent before it was followed. The other data packets do
 * not travel: each port has its own. So the load is the same on every link, and what a packet waits at one port says
 * nothing of what it waits at the next.
 *
 * Costs of a hop, buffers and data traffic are ours: the paper gives none. Nothing here blocks; one thread at a time.
 */
#ifndef HW_MESH_H
#define HW_MESH_H

#include "data.h"
#include "timing.h"

#include <stdbool.h>
#include <stddef.h>

#define HW_MESH_MAX_SIDE 32
#define HW_MESH_N_FLITS 3 /* of a control packet */
#define HW_MESH_ROW_BITS 22
#define HW_MESH_MAX_LOAD_PERMILLE 900 /* data traffic: nearer to 1000 control packets would wait without end */

enum hw_direction { HW_INJECT, HW_EAST, HW_WEST, HW_NORTH, HW_SOUTH, HW_EJECT, HW_N_DIRECTIONS };

struct hw_mesh_config {
    uint32_t width, height; /* 1 to 32 each */
    struct hw_timing timing;
    enum hw_qos qos;
    uint32_t load_permille; /* of data traffic: 0 (none) to HW_MESH_MAX_LOAD_PERMILLE */
    uint32_t data_flits;    /* of a data packet, at least 1 */
    uint64_t seed;
};

/* 8 x 8, Table IV's timing, control first, no data traffic; data packets, if asked for, of 18 flits (64 bytes and two).
 */
struct hw_mesh_config hw_mesh_config_default(void);

enum { HW_CALENDAR = 4 }; /* entries that a port remembers; a power of two */

/* What a packet touches of a port: 64 bytes, of which most packets write three words. */
struct hw_port {
    uint64_t until;     /* the end of the calendar's last entry */
    uint64_t n_entries; /* so far: the last one is taken[n_entries % HW_CALENDAR] */
    /* A ring. The lower half of an entry says for how long the port was free, the upper half for how long it was then
     * taken. All time before the first gap counts as taken. An entry that was never used is empty, at time 0. */
    uint64_t taken[HW_CALENDAR];
    uint64_t n_joined;          /* packets without an entry of their own at the end */
    uint64_t contention_cycles; /* how long control packets waited for this port */
};

/* Control packets that have left by this port. */
static inline uint64_t hw_port_n_packets(const struct hw_port *port) {
    return port->n_entries + port->n_joined;
}

/* A port's data traffic. */
struct hw_traffic {
    uint64_t until; /* the data that has come so far has left by then */
    uint64_t seen;  /* the data that comes until then, included, has come */
    struct hw_data_stream coming;
};

struct hw_mesh {
    struct hw_mesh_config config;
    struct hw_port *ports;      /* hw_mesh_n_ports() of them, the caller's; tile * HW_N_DIRECTIONS + direction */
    struct hw_traffic *traffic; /* as many, behind them */
    uint64_t n_packets, n_local, n_hops, contention_cycles;
    struct hw_data data;
    uint32_t hop, length; /* cycles: of a header from port to port; for which a packet takes a port */
    uint32_t by_width;    /* hw_mesh_by_width() */
};

static inline size_t hw_mesh_n_ports(uint32_t width, uint32_t height) {
    return (size_t)width * height * HW_N_DIRECTIONS;
}

/* Bytes of the memory for `ports`. Faster if it begins at a multiple of 64. */
static inline size_t hw_mesh_bytes(uint32_t width, uint32_t height) {
    return hw_mesh_n_ports(width, height) * (sizeof(struct hw_port) + sizeof(struct hw_traffic));
}

/* Can there be such a mesh? */
bool hw_mesh_possible(const struct hw_mesh_config *config);

/* 2^22 by the width, rounded up. */
static inline uint32_t hw_mesh_by_width(uint32_t width) {
    return ((UINT32_C(1) << HW_MESH_ROW_BITS) + width - 1) / width;
}

/* A tile's row, without a division. Exact up to 1024 tiles: what is rounded up is less than `width`, times a tile less
 * than 2^22; and a tile times by_width fits into 32 bits. */
static inline uint32_t hw_mesh_row(uint32_t by_width, uint32_t tile) {
    return tile * by_width >> HW_MESH_ROW_BITS;
}

/* False, and nothing done: there can be no such mesh. */
bool hw_mesh_init(struct hw_mesh *mesh, const struct hw_mesh_config *config, struct hw_port *ports);

struct hw_delivery {
    uint64_t head_cycles; /* the NI begins to receive: the entry of the state machine begins */
    uint64_t tail_cycles; /* all of the packet has arrived: the core can see it */
    uint32_t n_hops;      /* links between routers */
    uint32_t contention_cycles;
};

/* A port that a packet's header left by, and when. */
struct hw_hop {
    uint32_t port;
    uint64_t at_cycles;
};

/* At most this many hops are traced for one packet. */
static inline uint32_t hw_mesh_max_trace(const struct hw_mesh *mesh) {
    return mesh->config.width + mesh->config.height;
}

/* Carries one control packet that is ready at `at_cycles`. trace: NULL, or room for the n_hops + 2 ports that it uses.
 */
struct hw_delivery hw_mesh_send(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles,
                                struct hw_hop *trace);

/* The same, but the answer is head_cycles only: for callers that send millions of packets. */
uint64_t hw_mesh_arrival(struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles);

/* By how much tail_cycles are later than head_cycles. */
static inline uint32_t hw_mesh_tail(const struct hw_mesh *mesh, uint32_t from, uint32_t to) {
    return from != to ? mesh->length : 0;
}

/* The answer of hw_mesh_send in an empty network, relative to at_cycles. */
struct hw_delivery hw_mesh_distance(const struct hw_mesh *mesh, uint32_t from, uint32_t to);

/*
 * Follows one data packet of the load that enters the network at `at_cycles`. Changes nothing: no other packet waits
 * for it, since the load has its time already. The queue for the first port, from the NI into the router, is not
 * modelled.
 */
struct hw_delivery hw_mesh_follow(const struct hw_mesh *mesh, uint32_t from, uint32_t to, uint64_t at_cycles);

#endif
