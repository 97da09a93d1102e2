/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which server has a mutex that `--delegate auto` delegates, where there are several: a pure function of what servers
 * have done.
 *
 * A mutex begins at the server that its address says. Then independent mutexes may share a server while another one has
 * nothing to do: their sections wait for each other without need (false serialization, Lozi). The sections that were
 * queued behind other mutexes' are counted. Where these are many, one mutex moves to the server that has least to do,
 * if that one then has an eighth less to do at least than the old one had: so no mutex moves to and fro. One move a
 * round: the next round shows what it has brought.
 */
#ifndef SBT_ENGINE_DIRECT_DELEGATE_PLACE_H
#define SBT_ENGINE_DIRECT_DELEGATE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mutex in a round: its server, the sections handed over, those of them behind other mutexes', the time in them. */
struct direct_placed {
    uint32_t server;
    uint64_t n_handed, n_behind, ns;
};

struct direct_move {
    size_t which; /* of the mutexes */
    uint32_t server;
};

/* False: all stay where they are. Servers are fewer than 64. */
bool direct_place_move(const struct direct_placed *placed, size_t n, uint32_t n_servers, struct direct_move *move);

/* Have enough sections of one of the mutexes been handed over, so that its round says something? */
bool direct_place_is_enough(const struct direct_placed *placed, size_t n);

/* Addresses of neighbours differ in the higher bits. */
static inline uint32_t direct_place_by_address(const void *mutex, size_t size, uint32_t n_servers) {
    return (uint32_t)((uintptr_t)mutex / size % n_servers);
}

#endif
