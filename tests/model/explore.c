/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 400, FIRST_BITS = 16, MAX_BITS = 26 /* half a GiB, and half as much while it grows */ };

static void bail_out(const char *why) {
    printf("Bail out! %s\n", why);
    exit(1);
}

/* ---- set of hashes ---- */

struct set {
    uint64_t *slots, n_slots, n_used;
};

static void open_set(struct set *set, unsigned bits) {
    *set = (struct set){calloc(UINT64_C(1) << bits, sizeof *set->slots), UINT64_C(1) << bits, 0};
    if (!set->slots)
        bail_out("no memory");
}

static bool insert(struct set *set, uint64_t hash) {
    uint64_t i = hash & (set->n_slots - 1);
    while (set->slots[i] != 0 && set->slots[i] != hash)
        i = (i + 1) & (set->n_slots - 1);
    if (set->slots[i] == hash)
        return false;
    set->slots[i] = hash;
    set->n_used++;
    return true;
}

static void grow(struct set *set) {
    struct set old = *set;
    unsigned bits = FIRST_BITS;
    while (old.n_slots >> bits)
        bits++;
    if (bits > MAX_BITS)
        bail_out("more states than fit into memory");
    open_set(set, bits);
    for (uint64_t i = 0; i < old.n_slots; i++)
        if (old.slots[i])
            insert(set, old.slots[i]);
    free(old.slots);
}

static uint64_t hash_of(const uint8_t *state, size_t size) {
    uint64_t h = UINT64_C(0x243f6a8885a308d3);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t w = 0;
        memcpy(&w, state + i, size - i < 8 ? size - i : 8);
        h = (h ^ w) * UINT64_C(0x9fb21c651e98df25);
        h ^= h >> 29;
    }
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    return h ? h : 1; /* 0 is an empty slot */
}

/* ---- the search ---- */

struct frame {
    uint32_t next, via;
    bool any;
};

static void show_way(const struct system *system, const struct frame *frames, uint32_t depth) {
    char text[64];
    for (uint32_t i = 1; i <= depth; i++)
        printf("#   %s\n", system->describe(frames[i].via, text, sizeof text));
}

struct explored explore(const struct system *system, const void *first_state) {
    static struct frame frames[MAX_DEPTH];
    struct explored done = {0};
    struct set seen;
    uint32_t depth = 0;
    uint8_t *states = malloc(MAX_DEPTH * system->state_bytes);
    if (!states)
        bail_out("no memory");
    open_set(&seen, FIRST_BITS);
    memcpy(states, first_state, system->state_bytes);
    frames[0] = (struct frame){0};
    insert(&seen, hash_of(states, system->hashed_bytes));
    while (!done.error) {
        struct frame *f = &frames[depth];
        uint8_t *state = states + depth * system->state_bytes, *next = state + system->state_bytes;
        if (f->next == system->n_transitions) {
            if (!f->any) {
                done.n_ends++;
                done.error = system->check_end(state);
                if (done.error)
                    break;
            }
            if (depth-- == 0)
                break;
            continue;
        }
        uint32_t transition = f->next++;
        if (!system->is_enabled(state, transition))
            continue;
        f->any = true;
        done.n_steps++;
        if (depth + 1 == MAX_DEPTH) {
            done.error = "a way without an end";
            break;
        }
        memcpy(next, state, system->state_bytes);
        f[1] = (struct frame){.via = transition};
        done.error = system->take(next, transition);
        if (seen.n_used * 2 > seen.n_slots)
            grow(&seen);
        if (done.error || insert(&seen, hash_of(next, system->hashed_bytes)))
            depth++;
        done.deepest = depth > done.deepest ? depth : done.deepest;
    }
    if (done.error)
        show_way(system, frames, depth);
    done.n_states = seen.n_used;
    free(seen.slots);
    free(states);
    return done;
}
