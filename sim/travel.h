/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A network in which all data packets travel, event by event.
 *
 * The chip's own network (emu_hw/mesh.h) gives each port data traffic of its own. That is cheap, and one packet of it
 * can be followed, but the load does not move. Here it does: each tile sends data packets to random other tiles, and
 * control packets too, and both kinds go through the same ports by the same XY routes. The price is work for each
 * packet at each port, in proportion to the simulated time. So the chip does not use this network: it is for
 * measurements of the network itself (bench/paper/qos), and for checks of the cheap one.
 *
 * A header that comes to a port joins the port's queue. A port that is free takes the first control packet, or if there
 * is none the first data packet (HW_QOS_CONTROL_FIRST), or the packet that came first (HW_QOS_NONE). No packet is
 * interrupted. The port is taken for the packet's flits; the header is at the next port one hop after it left. Packets
 * that come in the cycle in which a port becomes free are in the queue when it chooses. Queues are as long as needed.
 *
 * Load: of the busiest links between routers, on average, because random routes load the middle of a mesh more than its
 * edge. The result says what the average link had.
 */
#ifndef SIM_TRAVEL_H
#define SIM_TRAVEL_H

#include "histogram.h"
#include "mesh.h"
#include "sim.h"

/* A header leaves by a port that it came to at `came`. */
struct sim_travel_hop {
    enum sim_packet_kind kind;
    uint32_t port; /* as in mesh.h */
    uint64_t came, left;
};

struct sim_travel_config {
    struct hw_mesh_config mesh; /* of at least two tiles; load, quality of service and seed, too */
    uint32_t control_gap;       /* each tile sends a control packet every so many cycles on average; 0: never */
    /* Tiles send for warm_cycles before packets count, and then for n_cycles; then all packets arrive. */
    uint64_t warm_cycles, n_cycles;
    void *context;
    void (*on_hop)(void *context, const struct sim_travel_hop *hop); /* in order of `left`; NULL: not called */
};

/* Cycles from the time when a packet is ready until all of it has arrived. Waits: what of them is not distance. */
struct sim_travel_result {
    struct sim_spread latency[SIM_N_PACKETS], wait[SIM_N_PACKETS];
    uint64_t n_cycles;       /* of sending */
    uint64_t n_links;        /* from router to router */
    uint64_t busy_cycles;    /* of all these links by data packets that left while tiles sent */
    uint64_t busiest_cycles; /* of the busiest of them */
};

/* False: no such network (see hw_mesh_possible), or no memory. Deterministic: the same config, the same result. */
bool sim_travel(const struct sim_travel_config *config, struct sim_travel_result *result);

#endif
