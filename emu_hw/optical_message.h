/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A message of the optical network, and the filter that a core's messages pass.
 *
 * Source: S. J. Park, Analyzing Performance and Usability of Broadcast-Based Inter-Core Communication (ATAC) on
 * Manycore Architecture, MIT, 2013; sections 3.1.2 and 3.2.1 and Fig. 3-3. A message has five words of 32 bits, and its
 * data behind them.
 *
 * The filter masks a message's signature and combines it with its own signature by `and`, `or` or `xor`. The thesis
 * does not say which results pass. Ours: a result that is not 0.
 */
#ifndef HW_OPTICAL_MESSAGE_H
#define HW_OPTICAL_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

struct hw_optical_message {
    uint32_t size; /* bytes of data */
    uint32_t tag;  /* the user's */
    uint32_t channel;
    uint32_t signature;
    uint32_t wavelength; /* the number of the core that has sent it */
};

enum { HW_OPTICAL_WORDS = 5 };

/* Bits of the message and its data on the network. */
static inline uint64_t hw_optical_message_bits(uint32_t size) {
    return 32 * (uint64_t)HW_OPTICAL_WORDS + 8 * (uint64_t)size;
}

enum hw_filter_op { HW_FILTER_AND, HW_FILTER_OR, HW_FILTER_XOR, HW_N_FILTER_OPS };

struct hw_filter {
    uint32_t mask;
    enum hw_filter_op op;
    uint32_t signature;
};

/* Lets every message pass. */
static inline struct hw_filter hw_filter_open(void) {
    return (struct hw_filter){.mask = UINT32_MAX, .op = HW_FILTER_OR, .signature = UINT32_MAX};
}

static inline bool hw_filter_possible(const struct hw_filter *filter) {
    return (uint32_t)filter->op < HW_N_FILTER_OPS;
}

static inline bool hw_filter_passes(const struct hw_filter *filter, uint32_t signature) {
    uint32_t masked = signature & filter->mask;
    switch (filter->op) {
    case HW_FILTER_AND:
        return (masked & filter->signature) != 0;
    case HW_FILTER_OR:
        return (masked | filter->signature) != 0;
    default:
        return (masked ^ filter->signature) != 0;
    }
}

#endif
