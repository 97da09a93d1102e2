/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_config.h"

#include <stdbool.h>
#include <stddef.h>

static struct hw_clusters_config default_clusters(void) {
    struct hw_clusters_config c = {.n_cores = 4, .receive = HW_RECEIVE_STAR, .n_receive_networks = 2, .flit_bits = 64};
    c.link_cycles = c.hub_cycles = c.star_cycles = c.eo_cycles = c.oe_cycles = 1;
    c.waveguide_ps_per_mm = 10;
    c.tile_um = 1000;
    return c;
}

struct hw_optical_config hw_optical_config_default(void) {
    return (struct hw_optical_config){.n_cores = 64,
                                      .n_channels = 64,
                                      .transport_cycles = 5,
                                      .controller_cycles = 10,
                                      .check_cycles = 3,
                                      .shape = HW_OPTICAL_FLAT,
                                      .clusters = default_clusters(),
                                      .clock_mhz = hw_timing_default().clock_mhz};
}

static bool within(uint32_t value, uint32_t least, uint32_t most) {
    return value >= least && value <= most;
}

static const char *clusters_refusal(const struct hw_clusters_config *c) {
    if (!within(c->n_cores, 1, HW_OPTICAL_MAX_CORES))
        return "cores of a cluster";
    if ((uint32_t)c->receive >= HW_N_RECEIVE_NETWORKS)
        return "kind of receive network";
    if (!within(c->n_receive_networks, 1, 16))
        return "receive networks";
    if (!within(c->flit_bits, 1, 4096))
        return "bits of a flit";
    if (c->link_cycles > HW_OPTICAL_MAX_CYCLES || c->hub_cycles > HW_OPTICAL_MAX_CYCLES ||
        c->star_cycles > HW_OPTICAL_MAX_CYCLES || c->eo_cycles > HW_OPTICAL_MAX_CYCLES ||
        c->oe_cycles > HW_OPTICAL_MAX_CYCLES)
        return "cycles of links, hubs and conversions";
    if (c->waveguide_ps_per_mm > 1000 || c->tile_um > 100000)
        return "waveguide";
    return NULL;
}

const char *hw_optical_refusal(const struct hw_optical_config *config) {
    if (!within(config->n_cores, 1, HW_OPTICAL_MAX_CORES))
        return "cores";
    if (!within(config->n_channels, 1, HW_OPTICAL_MAX_CHANNELS))
        return "channels";
    if (config->transport_cycles > HW_OPTICAL_MAX_CYCLES)
        return "transport cycles";
    if (config->controller_cycles > HW_OPTICAL_MAX_CYCLES)
        return "controller cycles";
    if (config->check_cycles > HW_OPTICAL_MAX_CYCLES)
        return "check cycles";
    if (!within(config->clock_mhz, 1, 100000))
        return "clock";
    if ((uint32_t)config->shape >= HW_N_OPTICAL_SHAPES)
        return "shape";
    return config->shape == HW_OPTICAL_CLUSTERS ? clusters_refusal(&config->clusters) : NULL;
}
