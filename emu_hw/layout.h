/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How wide the fields are, and the 32-bit ID that software holds.
 *
 * An ID is word 0 of a control element (Fig. 6): F | NI id | self pointer. The paper's self pointer has 24 bits, of
 * which the default scratchpad needs two. The other bits are ours. They tell an ID that has been freed, or that belongs
 * to another kind of primitive, from a valid one:
 *
 *    31   30 .. 24   23 22   21 .. 2b        2b-1 .. b   b-1 .. 0        b = bits for n_control numbers, 0 to 8
 *    F    NI id      kind    generation      bound       index           generation: 22 - 2b bits, 18 by default
 *
 * index       number of the control element; what the paper calls the self pointer
 * bound       of a condition: the index of its mutex, which is at the same NI; 0 for other kinds
 * generation  counts the allocations of this control element, modulo its width
 *
 * F is set in every valid ID, so an object that is all zero was never allocated.
 *
 * A tile is a core and its NI; they share a number. Up to 128 tiles the fields are the paper's: 7 bits for the NI, 8
 * bits for the core on the wire. Above that, up to 1024 tiles, NI and core have 10 bits each (ours), and the generation
 * has three bits fewer.
 */
#ifndef HW_LAYOUT_H
#define HW_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define HW_MAX_TILES 1024
#define HW_MAX_TILES_PAPER 128
#define HW_MAX_CONTROL 256

enum hw_kind { HW_KIND_NONE, HW_KIND_MUTEX, HW_KIND_CONDITION, HW_KIND_BARRIER };
enum { HW_KIND_BITS = 2 };

struct hw_layout {
    uint16_t n_tiles;
    uint8_t tile_bits;       /* core and NI in a packet's header: 8 or 10 */
    uint8_t self_bits;       /* self pointer: 24 or 21 */
    uint8_t index_bits;      /* b */
    uint8_t generation_bits; /* self_bits - 2 - 2b */
};

/* False: there can be no such machine. Legal: 1 to 1024 tiles, 1 to 256 control elements. */
static inline bool hw_layout_init(struct hw_layout *layout, uint32_t n_tiles, uint32_t n_control) {
    if (n_tiles < 1 || n_tiles > HW_MAX_TILES || n_control < 1 || n_control > HW_MAX_CONTROL)
        return false;
    bool wide = n_tiles > HW_MAX_TILES_PAPER;
    uint8_t self_bits = wide ? 21 : 24, b = 0;
    while ((1u << b) < n_control)
        b++;
    *layout = (struct hw_layout){.n_tiles = (uint16_t)n_tiles,
                                 .tile_bits = wide ? 10 : 8,
                                 .self_bits = self_bits,
                                 .index_bits = b,
                                 .generation_bits = (uint8_t)(self_bits - HW_KIND_BITS - 2 * b)};
    return true;
}

#define HW_ID_IN_USE (UINT32_C(1) << 31)

static inline uint32_t hw_bits(uint32_t word, uint32_t low, uint32_t n) {
    return word >> low & ((UINT32_C(1) << n) - 1);
}

/* Without F, as in the word of a free control element. An ID has HW_ID_IN_USE, too. */
static inline uint32_t hw_id_make(const struct hw_layout *layout, uint32_t ni, enum hw_kind kind, uint32_t generation,
                                  uint32_t bound, uint32_t index) {
    uint32_t b = layout->index_bits;
    return ni << layout->self_bits | (uint32_t)kind << (layout->self_bits - HW_KIND_BITS) |
           hw_bits(generation, 0, layout->generation_bits) << 2 * b | bound << b | index;
}

/* The home NI of a primitive: where its requests go. */
static inline uint32_t hw_id_ni(const struct hw_layout *layout, uint32_t id) {
    return (id & ~HW_ID_IN_USE) >> layout->self_bits;
}

static inline enum hw_kind hw_id_kind(const struct hw_layout *layout, uint32_t id) {
    return (enum hw_kind)hw_bits(id, layout->self_bits - (uint32_t)HW_KIND_BITS, HW_KIND_BITS);
}

static inline uint32_t hw_id_generation(const struct hw_layout *layout, uint32_t id) {
    return hw_bits(id, 2u * layout->index_bits, layout->generation_bits);
}

static inline uint32_t hw_id_bound(const struct hw_layout *layout, uint32_t id) {
    return hw_bits(id, layout->index_bits, layout->index_bits);
}

static inline uint32_t hw_id_index(const struct hw_layout *layout, uint32_t id) {
    return hw_bits(id, 0, layout->index_bits);
}

/* Does this condition belong to that mutex? If not, it must move before a thread waits on it with that mutex. */
static inline bool hw_id_is_bound_to(const struct hw_layout *layout, uint32_t condition, uint32_t mutex) {
    return hw_id_ni(layout, condition) == hw_id_ni(layout, mutex) &&
           hw_id_bound(layout, condition) == hw_id_index(layout, mutex);
}

#endif
