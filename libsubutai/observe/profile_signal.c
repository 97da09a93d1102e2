/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals of conditions in a profile that wake no thread: every thread that waits there has been given a signal, and
 * has not come back to its core yet. A queue's busy producer gives several such signals for each wait of the consumer.
 * They are counted, as signals for which no thread waits are.
 *
 * For each hash of a condition's address one word says which condition threads wait at, how many, and how many signals
 * they have been given. It changes by compare-and-swap, so handlers may come in between.
 *
 *  - If threads wait at two conditions of one hash the word is of no condition in particular (MIXED) until none waits,
 * and each signal is an event.
 *  - A wait that ends takes one signal with it, if it was ended by one. So a wait that ends for no reason, or a signal
 *    that another thread has got, makes a later signal an event that need not be one; never the other way round for
 *    long: a waiting thread is taken for signalled only while as many signals have been given as threads wait.
 */
#include "observe/profile.h"

static uint64_t words[PROFILE_N_HINTS] __attribute__((aligned(64)));

#define TAG_SHIFT 32
#define MIXED UINT32_MAX
#define MOST UINT32_C(0xFFFF) /* threads at a time */

/* 32 bits of the address: another condition with the same ones has another hash, or is 16 GiB away. */
static uint32_t tag_of(const void *cond) {
    uint32_t tag = (uint32_t)((uintptr_t)cond >> 2);
    return tag != MIXED ? tag : 0;
}

static uint32_t waiting_in(uint64_t word) {
    return (uint32_t)(word >> 16) & MOST;
}

static uint32_t given_in(uint64_t word) {
    return (uint32_t)word & MOST;
}

static uint64_t word_of(uint32_t tag, uint32_t waiting, uint32_t given) {
    return waiting == 0 ? 0 : (uint64_t)tag << TAG_SHIFT | waiting << 16 | (given < waiting ? given : waiting);
}

static uint64_t *place_of(const void *cond) {
    return &words[rec_hint_number((uintptr_t)cond)];
}

/* Relaxed throughout: the program's mutex orders a wait and a signal that belong together. */
static bool swap(uint64_t *place, uint64_t *seen, uint64_t fresh) {
    return __atomic_compare_exchange_n(place, seen, fresh, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool rec_profile_begin_signals(const void *cond) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    uint32_t waiting, tag;
    do {
        waiting = waiting_in(word);
        tag = waiting == 0 || word >> TAG_SHIFT == tag_of(cond) ? tag_of(cond) : MIXED;
        if (waiting == MOST)
            return false;
    } while (!swap(place, &word, word_of(tag, waiting + 1, given_in(word))));
    return true;
}

void rec_profile_end_signals(const void *cond, bool by_signal) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    uint32_t waiting, given;
    do {
        waiting = waiting_in(word);
        given = given_in(word);
        if (waiting == 0)
            return;
    } while (
        !swap(place, &word, word_of((uint32_t)(word >> TAG_SHIFT), waiting - 1, given - (given > 0 && by_signal))));
}

bool rec_profile_gives_signal(const void *cond, bool broadcast) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    uint32_t waiting, given;
    do {
        waiting = waiting_in(word);
        given = given_in(word);
        if (word >> TAG_SHIFT != tag_of(cond))
            return true;
        if (given == waiting)
            return false;
    } while (!swap(place, &word, word_of(tag_of(cond), waiting, broadcast ? waiting : given + 1)));
    return true;
}

void rec_profile_forget_signals(void) {
    __builtin_memset(words, 0, sizeof words);
}
