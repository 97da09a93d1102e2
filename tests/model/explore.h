/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Depth-first search through all states of a system that is a block of bytes and a number of transitions.
 */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct system {
    size_t state_bytes;  /* copied */
    size_t hashed_bytes; /* the first of them: what tells two states apart */
    uint32_t n_transitions;
    bool (*is_enabled)(const void *state, uint32_t transition);
    const char *(*take)(void *state, uint32_t transition); /* NULL, or what is wrong */
    const char *(*check_end)(const void *state);           /* of a state with nothing enabled */
    const char *(*describe)(uint32_t transition, char *text, size_t size);
};

struct explored {
    uint64_t n_states, n_steps, n_ends;
    uint32_t deepest;
    const char *error; /* NULL: none. Otherwise the way to it was printed as TAP comments */
};

/* States are remembered as seen.h says. */
struct explored explore(const struct system *system, const void *first_state);

#endif
