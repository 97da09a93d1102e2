/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks every interleaving of a few threads over a state that is all bytes. What the threads do is the caller's:
 * `step` makes the next step of a thread, in one of its ways, on a copy.
 */
#ifndef INTERLEAVE_H
#define INTERLEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interleave {
    size_t bytes; /* of a state; no padding in it: states are compared as memory */
    int n_threads;
    /* Make one step. Returns how many ways this step could go, 0 if the thread is blocked or has ended. */
    int (*step)(void *state, int thread, int way);
    /* No thread can go on. */
    void (*at_end)(const void *state);
    /* What is wrong, NULL if nothing: looked at after every step and at_end. */
    const char *const *wrong;
    size_t max_depth; /* a path that is longer has no end, which is wrong; 0: any may be right */
    /* For a path that went wrong: a line about what the thread is about to do. */
    void (*print)(const void *state, int thread, int way);
};

/*
 * From `first` on. True if nothing is wrong in any state; false at the first that is, its path printed if `show`.
 * *n_states: how many different ones there were, remembered as seen.h says.
 */
bool interleave_walk(const struct interleave *what, const void *first, bool show, uint64_t *n_states);

#endif
