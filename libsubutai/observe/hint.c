/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See hint.h. */
#include "observe/hint.h"

#include "observe/record.h"

/* A woken thread needs about as long to come to its core. */
enum { KEPT_NS = 20000 };

struct rec_hint rec_hints[PROFILE_N_HINTS] __attribute__((aligned(64)));
uint64_t rec_waiting_since_ns[PROFILE_N_HINTS] __attribute__((aligned(64)));

static void begin_wait(uint32_t number, uint32_t what, uint64_t now_ns) {
    if (__atomic_fetch_add(&rec_hints[number].waiting, what, __ATOMIC_SEQ_CST) == 0)
        __atomic_store_n(&rec_waiting_since_ns[number], now_ns, __ATOMIC_RELAXED);
}

void rec_profile_begin_wait(const void *object, uint64_t now_ns) {
    begin_wait(rec_hint_number((uintptr_t)object), 1, now_ns);
}

void rec_profile_end_wait(const void *object) {
    __atomic_fetch_sub(&rec_hint_of((uintptr_t)object)->waiting, 1, __ATOMIC_RELAXED);
}

void rec_hint_relocks(uint32_t number, int32_t threads) {
    if (threads > 0)
        begin_wait(number, (uint32_t)threads * HINT_RELOCKS, rec_now_ns());
    else if (threads < 0)
        __atomic_fetch_sub(&rec_hints[number].waiting, (uint32_t)-threads * HINT_RELOCKS, __ATOMIC_RELAXED);
}

bool rec_hint_keeps(const void *mutex, uint64_t held_since_ns) {
    uint32_t number = rec_hint_number((uintptr_t)mutex);
    if (__atomic_load_n(&rec_hints[number].waiting, __ATOMIC_RELAXED) % HINT_RELOCKS != 0)
        return true;
    uint64_t woken_ns = __atomic_load_n(&rec_waiting_since_ns[number], __ATOMIC_RELAXED);
    uint64_t from_ns = held_since_ns > woken_ns ? held_since_ns : woken_ns;
    return held_since_ns != 0 && rec_now_ns() >= from_ns + KEPT_NS;
}
