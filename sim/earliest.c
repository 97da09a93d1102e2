/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "earliest.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ENTRIES = 16 };

/*
 * A block is a number, or one that is shifted right, and a table has no number of more than 32 bits (sim_earliest_put).
 * One that is asked for may have: then another block's time is as good as none.
 */
static uint64_t key_of(uint32_t condition, uint64_t block) {
    return (uint64_t)condition << 32 | (uint32_t)block;
}

/* Where the key is, or the free place where it would be. Runs of keys are spread (Fibonacci hashing). */
static uint32_t earliest_place(const struct sim_earliest *e, uint64_t key) {
    uint32_t last = e->n_places - 1, i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & last;
    while (e->entry[i].ns != 0 && e->entry[i].key != key)
        i = (i + 1) & last;
    return i;
}

static void earliest_add(struct sim_earliest *e, uint64_t key, uint64_t ns) {
    struct sim_earliest_entry *entry = &e->entry[earliest_place(e, key)];
    e->n += entry->ns == 0;
    *entry = (struct sim_earliest_entry){key, ns > entry->ns ? ns : entry->ns};
}

/* More places; or, where there may be no more, entries of twice as many signals. */
static bool earliest_make_room(struct sim_earliest *e) {
    bool coarser = e->n_places == 2 * SIM_EARLIEST_MOST;
    struct sim_earliest next = {.n_places = e->n_places == 0 ? FIRST_ENTRIES : e->n_places * (coarser ? 1 : 2),
                                .shift = (uint8_t)(e->shift + coarser)};
    next.entry = calloc(next.n_places, sizeof *next.entry);
    if (next.entry == NULL)
        return false;
    for (uint32_t i = 0; i < e->n_places; i++) {
        uint64_t key = e->entry[i].key;
        if (e->entry[i].ns != 0)
            earliest_add(&next, key_of((uint32_t)(key >> 32), (uint32_t)key >> coarser), e->entry[i].ns);
    }
    next.unknown = coarser && next.n > SIM_EARLIEST_MOST / 4 * 3; /* or each few signals would bring one here */
    free(e->entry);
    *e = next;
    return true;
}

bool sim_earliest_put(struct sim_earliest *e, uint32_t condition, uint64_t number, uint64_t ns) {
    if (ns == 0 || e->unknown)
        return true;
    if (number > UINT32_MAX) { /* its key would be lost as blocks become coarser */
        e->unknown = true;
        return true;
    }
    if (2 * (e->n + 1) > e->n_places && !earliest_make_room(e))
        return false;
    earliest_add(e, key_of(condition, number >> e->shift), ns);
    return true;
}

uint64_t sim_earliest_of(const struct sim_earliest *e, uint32_t condition, uint64_t number) {
    if (e->unknown)
        return UINT64_MAX;
    return e->n == 0 ? 0 : e->entry[earliest_place(e, key_of(condition, number >> e->shift))].ns;
}

bool sim_earliest_copy(struct sim_earliest *to, const struct sim_earliest *from) {
    *to = (struct sim_earliest){.unknown = from->unknown};
    if (from->n == 0 || from->unknown)
        return true;
    struct sim_earliest_entry *entry = malloc(from->n_places * sizeof *entry);
    if (entry == NULL)
        return false;
    memcpy(entry, from->entry, from->n_places * sizeof *entry);
    *to = *from;
    to->entry = entry;
    return true;
}
