/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The states that a walk has come through, each known by a 64-bit hash: among ten million two would be taken for one
 * with a probability of 3 in a million. Ends the program with "Bail out!" if they do not fit into a gigabyte.
 */
#ifndef TESTS_MODEL_SEEN_H
#define TESTS_MODEL_SEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An open-addressed table that is at most half full; 0 is free. All zero: empty. */
struct seen {
    uint64_t *slot, n, n_slots;
};
#define SEEN_MOST_SLOTS (UINT64_C(1) << 27)

static inline void *seen_need(void *memory) {
    if (memory == NULL) {
        printf("Bail out! more states than fit into memory\n");
        exit(1);
    }
    return memory;
}

/* Of a line of a state, `bytes` long; `number` says which. */
enum { SEEN_LINE = 64 };

static inline uint64_t seen_line(const unsigned char *line, size_t bytes, size_t number) {
    uint64_t word[SEEN_LINE / 8] = {0}, h = (number + 1) * 0x9E3779B97F4A7C15u;
    memcpy(word, line, bytes);
    for (int i = 0; i < SEEN_LINE / 8; i++) {
        h = (h ^ word[i]) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    h *= 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}

/* The sum of the lines' hashes, as Zobrist's for positions of a game. */
static inline uint64_t seen_hash(const unsigned char *state, size_t bytes) {
    uint64_t h = 0;
    for (size_t at = 0; at < bytes; at += SEEN_LINE)
        h += seen_line(state + at, bytes - at < SEEN_LINE ? bytes - at : SEEN_LINE, at / SEEN_LINE);
    return h;
}

/* The same of a state that a step has made of `before`, which has the hash `h`: of thousands of bytes it changes a few
 * lines. */
static inline uint64_t seen_hash_after(const unsigned char *state, size_t bytes, const unsigned char *before,
                                       uint64_t h) {
    size_t at = 0;
    for (; at + SEEN_LINE <= bytes; at += SEEN_LINE)
        if (memcmp(state + at, before + at, SEEN_LINE) != 0)
            h += seen_line(state + at, SEEN_LINE, at / SEEN_LINE) - seen_line(before + at, SEEN_LINE, at / SEEN_LINE);
    if (at < bytes)
        h += seen_line(state + at, bytes - at, at / SEEN_LINE) - seen_line(before + at, bytes - at, at / SEEN_LINE);
    return h;
}

static inline uint64_t *seen_find(const struct seen *seen, uint64_t h) {
    uint64_t at = h & (seen->n_slots - 1);
    while (seen->slot[at] != 0 && seen->slot[at] != h)
        at = (at + 1) & (seen->n_slots - 1);
    return &seen->slot[at];
}

/* True if it is new. */
static inline bool seen_insert(struct seen *seen, uint64_t h) {
    h = h != 0 ? h : 1;
    if (seen->n * 2 >= seen->n_slots) {
        struct seen bigger = {.n = seen->n, .n_slots = seen->n_slots != 0 ? seen->n_slots * 2 : 1 << 16};
        bigger.slot = seen_need(bigger.n_slots > SEEN_MOST_SLOTS ? NULL : calloc(bigger.n_slots, sizeof *bigger.slot));
        for (uint64_t i = 0; i < seen->n_slots; i++)
            if (seen->slot[i] != 0)
                *seen_find(&bigger, seen->slot[i]) = seen->slot[i];
        free(seen->slot);
        *seen = bigger;
    }
    uint64_t *slot = seen_find(seen, h);
    if (*slot == h)
        return false;
    *slot = h;
    seen->n++;
    return true;
}

#endif
