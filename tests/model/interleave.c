/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interleave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fingerprints in an open-addressed table that is at most half full; 0 is free. */
struct seen {
    uint64_t *slot, n, n_slots;
};

/* The way to where we are: which thread goes on next, and in which way; the states lie in a row beside it. */
struct level {
    int thread, way, ways;
    bool moved;
};

static void *need(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return memory;
}

static inline uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0xFF51AFD7ED558CCDu;
    return h ^ h >> 32;
}

/* Four chains side by side: each step of a chain waits for the one before. */
enum { CHAINS = 4 };

static uint64_t fingerprint(const unsigned char *state, size_t bytes) {
    uint64_t chain[CHAINS] = {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu, 0xD6E8FEB86659FD93u};
    uint64_t word[CHAINS], h = 0;
    for (; bytes >= sizeof word; bytes -= sizeof word, state += sizeof word) {
        memcpy(word, state, sizeof word);
        for (int i = 0; i < CHAINS; i++)
            chain[i] = mix(chain[i], word[i]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, state, bytes);
    for (int i = 0; i < CHAINS; i++)
        h = mix(h, mix(chain[i], word[i]));
    h *= 0xC4CEB9FE1A85EC53u;
    h ^= h >> 33;
    return h != 0 ? h : 1;
}

static uint64_t *find(const struct seen *seen, uint64_t h) {
    uint64_t at = h & (seen->n_slots - 1);
    while (seen->slot[at] != 0 && seen->slot[at] != h)
        at = (at + 1) & (seen->n_slots - 1);
    return &seen->slot[at];
}

/* True if it is new. */
static bool remember(struct seen *seen, uint64_t h) {
    if (seen->n * 2 >= seen->n_slots) {
        struct seen bigger = {.n_slots = seen->n_slots != 0 ? seen->n_slots * 2 : 1 << 16};
        bigger.slot = need(calloc(bigger.n_slots, sizeof *bigger.slot));
        for (uint64_t i = 0; i < seen->n_slots; i++)
            if (seen->slot[i] != 0)
                *find(&bigger, seen->slot[i]) = seen->slot[i];
        bigger.n = seen->n;
        free(seen->slot);
        *seen = bigger;
    }
    uint64_t *slot = find(seen, h);
    if (*slot == h)
        return false;
    *slot = h;
    seen->n++;
    return true;
}

bool interleave_walk(const struct interleave *what, const void *first, bool show, uint64_t *n_states) {
    struct seen seen = {NULL, 0, 0};
    size_t room = 1024, depth = 0;
    bool endless = false;
    struct level *path = need(calloc(room, sizeof *path));
    unsigned char *states = need(malloc(room * what->bytes));

    memcpy(states, first, what->bytes);
    remember(&seen, fingerprint(states, what->bytes));
    for (;;) {
        endless = what->max_depth != 0 && depth == what->max_depth;
        if (endless)
            break;
        if (depth + 1 == room) {
            room *= 2;
            path = need(realloc(path, room * sizeof *path));
            states = need(realloc(states, room * what->bytes));
        }
        struct level *here = &path[depth];
        unsigned char *state = states + depth * what->bytes, *next = state + what->bytes;
        if (here->thread == what->n_threads) {
            if (!here->moved)
                what->at_end(state);
            if (*what->wrong != NULL || depth == 0)
                break;
            here = &path[--depth];
        } else {
            memcpy(next, state, what->bytes);
            here->ways = what->step(next, here->thread, here->way);
            here->moved = here->moved || here->ways > 0;
            if (*what->wrong != NULL) {
                depth++;
                break;
            }
            if (here->ways > 0 && remember(&seen, fingerprint(next, what->bytes))) {
                path[++depth] = (struct level){0, 0, 0, false};
                continue;
            }
        }
        if (++here->way >= here->ways) {
            here->thread++;
            here->way = 0;
        }
    }
    if ((endless || *what->wrong != NULL) && show) {
        printf("# %s:\n", endless ? "a way without an end" : *what->wrong);
        for (size_t i = 0; i < depth; i++)
            what->print(states + i * what->bytes, path[i].thread, path[i].way);
    }
    *n_states = seen.n;
    free(states);
    free(path);
    free(seen.slot);
    return !endless && *what->wrong == NULL;
}
