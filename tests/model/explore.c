/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seen.h"

enum { MAX_DEPTH = 400 };

struct frame {
    uint32_t next, via;
    bool any;
    uint64_t hash;
};

static void show_way(const struct system *system, const struct frame *frames, uint32_t depth) {
    char text[64];
    for (uint32_t i = 1; i <= depth; i++)
        printf("#   %s\n", system->describe(frames[i].via, text, sizeof text));
}

struct explored explore(const struct system *system, const void *first_state) {
    static struct frame frames[MAX_DEPTH];
    struct explored done = {0};
    struct seen seen = {0};
    uint32_t depth = 0;
    uint8_t *states = seen_need(malloc(MAX_DEPTH * system->state_bytes));
    memcpy(states, first_state, system->state_bytes);
    frames[0] = (struct frame){.hash = seen_hash(states, system->hashed_bytes)};
    seen_insert(&seen, frames[0].hash);
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
        done.error = system->take(next, transition);
        f[1] = (struct frame){.via = transition, .hash = seen_hash_after(next, system->hashed_bytes, state, f->hash)};
        if (done.error || seen_insert(&seen, f[1].hash))
            depth++;
        done.deepest = depth > done.deepest ? depth : done.deepest;
    }
    if (done.error)
        show_way(system, frames, depth);
    done.n_states = seen.n;
    free(seen.slot);
    free(states);
    return done;
}
