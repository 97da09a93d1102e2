/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hints by the hash of an object's address, in a profile: does a thread wait for such an object? Objects share a hint
 * if their addresses have the same hash; so a release may be an event without a wait, which costs time only.
 */
#ifndef SBT_OBSERVE_HINT_H
#define SBT_OBSERVE_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"

enum {
    PROFILE_N_HINTS = 4096,
    /* In `waiting`, threads that wait for a lock count 1. Those that a condition has woken, and that have not got
     * their mutex back, count so much. */
    HINT_RELOCKS = 0x10000,
};

/* Each lock reads `lives` and each release `waiting`: one is in the cache for the sake of the other. */
struct rec_hint {
    uint32_t waiting; /* threads that wait for an object of this hash; atomic */
    uint32_t lives;   /* inits and destroys of objects of this hash; atomic */
};
extern struct rec_hint rec_hints[PROFILE_N_HINTS];
/* By the same hash: when one of the threads began to wait, if any does; atomic, a hint. */
extern uint64_t rec_waiting_since_ns[PROFILE_N_HINTS];

/* Neighbouring objects have neighbouring hints: programs with many objects often go through them in order. Yet each has
 * its own, as a mutex and its condition. */
static inline uint32_t rec_hint_number(uintptr_t object) {
    return ((uint32_t)(object >> 3) + (uint32_t)(object >> 12) * 0x9E3779u) % PROFILE_N_HINTS;
}

static inline struct rec_hint *rec_hint_of(uintptr_t object) {
    return &rec_hints[rec_hint_number(object)];
}

/* Does a thread wait for it? Relaxed: a thread that begins to wait at this moment has not waited for long. */
static inline bool rec_is_waited_for(const void *object) {
    return SBT_UNLIKELY(__atomic_load_n(&rec_hint_of((uintptr_t)object)->waiting, __ATOMIC_RELAXED) != 0);
}

/* Around a wait for the object at that address. */
void rec_profile_begin_wait(const void *object, uint64_t now_ns);
void rec_profile_end_wait(const void *object);
/* So many threads more, or less if below 0, have been woken and want the mutex of that hint. */
void rec_hint_relocks(uint32_t number, int32_t threads);
/*
 * A mutex that threads wait for is about to be released. Is that to be an event? Threads that a condition has woken
 * take their time to come to their cores, and are not kept by a mutex that is held for less. held_since_ns: 0 if the
 * hold was not timed; then the holds of that mutex are short.
 */
bool rec_hint_keeps(const void *mutex, uint64_t held_since_ns);

#endif
