/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way of a message in ATAC's clusters: core, link, hub of its cluster, modulator, waveguide, detectors, hub of each
 * cluster, receive network, cores.
 *
 *   send     a link and the hub. The hub has one wavelength, so one message at a time, a flit each cycle
 *   optical  E-O, the whole waveguide (Graphite's: the same for all clusters, rounded up to cycles), O-E. The sender's
 *            own cluster gets the message from its hub, without the three (ours)
 *   receive  the hub; then a star (a router and a link), or an H-tree (a link for each level). A cluster has several
 *            such networks. Messages of one hub take the same one, so none overtakes another
 *
 * A message has arrived when its last flit has. Messages are given to a hub in the order in which they are sent. A
 * message that waits for its sender's hub keeps its place in that order at the receivers' networks too, where in a real
 * chip another cluster's message could go first.
 */
#ifndef HW_OPTICAL_CLUSTERS_H
#define HW_OPTICAL_CLUSTERS_H

#include <stddef.h>

#include "optical_config.h"

struct hw_clusters {
    struct hw_clusters_config config;
    uint32_t n;             /* clusters */
    uint64_t *hub_free;     /* [n]: when the hub has sent its last message */
    uint64_t *network_free; /* [n * n_receive_networks]: when the network has carried its last message */
    uint32_t waveguide_cycles, receive_cycles;
};

/* 64-bit words that clusters need. */
size_t hw_clusters_words(const struct hw_optical_config *config);
/* `words` are zeroed, and the caller's. */
void hw_clusters_init(struct hw_clusters *clusters, const struct hw_optical_config *config, uint64_t *words);

static inline uint32_t hw_clusters_of(const struct hw_clusters *clusters, uint32_t core) {
    return core / clusters->config.n_cores;
}

/* A message on its way. */
struct hw_clusters_way {
    uint32_t from, n_flits; /* cluster of the sender; flits */
    uint64_t left_cycles;   /* the first flit has left the sender's hub */
};

/* The message enters the sender's hub. Times of calls do not go back. */
struct hw_clusters_way hw_clusters_leave(struct hw_clusters *clusters, uint32_t core, uint32_t size, uint64_t at);
/* When it has arrived at all cores of a cluster. Once for each message and cluster. */
uint64_t hw_clusters_arrive(struct hw_clusters *clusters, const struct hw_clusters_way *way, uint32_t cluster);

#endif
