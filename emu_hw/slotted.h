/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The network of mesh.h, for packets that are sent in any order of their times, by several threads at once, without a
 * lock: the live engine's. Its latencies in an empty network are those of mesh.h. Contention is that of mesh.h on
 * average: tests/unit/slotted_test.c holds the sum of all waits within 10 % of that of the same packets in mesh.h, sent
 * in order of time.
 *
 * Each port has a calendar of slots (calendar.h). A packet that waits does so for whole slots. Two packets that are
 * ready d cycles apart, less than a slot's length of 3, have the same slot in 3 - d of 3 cases; then one waits for 3.
 * The mean, 3 - d, is what it waits in mesh.h.
 *
 * Two packets with a common way must not meet anew at each of its ports. So from port to port a packet advances by a
 * number of slots that depends on the two ports alone: packets in different slots of a port stay in different slots.
 * Slots are three cycles and a hop is four. So the slots of a straight line's ports begin by one cycle later from port
 * to port, and a packet that follows the line keeps its place in its slot. Where a way begins, turns and ends, the
 * advance is rounded; thereby a packet is put into a slot that is wrong by a cycle at most each time. Its latency is
 * not touched by that.
 *
 * Data traffic (data.h) is a pure function of port and time: control packets take no time from it.
 *
 * Counters are relaxed atomics: nothing but a report reads them. Packets are counted for each pair of tiles, because a
 * pair has one way: a packet adds to one counter, and not to one at each port.
 */
#ifndef HW_SLOTTED_H
#define HW_SLOTTED_H

#include "calendar.h"
#include "mesh.h"

struct hw_slotted {
    struct hw_mesh_config config;
    uint64_t *calendars; /* HW_CALENDAR_WORDS of each port; ports are numbered as in mesh.h */
    uint64_t *waited;    /* of each port: cycles of contention */
    uint64_t *forgotten; /* of each tile that sends: how often a port had forgotten the time of its packet */
    uint64_t *n_packets; /* from tile f to tile t: f * number of tiles + t */
    struct hw_data data;
    uint32_t hop, length, by_width;  /* as in struct hw_mesh */
    uint32_t hop_slots, hop_rest;    /* hop = hop_slots * length + hop_rest */
    uint8_t frame[HW_MESH_MAX_SIDE]; /* when the slots of a line's n-th port begin, modulo length */
};

/* Bytes of memory that a network needs. Only pages of ports that carry packets are touched. */
size_t hw_slotted_bytes(uint32_t width, uint32_t height);

/* `memory` is zeroed, and begins at a multiple of 64. False, and nothing done: there can be no such network. */
bool hw_slotted_init(struct hw_slotted *net, const struct hw_mesh_config *config, uint64_t *memory);

/* Carries one control packet that is ready at `at_cycles`. Any thread, any order. */
struct hw_delivery hw_slotted_send(struct hw_slotted *net, uint32_t from, uint32_t to, uint64_t at_cycles);

/* Sums, for a report. */
struct hw_slotted_sums {
    uint64_t n_packets, n_hops, contention_cycles, n_forgotten;
};

/* port_packets: NULL, or room for the packets of each port. */
struct hw_slotted_sums hw_slotted_sum(const struct hw_slotted *net, uint64_t *port_packets);

#endif
