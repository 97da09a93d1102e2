/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/tile.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "engine/ni/place.h"
#include "os/arch.h"
#include "os/initial.h"
#include "wait/adapt.h"
#include "wait/yield_gate.h"

#define SPIN_BEFORE_YIELD 200 /* looks: longer than a server serves while it runs */

void ni_tile_take(struct ni_tile *tile) {
    for (uint32_t i = 0; !ni_tile_try(tile); i++) {
        if (i < SPIN_BEFORE_YIELD && sbt_cores_to_spare())
            sbt_cpu_relax();
        else
            sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
    }
}

struct ni_issue ni_tile_issue(struct ni_tile *tile) {
    struct ni_issue issue = {0, 0};
    if (!ni_machine.timed)
        return issue;
    uint64_t now = ni_call_cycles(&issue.rest_ns), until, seen;
    seen = __atomic_load_n(&tile->mailbox.handed_cycles, __ATOMIC_RELAXED);
    do {
        until = seen;
        hw_timing_hand_over(&ni_machine.config.timing, &until, now);
    } while (!__atomic_compare_exchange_n(&tile->mailbox.handed_cycles, &seen, until, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    issue.cycles = until - ni_machine.config.timing.handover_cycles;
    return issue;
}

/* Relaxed: only the report reads the counts. */
void ni_tile_delay(struct ni_tile *tile, uint64_t cycles, uint64_t rest_ns) {
    uint64_t late_ns = ni_wait_until(cycles, rest_ns);
    __atomic_fetch_add(&tile->mailbox.n_delayed, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&tile->mailbox.late_ns, late_ns, __ATOMIC_RELAXED);
}

static char *parts;       /* what tiles have outside struct ni_tile: */
static size_t part_bytes; /* of each tile */

/* The part [from, to) of an array of tiles, each of so many bytes. */
static bool bind_pages(const void *array, size_t bytes, uint32_t from, uint32_t to, uint32_t node) {
    uintptr_t begin = (uintptr_t)array, first = begin + from * bytes, end = begin + to * bytes;
    unsigned long nodes[16] = {0}; /* a bit for each of the 1024 nodes that a kernel can have */
    if (node >= 8 * sizeof nodes - 1)
        return false;
    nodes[node / (8 * sizeof *nodes)] = 1ul << node % (8 * sizeof *nodes);
    ni_place_pages(begin, sbt_auxiliary(AT_PAGESZ, 4096), &first, &end);
    return first >= end || sbt_syscall6(SYS_mbind, (long)first, (long)(end - first), MPOL_PREFERRED, (long)nodes,
                                        8 * sizeof nodes, MPOL_MF_MOVE) == 0;
}

bool ni_tile_bind(uint32_t from, uint32_t to, uint32_t node) {
    return bind_pages(ni_machine.tiles, sizeof *ni_machine.tiles, from, to, node) &&
           bind_pages(parts, part_bytes, from, to, node);
}

int ni_tile_start(void) {
    struct ni_machine *m = &ni_machine;
    size_t spm = (hw_config_spm_bytes(&m->config) + 63) & ~(size_t)63;
    size_t epochs = (m->config.n_control * sizeof(uint32_t) + 63) & ~(size_t)63;
    size_t objects = (m->config.n_control * sizeof(void *) + 63) & ~(size_t)63;
    size_t held = (m->config.n_control * sizeof(struct ni_held_queue) + 63) & ~(size_t)63;
    size_t outputs = (m->config.n_queue + 2u) * sizeof(struct hw_output);
    m->tiles = ni_get_memory(m->n_tiles * sizeof *m->tiles);
    size_t bytes = spm + epochs + objects + held + outputs;
    char *rest = ni_get_memory(m->n_tiles * bytes);
    if (m->tiles == NULL || rest == NULL)
        return ENOMEM;
    parts = rest;
    part_bytes = bytes;
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        struct ni_tile *tile = &m->tiles[i];
        char *own = rest + i * bytes;
        if (!hw_ni_init(&tile->ni, &m->config, i, (uint8_t *)own))
            return EINVAL;
        tile->outputs = (struct hw_output *)(void *)(own + spm + epochs + objects + held);
        tile->held.element = (struct ni_held_queue *)(void *)(own + spm + epochs + objects);
        tile->objects = (const void **)(void *)(own + spm + epochs);
        tile->epochs = (uint32_t *)(void *)(own + spm);
        tile->next_cycles = UINT64_MAX;
        __cds_wfcq_init(&tile->queue_head, &tile->queue_tail);
    }
    return 0;
}
