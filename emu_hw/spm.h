/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scratchpad memory (SPM) of one network interface: bytes, accessed in 32-bit words, every access counted.
 *
 * Control element, three words (Fig. 6). Bits are numbered as a program does, 31 first; the figures count from 0.
 *   word 0   F 31 | NI id 30..24 | self pointer 23..0                  the ID; layout.h
 *   word 1   queue head 31..16 | queue tail 15..0                      both nil when no thread waits
 *   word 2   value 31..16 | max 15..0
 *              mutex:     value = owner, thread (low bits) 31..24 | core 23..16; max = 1 while held (ours), 0 when free
 *              barrier:   value = threads that have arrived, max = threads it takes
 *              condition: 0
 * Queue element, two words (Fig. 7)
 *   word 0   F 31 | prev 30..16 | R 15 | next 14..0                    R is always 0
 *   word 1   thread 31..16 | core 15..0                                core has 8 bits, 10 above 128 tiles
 *
 * prev, next, head and tail are word addresses of word 0 of a queue element. Control elements come first, so no queue
 * element is at address 0, which is nil. Words are stored with the most significant byte first: a dump reads like the
 * figures. If a core id has more than 8 bits, the owner's thread has fewer bits, down to six.
 *
 * Free queue elements form a double-linked queue, too. Its head and tail are a register (the paper's). The number of
 * free elements, and of elements promised to barriers, are another register (ours; the head of fsm.h says what for).
 *
 * The caller owns the memory. Nothing here blocks, and two threads may not use one scratchpad at a time.
 */
#ifndef HW_SPM_H
#define HW_SPM_H

#include "layout.h"

#include <stddef.h>
#include <string.h>

#define HW_CONTROL_BYTES 12
#define HW_QUEUE_BYTES 8
#define HW_DEFAULT_CONTROL 4
#define HW_DEFAULT_QUEUE 122
#define HW_MAX_SPM_BYTES 131072 /* 15-bit word addresses */
#define HW_NIL 0

struct hw_spm {
    uint8_t *bytes;
    uint64_t n_reads, n_writes; /* 32-bit accesses since hw_spm_init */
    uint16_t n_control, n_queue;
    uint16_t ni;
    uint16_t free_head, free_tail; /* HW_NIL: none */
    uint16_t n_free, n_reserved;
    bool reserving;           /* n_reserved counts; set only while all primitives are free */
    uint32_t generation_skip; /* generations left out between two allocations of an element; even */
    struct hw_layout layout;
};

static inline size_t hw_spm_n_bytes(uint32_t n_control, uint32_t n_queue) {
    return (size_t)n_control * HW_CONTROL_BYTES + (size_t)n_queue * HW_QUEUE_BYTES;
}

/* The smallest scratchpad that can hold one barrier, or one mutex with its waiters, of n_cores threads. */
static inline size_t hw_spm_min_bytes(uint32_t n_cores) {
    return hw_spm_n_bytes(1, n_cores - 1);
}

/*
 * Called once by the driver: all control elements are free, all queue elements are in the free list. `bytes` has
 * hw_spm_n_bytes(n_control, n_queue) bytes and is the caller's. False, and nothing done: there can be no such
 * scratchpad.
 */
bool hw_spm_init(struct hw_spm *spm, uint8_t *bytes, uint32_t n_control, uint32_t n_queue, uint32_t ni,
                 uint32_t n_tiles);

/* Puts all queue elements into the free list, none reserved. The control elements stay as they are. */
void hw_spm_free_all(struct hw_spm *spm);

#define HW_NO_THREAD 65535 /* a thread id that no thread has */

/*
 * Is each element in exactly one place (the free list, or one queue), linked both ways, with the right F? And does each
 * control element agree with its queue? Counts no access. On false *why, if not NULL, says what is wrong.
 */
bool hw_spm_is_valid(const struct hw_spm *spm, const char **why);

/* How many threads wait in the queue of one control element. Walks the queue, counts no access: for tests. */
uint32_t hw_spm_n_waiting(const struct hw_spm *spm, uint32_t index);

/*
 * Ours, for a driver that makes room: word 0 of the next primitive that EVICT would take now, other than `but`. 0:
 * there is none. The search begins at control element *hand, goes round all of them, and leaves *hand behind the one
 * that it has found. A mutex with a condition stays as long as the condition does. Counts no access.
 */
uint32_t hw_spm_next_idle(const struct hw_spm *spm, uint32_t *hand, uint32_t but);

/* ---- words ---- */

/* The most significant byte first, and one access of the host for each word. */
static inline uint32_t hw_spm_swapped(uint32_t word) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap32(word) : word;
}

static inline uint32_t hw_spm_load(const uint8_t *bytes, uint32_t word) {
    uint32_t loaded;
    memcpy(&loaded, bytes + (size_t)word * 4, sizeof loaded);
    return hw_spm_swapped(loaded);
}

static inline void hw_spm_store(uint8_t *bytes, uint32_t word, uint32_t value) {
    uint32_t stored = hw_spm_swapped(value);
    memcpy(bytes + (size_t)word * 4, &stored, sizeof stored);
}

static inline uint32_t hw_spm_peek(const struct hw_spm *spm, uint32_t word) {
    return hw_spm_load(spm->bytes, word);
}

static inline void hw_spm_poke(struct hw_spm *spm, uint32_t word, uint32_t value) {
    hw_spm_store(spm->bytes, word, value);
}

static inline uint32_t hw_spm_read(struct hw_spm *spm, uint32_t word) {
    spm->n_reads++;
    return hw_spm_peek(spm, word);
}

static inline void hw_spm_write(struct hw_spm *spm, uint32_t word, uint32_t value) {
    spm->n_writes++;
    hw_spm_poke(spm, word, value);
}

/*
 * The same for several accesses together. They are counted one by one, and the counts are added to the scratchpad's
 * at the end: for all that the compiler knows a write to `bytes` could change the scratchpad's counters, and it would
 * load and store them with each access.
 */
struct hw_spm_use {
    uint8_t *bytes;
    uint32_t n_reads, n_writes;
};

static inline struct hw_spm_use hw_spm_begin(const struct hw_spm *spm) {
    return (struct hw_spm_use){.bytes = spm->bytes};
}

static inline uint32_t hw_spm_get(struct hw_spm_use *use, uint32_t word) {
    use->n_reads++;
    return hw_spm_load(use->bytes, word);
}

static inline void hw_spm_set(struct hw_spm_use *use, uint32_t word, uint32_t value) {
    use->n_writes++;
    hw_spm_store(use->bytes, word, value);
}

static inline void hw_spm_end(struct hw_spm *spm, const struct hw_spm_use *use) {
    spm->n_reads += use->n_reads;
    spm->n_writes += use->n_writes;
}

static inline uint64_t hw_spm_n_accesses(const struct hw_spm *spm) {
    return spm->n_reads + spm->n_writes;
}

/* ---- addresses and fields ---- */

static inline uint32_t hw_control_word(uint32_t index, uint32_t word) {
    return index * (HW_CONTROL_BYTES / 4) + word;
}

/*
 * Word 0 of a control element, without an access: the hardware keeps a copy of these words in flip-flops (ours), so
 * that it can refuse a request for a primitive that is not there before it reads the memory.
 */
static inline uint32_t hw_spm_tag(const struct hw_spm *spm, uint32_t index) {
    return hw_spm_peek(spm, hw_control_word(index, 0));
}

static inline uint32_t hw_pair(uint32_t high, uint32_t low) {
    return high << 16 | low;
}

static inline uint16_t hw_high(uint32_t word) {
    return (uint16_t)(word >> 16);
}

static inline uint16_t hw_low(uint32_t word) {
    return (uint16_t)word;
}

#define HW_LINK_IN_USE (UINT32_C(1) << 31)
#define HW_LINK_RESERVED (UINT32_C(1) << 15)

static inline uint32_t hw_link(bool in_use, uint32_t prev, uint32_t next) {
    return (in_use ? HW_LINK_IN_USE : 0) | prev << 16 | next;
}

static inline uint16_t hw_link_prev(uint32_t word) {
    return (uint16_t)hw_bits(word, 16, 15);
}

static inline uint16_t hw_link_next(uint32_t word) {
    return (uint16_t)hw_bits(word, 0, 15);
}

/* Word 2 of a mutex that this thread holds. thread: with its core, as in word 1 of a queue element. */
static inline uint32_t hw_owner(const struct hw_spm *spm, uint32_t thread) {
    return hw_pair(hw_low(hw_high(thread) << spm->layout.tile_bits | hw_low(thread)), 1);
}

#endif
