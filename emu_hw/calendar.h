/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A port's calendar of slots, for packets that come in any order of their times, from several threads at once.
 *
 * A slot is as long as a packet takes the port. A packet prefers the slot of the time at which it is ready. If another
 * packet has it, the packet takes the next free slot. This is hashing with linear probing: the set of taken slots, and
 * so the sum of all waits, does not depend on the order in which the packets come ("parking functions"; D. E. Knuth,
 * The Art of Computer Programming 3, 6.4). A calendar of intervals to the cycle does not have this property: out of
 * order its gaps are too short for a packet.
 *
 * Storage: HW_CALENDAR_WORDS words of 64 bits, zeroed at first. A word holds the map of a block of 32 slots in its
 * lower half, and the block's tag in its upper half. Block b has word b % HW_CALENDAR_WORDS and tag b /
 * HW_CALENDAR_WORDS. A packet of a later block takes the word away from an earlier one: the earlier time is forgotten.
 * A packet of a forgotten time neither waits nor is noted.
 *
 * Each packet is noted by one compare-and-swap of one word. It is relaxed: a word says everything about its block, and
 * publishes nothing else. No lock; a thread repeats its attempt only because another one's has succeeded.
 */
#ifndef HW_CALENDAR_H
#define HW_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HW_CALENDAR_WORDS = 1024, /* a power of two; 98304 cycles with slots of three */
    HW_CALENDAR_SLOTS = 32    /* of a block */
};

/*
 * Tags are counted modulo 2^32. A word that is ahead of a packet by less than this many tags is later than the packet.
 * By more: it is left over from a time long ago.
 */
#define HW_CALENDAR_AHEAD (UINT32_C(1) << 24)

/* Take the first free slot at or after `slot`; the answer is its number. *forgotten is set if that time is forgotten;
 * then no slot has been taken, and the answer is when that was found. */
uint64_t hw_calendar_take(uint64_t *words, uint64_t slot, bool *forgotten);

#endif
