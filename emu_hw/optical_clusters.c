/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_clusters.h"

#include "optical_message.h"

static uint32_t n_clusters(const struct hw_optical_config *config) {
    return (config->n_cores + config->clusters.n_cores - 1) / config->clusters.n_cores;
}

size_t hw_clusters_words(const struct hw_optical_config *config) {
    if (config->shape != HW_OPTICAL_CLUSTERS)
        return 0;
    return (size_t)n_clusters(config) * (1 + config->clusters.n_receive_networks);
}

/* The least n with n * n >= value. */
static uint64_t root_of(uint64_t value) {
    uint64_t n = 0;
    while (n * n < value)
        n++;
    return n;
}

/* Levels of a binary tree with so many leaves. */
static uint32_t levels_of(uint32_t leaves) {
    uint32_t levels = 0;
    while ((UINT32_C(1) << levels) < leaves)
        levels++;
    return levels;
}

void hw_clusters_init(struct hw_clusters *clusters, const struct hw_optical_config *config, uint64_t *words) {
    const struct hw_clusters_config *c = &config->clusters;
    *clusters = (struct hw_clusters){.config = *c, .n = n_clusters(config), .hub_free = words};
    clusters->network_free = words + clusters->n;
    uint64_t um = clusters->n * root_of(c->n_cores) * c->tile_um;
    /* A micrometre times a picosecond for a millimetre times a megahertz is a billionth of a cycle. */
    uint64_t billionths = um * c->waveguide_ps_per_mm * config->clock_mhz;
    clusters->waveguide_cycles = (uint32_t)((billionths + 999999999) / 1000000000);
    clusters->receive_cycles =
        c->receive == HW_RECEIVE_STAR ? c->star_cycles + c->link_cycles : levels_of(c->n_cores) * c->link_cycles;
}

struct hw_clusters_way hw_clusters_leave(struct hw_clusters *clusters, uint32_t core, uint32_t size, uint64_t at) {
    const struct hw_clusters_config *c = &clusters->config;
    uint32_t from = hw_clusters_of(clusters, core);
    uint64_t n_flits = (hw_optical_message_bits(size) + c->flit_bits - 1) / c->flit_bits;
    uint64_t at_hub = at + c->link_cycles;
    uint64_t starts = clusters->hub_free[from] > at_hub ? clusters->hub_free[from] : at_hub;
    clusters->hub_free[from] = starts + n_flits;
    return (struct hw_clusters_way){.from = from, .n_flits = (uint32_t)n_flits, .left_cycles = starts + c->hub_cycles};
}

uint64_t hw_clusters_arrive(struct hw_clusters *clusters, const struct hw_clusters_way *way, uint32_t cluster) {
    const struct hw_clusters_config *c = &clusters->config;
    uint64_t at_hub = way->left_cycles;
    if (cluster != way->from)
        at_hub += c->eo_cycles + clusters->waveguide_cycles + c->oe_cycles;
    uint64_t ready = at_hub + c->hub_cycles;
    uint64_t *network_free =
        &clusters->network_free[cluster * c->n_receive_networks + way->from % c->n_receive_networks];
    uint64_t starts = *network_free > ready ? *network_free : ready;
    *network_free = starts + way->n_flits;
    return starts + clusters->receive_cycles + way->n_flits - 1;
}
