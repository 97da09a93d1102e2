/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/stats.h"

#include <errno.h>
#include <string.h>

static struct ni_latency *by_messages; /* barrier waits on the optical network; under its lock */

static size_t tile_bytes(void) {
    return (sizeof(struct ni_latency) * NI_N_CLASSES + 63) & ~(size_t)63;
}

int ni_stats_start(void) {
    struct ni_machine *m = &ni_machine;
    if (!m->stats)
        return 0;
    char *all = ni_get_memory(m->n_tiles * tile_bytes());
    by_messages = ni_get_memory(sizeof *by_messages);
    if (all == NULL || by_messages == NULL)
        return ENOMEM;
    for (uint32_t i = 0; i < m->n_tiles; i++)
        m->tiles[i].latency = (struct ni_latency *)(void *)(all + i * tile_bytes());
    return 0;
}

static uint32_t bucket_of(uint64_t cycles) {
    if (cycles < NI_LATENCY_EXACT)
        return (uint32_t)cycles;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(cycles); /* >= NI_LATENCY_EXACT_POWER */
    return NI_LATENCY_EXACT + (power - NI_LATENCY_EXACT_POWER) * NI_LATENCY_PER_POWER +
           (uint32_t)(cycles >> (power - NI_LATENCY_PER_POWER_LOG) & (NI_LATENCY_PER_POWER - 1));
}

uint64_t ni_stats_cycles(uint32_t bucket) {
    if (bucket < NI_LATENCY_EXACT)
        return bucket;
    uint32_t power = NI_LATENCY_EXACT_POWER + (bucket - NI_LATENCY_EXACT) / NI_LATENCY_PER_POWER,
             step = (bucket - NI_LATENCY_EXACT) % NI_LATENCY_PER_POWER;
    return ((uint64_t)(NI_LATENCY_PER_POWER + step) << (power - NI_LATENCY_PER_POWER_LOG)) +
           ((UINT64_C(1) << (power - NI_LATENCY_PER_POWER_LOG)) - 1) / 2;
}

uint64_t ni_cycles_all(const struct ni_cycles *cycles) {
    return cycles->handover + cycles->network + cycles->fsm + cycles->resume + cycles->waited;
}

static void add(struct ni_cycles *sum, const struct ni_cycles *cycles) {
    sum->handover += cycles->handover;
    sum->network += cycles->network;
    sum->fsm += cycles->fsm;
    sum->resume += cycles->resume;
    sum->waited += cycles->waited;
}

static void add_to(struct ni_latency *l, const struct ni_cycles *cycles, bool local) {
    l->n++;
    l->n_local += local;
    add(&l->cycles, cycles);
    l->bucket[bucket_of(ni_cycles_all(cycles))]++;
}

void ni_stats_add(struct ni_tile *tile, enum ni_class class, const struct ni_cycles *cycles, bool local) {
    if (SBT_UNLIKELY(tile->latency != NULL))
        add_to(&tile->latency[class], cycles, local);
}

void ni_stats_add_barrier(const struct ni_cycles *cycles) {
    if (by_messages != NULL)
        add_to(by_messages, cycles, false);
}

void ni_stats_fork_child(void) {
    if (by_messages != NULL)
        memset(by_messages, 0, sizeof *by_messages);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        if (ni_machine.tiles[i].latency != NULL)
            memset(ni_machine.tiles[i].latency, 0, tile_bytes());
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_machine.tiles[i].mailbox.n_delayed = ni_machine.tiles[i].mailbox.late_ns = 0;
    ni_machine.n_software = ni_machine.n_software_waits = ni_machine.n_stale = 0;
}

static struct ni_latency sum; /* too large for a small stack */

static void add_latency(const struct ni_latency *l) {
    sum.n += l->n;
    sum.n_local += l->n_local;
    add(&sum.cycles, &l->cycles);
    for (uint32_t k = 0; l->n != 0 && k < NI_LATENCY_SIZE; k++)
        sum.bucket[k] += l->bucket[k];
}

const struct ni_latency *ni_stats_sum(uint32_t class) {
    memset(&sum, 0, sizeof sum);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        add_latency(&ni_machine.tiles[i].latency[class]);
    if (class == NI_BARRIER_WAIT && by_messages != NULL)
        add_latency(by_messages);
    return sum.n != 0 ? &sum : NULL;
}
