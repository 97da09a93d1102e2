/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/place.h"

#include <stdbool.h>

static bool may_run(const struct ni_topology *t, uint32_t cpu) {
    return CPU_ISSET(cpu, &t->allowed);
}

/* The lowest node above `above` with an allowed CPU, UINT32_MAX: none. */
static uint32_t next_node(const struct ni_topology *t, int64_t above) {
    uint32_t next = UINT32_MAX;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (may_run(t, cpu) && t->node[cpu] > above && t->node[cpu] < next)
            next = t->node[cpu];
    return next;
}

static uint32_t count_nodes(const struct ni_topology *t) {
    uint32_t n = 0;
    for (int64_t node = -1; (node = next_node(t, node)) != UINT32_MAX;)
        n++;
    return n;
}

uint32_t ni_place(const struct ni_topology *t, uint32_t number, uint32_t n, cpu_set_t *cpus) {
    uint32_t n_nodes = count_nodes(t), mine = number * n_nodes / n, node = 0;
    int64_t above = -1;
    for (uint32_t i = 0; i <= mine; i++)
        above = node = next_node(t, above);
    uint32_t n_there = 0, before = 0, n_cpus = 0, rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_there += i * n_nodes / n == mine;
        before += i * n_nodes / n == mine && i < number;
    }
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        n_cpus += may_run(t, cpu) && t->node[cpu] == node;
    /* the last CPU of its share: programs tend to begin with the first */
    bool own = n_cpus >= NI_CPUS_TO_SPARE * n_there;
    uint32_t chosen = (before + 1) * n_cpus / n_there - 1;
    CPU_ZERO(cpus);
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (may_run(t, cpu) && t->node[cpu] == node && (rank++ == chosen || !own))
            CPU_SET(cpu, cpus);
    return node;
}

void ni_place_pages(uintptr_t begin, uintptr_t page_bytes, uintptr_t *from, uintptr_t *to) {
    uintptr_t mask = ~(page_bytes - 1);
    *from = (*from == begin ? *from : *from + page_bytes - 1) & mask;
    *to = (*to + page_bytes - 1) & mask;
}
