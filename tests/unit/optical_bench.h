/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An optical network with memory, for its unit tests. */
#ifndef TESTS_UNIT_OPTICAL_BENCH_H
#define TESTS_UNIT_OPTICAL_BENCH_H

#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
#include "optical.h"

enum { N_SLOTS = 64 };

struct bench {
    struct hw_optical net;
    void *memory;
};

static inline void open_net(struct bench *b, const struct hw_optical_config *config, bool subscribed) {
    size_t bytes = hw_optical_bytes(config);
    b->memory = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(b->memory);
    memset(b->memory, 0, bytes);
    ck_assert(hw_optical_init(&b->net, config, b->memory));
    uint32_t n_nodes = hw_optical_nodes_for(&b->net, N_SLOTS);
    struct hw_optical_node *nodes = malloc((n_nodes + 1) * sizeof *nodes);
    struct hw_optical_slot *slots = malloc(N_SLOTS * sizeof *slots);
    ck_assert(nodes != NULL && slots != NULL);
    hw_optical_extend(&b->net, nodes, n_nodes, slots, N_SLOTS);
    for (uint32_t core = 0; subscribed && core < config->n_cores; core++)
        ck_assert_int_eq(hw_optical_subscribe(&b->net, core, 0, 0), HW_OPTICAL_OK);
}

static inline void free_net(struct bench *b) {
    free(b->net.nodes);
    free(b->net.slots);
    free(b->memory);
}

static inline void close_net(struct bench *b) {
    const char *why = "";
    ck_assert_msg(hw_optical_is_valid(&b->net, &why), "%s", why);
    free_net(b);
}

static inline struct hw_optical_config small(uint32_t n_cores) {
    struct hw_optical_config config = hw_optical_config_default();
    config.n_cores = n_cores;
    config.n_channels = 2;
    return config;
}

static inline enum hw_optical_status send(struct bench *b, uint32_t from, uint32_t signature, uint64_t at) {
    struct hw_optical_message m = {.size = 4, .signature = signature, .wavelength = from};
    uint32_t slot;
    return hw_optical_send(&b->net, &m, at, &slot);
}

/* The next message of channel 0 is there at that time, and not a cycle earlier; it was sent by that core. */
static inline void ck_at(struct bench *b, uint32_t core, uint64_t at, uint32_t from) {
    struct hw_optical_received r;
    ck_assert(!hw_optical_receive(&b->net, core, 0, at - 1, &r));
    ck_assert_uint_eq(hw_optical_next(&b->net, core, 0), at);
    ck_assert(hw_optical_receive(&b->net, core, 0, at, &r));
    ck_assert_uint_eq(r.message.wavelength, from);
    ck_assert_uint_eq(r.available_cycles, at);
}

#endif
