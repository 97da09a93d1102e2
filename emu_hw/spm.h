/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scratchpad memory (SPM) of one network interface: bytes, accessed in 32-bit words, every access counted.
 *
 * Control element, three words (Fig. 6). Bits are numbered as a program does, 31 first; the figures count from 0.
 *   word 0   F 31 | NI id 30..24 | self pointer 23..0                  the ID; layout.h
 *   word 1   queue head 31..16 | queue tail 15..0                      both nil when nobody waits
 *   word 2   value 31..16 | max 15..0
 *              mutex:     value = owner, thread (low bits) 31..24 | core 23..16; max = 1 while held (ours), 0 when free
 *              barrier:   value = threads that have arrived, max = threads it takes
 *              condition: 0
 * Queue element, two words (Fig. 7)
 *   word 0   F 31 | prev 30..16 | R 15 | next 14..0                    R is always 0
 *   word 1   thread 31..16 | core 15..0                                core has 8 bits, 10 above 128 tiles
 *
 * prev, next, head and tail are word addresses of word 0 of a queue element. Control elements come first, so that no
 * queue element is at address 0, which is nil. Words are stored most significant byte first: a dump reads like the
 * figures. With a core id of more than 8 bits the owner's thread has the bits that are left, down to six.
 *
 * Free queue elements form a double-linked queue too; its head and tail are a register (the paper's), the number of
 * free elements and of those promised to barriers are another (ours, fsm.h says what for).
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
    bool reserving;           /* is n_reserved kept? set with the primitives all free */
    uint32_t generation_skip; /* left out between two allocations; even */
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
 * What the driver does once: all control elements free, all queue elements in the free list. `bytes` has
 * hw_spm_n_bytes(n_control, n_queue) bytes and is the caller's. False, and nothing done, if there is no such
 * scratchpad.
 */
bool hw_spm_init(struct hw_spm *spm, uint8_t *bytes, uint32_t n_control, uint32_t n_queue, uint32_t ni,
                 uint32_t n_tiles);

/* All queue elements into the free list, none reserved; the control elements are left as they are. */
void hw_spm_free_all(struct hw_spm *spm);

#define HW_NOBODY 65535 /* a thread id that no thread has */

/*
 * Is every element in exactly one place (free list or one queue), linked both ways, with the right F, and does every
 * control element agree with its queue? Counts no access. On false *why, if not NULL, says what is wrong.
 */
bool hw_spm_is_valid(const struct hw_spm *spm, const char **why);

/* Waiting in the queue of one control element. Walks the queue, counts no access: for tests and inspection. */
uint32_t hw_spm_n_waiting(const struct hw_spm *spm, uint32_t index);

/*
 * Ours, for a driver that makes room: word 0 of the next primitive that EVICT would take now, other than `but`; 0 if
 * there is none. Looks from control element *hand on, round all of them, and leaves *hand behind what it has found. A
 * mutex with a condition stays as long as that does. Counts no access.
 */
uint32_t hw_spm_next_idle(const struct hw_spm *spm, uint32_t *hand, uint32_t but);

/* ---- words ---- */

/* Most significant byte first, and as one access of the host, whatever the value was made of. */
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
 * The same for several accesses together, counted one by one as they are made and added to the scratchpad's when they
 * are over: bytes that are written could be the counters, for all that the compiler knows, and so would have to wait
 * for them each time.
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
 * Word 0 of a control element without an access. The hardware keeps a copy of these words in flip-flops (ours) so that
 * it can refuse a request for a primitive that is not there before it touches the memory.
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

/* Word 2 of a mutex held by the thread of a queue element's word 1. */
static inline uint32_t hw_owner(const struct hw_spm *spm, uint32_t who) {
    return hw_pair(hw_low(hw_high(who) << spm->layout.tile_bits | hw_low(who)), 1);
}

#endif
