/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals of conditions in a profile that wake no thread: every thread that waits there has been given a signal, and
 * has not come back to its core yet. A queue's busy producer gives several such signals for each wait of the consumer.
 * They are counted, as signals for which no thread waits are.
 *
 * For each hash of a condition's address one word says which condition threads wait at, with which mutex, how many, and
 * how many signals they have been given. It changes by compare-and-swap, so handlers may come in between.
 *
 * A thread that has been given a signal, and has not come back, wants the mutex. The mutex's hint counts these threads,
 * so that a release that they wait for is an event (hint.h).
 *
 *  - If threads wait at two conditions of one hash the word is of no condition in particular (MIXED) until none waits,
 * and each signal is an event.
 *  - If MOST threads wait at once it is not known any more how many do: the word is MIXED from then on.
 *  - A wait that ends takes one signal with it, if it was ended by one. So a wait that ends for no reason, or a signal
 *    that another thread has got, makes a later signal an event that need not be one; never the other way round for
 *    long: a waiting thread is taken for signalled only while as many signals have been given as threads wait.
 */
#include "observe/profile.h"

static uint64_t words[PROFILE_N_HINTS] __attribute__((aligned(64)));

/* From the highest bit on: the condition, 20 bits; the mutex's hint, 12; threads that wait, 16; signals, 16. */
#define TAG_SHIFT 44
#define MUTEX_SHIFT 32
#define WAITING_SHIFT 16
#define MIXED UINT32_C(0xFFFFF)
#define MOST UINT32_C(0xFFFF) /* so many threads at a time, or more */

_Static_assert(PROFILE_N_HINTS <= 1 << (TAG_SHIFT - MUTEX_SHIFT), "a mutex's hint has its bits");

/* Another condition of the same hash has another tag, but for one in a million; then they share their signals. */
static uint32_t tag_of(const void *cond) {
    uint32_t tag = (uint32_t)((uint64_t)(uintptr_t)cond * UINT64_C(0x9E3779B97F4A7C15) >> TAG_SHIFT);
    return tag != MIXED ? tag : 0;
}

static uint32_t tag_in(uint64_t word) {
    return (uint32_t)(word >> TAG_SHIFT);
}

static uint32_t mutex_in(uint64_t word) {
    return (uint32_t)(word >> MUTEX_SHIFT) % PROFILE_N_HINTS;
}

static uint32_t waiting_in(uint64_t word) {
    return (uint32_t)(word >> WAITING_SHIFT) & MOST;
}

static uint32_t given_in(uint64_t word) {
    return (uint32_t)word & MOST;
}

static uint64_t word_of(uint32_t tag, uint32_t mutex, uint32_t waiting, uint32_t given) {
    return waiting == 0 ? 0
                        : (uint64_t)tag << TAG_SHIFT | (uint64_t)mutex << MUTEX_SHIFT |
                              (uint64_t)waiting << WAITING_SHIFT | (given < waiting ? given : waiting);
}

static uint64_t *place_of(const void *cond) {
    return &words[rec_hint_number((uintptr_t)cond)];
}

/*
 * Relaxed throughout: the program's mutex orders a wait and a signal that belong together. The word names one mutex
 * from the first signal that it counts to the last: while it counts one, threads wait, and so it keeps the mutex.
 */
static bool swap(uint64_t *place, uint64_t *seen, uint64_t fresh) {
    if (!__atomic_compare_exchange_n(place, seen, fresh, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    uint64_t named = given_in(*seen) != 0 ? *seen : fresh;
    rec_hint_relocks(mutex_in(named), (int32_t)given_in(fresh) - (int32_t)given_in(*seen));
    return true;
}

/* One more thread waits. */
static uint64_t more(uint64_t word, const void *cond, const void *mutex) {
    uint32_t waiting = waiting_in(word);
    if (waiting == 0)
        return word_of(tag_of(cond), rec_hint_number((uintptr_t)mutex), 1, 0);
    if (waiting + 1 >= MOST)
        return word_of(MIXED, mutex_in(word), MOST, 0);
    return word_of(tag_in(word) == tag_of(cond) ? tag_of(cond) : MIXED, mutex_in(word), waiting + 1, given_in(word));
}

void rec_profile_begin_signals(const void *cond, const void *mutex) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (!swap(place, &word, more(word, cond, mutex))) {
    }
}

void rec_profile_end_signals(const void *cond, bool by_signal) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    uint32_t waiting, given;
    do {
        waiting = waiting_in(word);
        given = given_in(word);
        if (waiting == 0 || waiting == MOST)
            return;
        given -= given > 0 && by_signal;
    } while (!swap(place, &word, word_of(tag_in(word), mutex_in(word), waiting - 1, given)));
}

bool rec_profile_gives_signal(const void *cond, bool broadcast) {
    uint64_t *place = place_of(cond), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    uint32_t waiting, given;
    do {
        waiting = waiting_in(word);
        given = given_in(word);
        if (tag_in(word) != tag_of(cond))
            return true;
        if (given == waiting)
            return false;
    } while (!swap(place, &word, word_of(tag_of(cond), mutex_in(word), waiting, broadcast ? waiting : given + 1)));
    return true;
}

void rec_profile_forget_signals(void) {
    __builtin_memset(words, 0, sizeof words);
}
