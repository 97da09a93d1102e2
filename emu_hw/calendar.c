/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "calendar.h"

/* A free slot of the block, at or after its slot number `first`, is taken: that number. HW_CALENDAR_SLOTS: there is
 * none. -1: the block is forgotten. */
static int32_t take_in_block(uint64_t *words, uint64_t block, uint32_t first) {
    uint64_t *word = &words[block % HW_CALENDAR_WORDS];
    uint32_t tag = (uint32_t)(block / HW_CALENDAR_WORDS);
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        uint32_t map = (uint32_t)seen, ahead = (uint32_t)(seen >> 32) - tag;
        if (ahead != 0) {
            if (map != 0 && ahead < HW_CALENDAR_AHEAD)
                return -1;
            map = 0;
        }
        uint32_t free = ~map & (UINT32_MAX << first);
        if (free == 0)
            return HW_CALENDAR_SLOTS;
        uint32_t own = (uint32_t)__builtin_ctz(free);
        uint64_t taken = (uint64_t)tag << 32 | map | UINT32_C(1) << own;
        if (__atomic_compare_exchange_n(word, &seen, taken, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return (int32_t)own;
    }
}

uint64_t hw_calendar_take(uint64_t *words, uint64_t slot, bool *forgotten) {
    uint64_t block = slot / HW_CALENDAR_SLOTS;
    uint32_t first = (uint32_t)(slot % HW_CALENDAR_SLOTS);
    int32_t own;
    while ((own = take_in_block(words, block, first)) == HW_CALENDAR_SLOTS) {
        block++;
        first = 0;
    }
    *forgotten = own < 0;
    return block * HW_CALENDAR_SLOTS + (own < 0 ? first : (uint32_t)own);
}
