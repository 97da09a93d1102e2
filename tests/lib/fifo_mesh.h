/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reference for the networks of emu_hw: each port serves packets in the order in which they arrive at that port,
 * one at a time. All packets are known beforehand, and are moved from port to port in the order of time.
 */
#ifndef TESTS_LIB_FIFO_MESH_H
#define TESTS_LIB_FIFO_MESH_H

#include "mesh.h"

struct fifo_packet {
    uint64_t at_cycles;
    uint32_t from, to;
    uint32_t contention_cycles; /* the answer */
};

/* The sum of all waits. Packets may be in any order; of those that arrive at once the first in the array is first. */
uint64_t fifo_mesh(const struct hw_mesh_config *config, struct fifo_packet *packets, uint32_t n);

#endif
