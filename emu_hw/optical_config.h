/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an optical network costs, and how large it is. Cycles are of the one clock of timing.h.
 *
 * Two models of the way from the sender to a lambda queue:
 *
 *   HW_OPTICAL_FLAT      the thesis's, and the default: the same number of cycles from each core to each other core
 *                        (Table 4.1: 5), whatever else is under way
 *   HW_OPTICAL_CLUSTERS  ATAC's, finer: optical_clusters.h
 *
 * The thesis's queues have no limits. lambda_limit and buffer_limit are ours.
 */
#ifndef HW_OPTICAL_CONFIG_H
#define HW_OPTICAL_CONFIG_H

#include <stdint.h>

#include "timing.h"

enum {
    HW_OPTICAL_MAX_CORES = 1024,
    HW_OPTICAL_MAX_CHANNELS = 1024,
    HW_OPTICAL_MAX_BYTES = 65536,   /* of data in a message */
    HW_OPTICAL_MAX_CYCLES = 1000000 /* of each cost */
};

enum hw_optical_shape { HW_OPTICAL_FLAT, HW_OPTICAL_CLUSTERS, HW_N_OPTICAL_SHAPES };
enum hw_receive_network { HW_RECEIVE_STAR, HW_RECEIVE_HTREE, HW_N_RECEIVE_NETWORKS };

/* Graphite's defaults (carbon_sim.cfg, [network/atac] and [link_model/optical]), but for link_cycles and tile_um. */
struct hw_clusters_config {
    uint32_t n_cores; /* of a cluster: 4 */
    enum hw_receive_network receive;
    uint32_t n_receive_networks; /* of a cluster: 2 */
    uint32_t flit_bits;          /* 64 */
    uint32_t link_cycles;        /* an electrical link between a core and its hub: 1; ours */
    uint32_t hub_cycles;         /* each hub: 1 */
    uint32_t star_cycles;        /* the router of a star: 1. An H-tree has none */
    uint32_t eo_cycles, oe_cycles;
    uint32_t waveguide_ps_per_mm; /* 10 */
    uint32_t tile_um;             /* side of a tile: 1000; ours. The waveguide is as long as a side of each cluster */
};

struct hw_optical_config {
    uint32_t n_cores;    /* 1 to HW_OPTICAL_MAX_CORES */
    uint32_t n_channels; /* 1 to HW_OPTICAL_MAX_CHANNELS */
    uint32_t transport_cycles, controller_cycles, check_cycles;
    uint32_t lambda_limit; /* messages of one sender at one receiver, under way or in the lambda queue. 0: no limit */
    uint32_t buffer_limit; /* messages of one channel in a core's message buffer. 0: no limit */
    enum hw_optical_shape shape;
    struct hw_clusters_config clusters; /* HW_OPTICAL_CLUSTERS only */
    uint32_t clock_mhz;
};

/* 64 cores, 64 channels, Table 4.1's costs, no limits, flat. */
struct hw_optical_config hw_optical_config_default(void);

/* NULL, or why there can be no such network: the name of the field that is out of range. */
const char *hw_optical_refusal(const struct hw_optical_config *config);

#endif
