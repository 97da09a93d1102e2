/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pools.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64, NODES_A_SLOT = 64 /* that a slot takes of the limit: it has the message's data too */ };

static bool grow_slots(struct hw_optical *net, uint32_t n, void **beside, size_t beside_bytes) {
    struct hw_optical_slot *slots = realloc(net->slots, n * sizeof *slots);
    if (slots == NULL)
        return false;
    net->slots = slots;
    char *more = realloc(*beside, n * beside_bytes);
    if (more == NULL)
        return false;
    *beside = more;
    memset(more + net->n_slots * beside_bytes, 0, (n - net->n_slots) * beside_bytes);
    return true;
}

static bool grow_nodes(struct hw_optical *net, uint32_t n) {
    struct hw_optical_node *nodes = realloc(net->nodes, n * sizeof *nodes);
    if (nodes != NULL)
        net->nodes = nodes;
    return nodes != NULL;
}

static bool half_is_free(uint32_t n_free, uint32_t n) {
    return n_free != 0 && 2 * (uint64_t)n_free >= n;
}

enum sim_pools_status sim_pools_grow(struct hw_optical *net, uint64_t now, uint32_t most, void **beside,
                                     size_t beside_bytes) {
    uint32_t n_copies = net->config.n_cores > 1 ? net->config.n_cores - 1 : 1;
    uint32_t n_slots = net->n_slots, n_nodes = net->n_nodes;
    for (uint32_t core = 0; core < net->config.n_cores; core++)
        hw_optical_advance(net, core, now);
    if (!half_is_free(net->n_free_slots, n_slots))
        n_slots = n_slots != 0 ? 2 * n_slots : FIRST_SLOTS;
    if (!half_is_free(net->n_free_nodes, n_nodes) || net->n_free_nodes < n_copies)
        n_nodes = n_nodes != 0 ? 2 * n_nodes : FIRST_SLOTS * n_copies;
    if (n_slots > most / NODES_A_SLOT || n_nodes > most)
        return SIM_POOLS_FULL;
    if ((n_slots != net->n_slots && !grow_slots(net, n_slots, beside, beside_bytes)) ||
        (n_nodes != net->n_nodes && !grow_nodes(net, n_nodes)))
        return SIM_POOLS_NO_MEMORY;
    hw_optical_extend(net, net->nodes, n_nodes, net->slots, n_slots);
    return SIM_POOLS_OK;
}
