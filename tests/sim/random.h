/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers, and random chips. A round is named by its number: SIM_RANDOM in the environment repeats one. */
#ifndef SIM_TESTS_RANDOM_H
#define SIM_TESTS_RANDOM_H

#include "build.h"
#include "sim.h"

static uint64_t seed;

static inline void random_begin(uint64_t round) {
    seed = (round + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static inline uint32_t below(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % n);
}

static inline void random_chip(struct sim_config *config) {
    *config = sim_config_default();
    config->width = 1 + below(8);
    config->height = 1 + below(8);
    config->sched.slot_ns = below(2) ? 1000000 : 2000 + below(20000);
    config->sched.frame_ns = below(3) ? 100 * config->sched.slot_ns : 0;
    config->sched.cap_ns = config->sched.frame_ns / (1 + below(4));
    config->migrate = below(2);
    config->recorded_order = below(3) == 0;
    config->n_control = below(2) ? 4 : 1 + below(4);
    config->n_queue = below(2) ? 122 : 1 + below(16);
    config->evict = below(4) != 0;
    config->strict_paper = below(4) == 0;
    config->load_permille = below(3) ? 0 : below(900);
    config->costs.switch_ns = below(2) * 1000;
    config->costs.patience_ns = below(3) * 700;
}

/* The host: with slices so short that threads are preempted anywhere, and effects left out. */
static inline void random_host(struct sim_config *config) {
    config->host = model_of(config->sync, config->width * config->height);
    if (below(2)) {
        config->host.tick_ns = 500 + below(20000);
        config->host.slice_ns = 100 + below(20000);
        config->host.hot_ns = below(2000);
        config->host.balance_ns = below(100000);
    }
    config->host.effects = below(2) ? SIM_HOST_ALL : below(SIM_HOST_ALL + 1);
    config->host.idle_entry_ns = below(2) ? 0 : below(20000);
    config->host.short_ns = below(2) ? 0 : below(20000);
    config->host.spin_ns = below(3) * 2000;
    config->host.n_yields = below(20);
}

#endif
