/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interleave.h"

#include "seen.h"

/* The way to where we are: which thread goes on next, and in which way; the states lie in a row beside it. */
struct level {
    int thread, way, ways;
    bool moved;
    uint64_t fingerprint;
};

bool interleave_walk(const struct interleave *what, const void *first, bool show, uint64_t *n_states) {
    struct seen seen = {0};
    size_t room = 1024, depth = 0;
    bool endless = false;
    struct level *path = seen_need(calloc(room, sizeof *path));
    unsigned char *states = seen_need(malloc(room * what->bytes));

    memcpy(states, first, what->bytes);
    path[0].fingerprint = seen_hash(states, what->bytes);
    seen_insert(&seen, path[0].fingerprint);
    for (;;) {
        endless = what->max_depth != 0 && depth == what->max_depth;
        if (endless)
            break;
        if (depth + 1 == room) {
            room *= 2;
            path = seen_need(realloc(path, room * sizeof *path));
            states = seen_need(realloc(states, room * what->bytes));
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
            uint64_t h = here->ways > 0 ? seen_hash_after(next, what->bytes, state, here->fingerprint) : 0;
            if (here->ways > 0 && seen_insert(&seen, h)) {
                path[++depth] = (struct level){.fingerprint = h};
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
