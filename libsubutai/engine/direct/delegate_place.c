/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/direct/delegate_place.h"

#include "switch/switch.h"

#define HANDED_ENOUGH 64u /* fewer sections in a round say nothing */
#define BEHIND_MANY 250u  /* of a thousand sections handed over, behind those of other mutexes */
#define MOVE_GAINS 8u     /* the new server has less to do than the old one had, by one in eight at least */

static uint32_t least_loaded(const uint64_t *load, uint32_t n_servers) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < n_servers; i++)
        least = load[i] < load[least] ? i : least;
    return least;
}

static bool is_serialized(const struct direct_placed *p) {
    return p->n_handed >= HANDED_ENOUGH && p->n_behind * 1000 >= p->n_handed * BEHIND_MANY;
}

/* What the fuller one of both servers has less to do after the move; 0: too little. */
static uint64_t gain(const uint64_t *load, const struct direct_placed *p, uint32_t to) {
    uint64_t from = load[p->server], moved = load[to] + p->ns, left = from - p->ns;
    if (moved > from - from / MOVE_GAINS)
        return 0;
    return from - (moved > left ? moved : left);
}

bool direct_place_is_enough(const struct direct_placed *placed, size_t n) {
    bool enough = false;
    for (size_t i = 0; i < n; i++)
        enough = enough || placed[i].n_handed >= HANDED_ENOUGH;
    return enough;
}

bool direct_place_move(const struct direct_placed *placed, size_t n, uint32_t n_servers, struct direct_move *move) {
    uint64_t load[SBT_SWITCH_SERVERS_MOST] = {0}, most = 0;
    for (size_t i = 0; i < n; i++)
        load[placed[i].server] += placed[i].ns;
    uint32_t to = least_loaded(load, n_servers);
    for (size_t i = 0; i < n; i++) {
        const struct direct_placed *p = &placed[i];
        uint64_t gained = is_serialized(p) ? gain(load, p, to) : 0;
        if (gained > most) {
            most = gained;
            *move = (struct direct_move){i, to};
        }
    }
    return most != 0;
}
