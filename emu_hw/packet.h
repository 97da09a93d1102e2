/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets: three 32-bit flits (Fig. 8), the same for requests and responses.
 *
 * flit 0, header, up to 128 tiles     destination 31..24 | source 23..16 | 0 15..12 | operation 11..7 | argument 6..0
 *         header, 129 to 1024 tiles   destination 31..22 | source 21..12            | operation 11..7 | argument 6..0
 * flit 1, primitive                   its ID; requests to allocate: see below
 * flit 2, thread                      thread 31..16 | core 15..0, as word 1 of a queue element
 *
 * The paper says how many flits there are, what each is for, and that a core has 8 bits. The order of the header's
 * fields and the numbers of the operations are ours. The answer goes to the core in flit 2; in a request it is the
 * source.
 *
 * Operations with a * are ours: POSIX needs them, the paper does not describe them.
 */
#ifndef HW_PACKET_H
#define HW_PACKET_H

#include "layout.h"

#define HW_N_FLITS 3

struct hw_packet {
    uint32_t flit[HW_N_FLITS];
};

enum hw_op {
    HW_OP_NONE, /* never valid */

    /* Requests. Flit 1 is the primitive's ID unless it says otherwise. */
    HW_OP_ALLOC_MUTEX,     /* flit 1: 0                    answer: ALLOCATED or NO_SPACE */
    HW_OP_ALLOC_CONDITION, /* flit 1: its mutex's ID       answer: ALLOCATED or NO_SPACE */
    HW_OP_ALLOC_BARRIER,   /* flit 1: threads, 1 to 65535  answer: ALLOCATED or NO_SPACE */
    HW_OP_DEALLOC,         /*                              no answer */
    HW_OP_LOCK,            /*                              answer: GRANT, later; or AGAIN */
    HW_OP_UNLOCK,          /*                              no answer */
    HW_OP_BARRIER_WAIT,    /*                              answer: RELEASE, later; or AGAIN */
    HW_OP_COND_WAIT,       /*                              answer: GRANT of its mutex, later; or AGAIN, or WOKEN */
    HW_OP_BROADCAST,       /*                              no answer */
    HW_OP_SIGNAL,          /*                              no answer */
    HW_OP_TRYLOCK,         /* *                            answer: GRANT or BUSY */
    HW_OP_WITHDRAW,        /* * mutex or condition         answer: WITHDRAWN or GONE */
    HW_OP_EVICT,           /* *                            answer: EVICTED or BUSY */
    HW_N_REQUESTS,

    /* Responses. Flit 2 is the thread that it is for. Every request may also be answered by NACK. */
    HW_OP_GRANT = 16, /* flit 1: mutex's ID. The thread owns it. argument 1: it was queued */
    HW_OP_RELEASE,    /* the barrier opened. argument 1: for the last thread to arrive, the serial thread */
    HW_OP_ALLOCATED,  /* flit 1: the new ID */
    HW_OP_NO_SPACE,   /* argument: enum hw_space. Flit 1 as in the request */
    HW_OP_AGAIN,      /* no queue element is free; the thread waits for nothing. The paper sets EAGAIN */
    HW_OP_BUSY,       /* * trylock: a thread holds the mutex. Evict: the primitive is not idle */
    HW_OP_WITHDRAWN,  /* * the thread was in the queue and is no longer */
    HW_OP_GONE,       /* * the thread was not in the queue: its GRANT has been sent or will be */
    HW_OP_EVICTED,    /* * the ID is free; nothing was lost but a barrier's size */
    HW_OP_WOKEN,      /* * condition wait without a free element: its mutex is unlocked, the thread was never queued */
    HW_OP_NACK        /* * the request was refused and nothing changed. argument: hw_nack_*() */
};

enum hw_space { HW_SPACE_CONTROL, HW_SPACE_QUEUE };

enum hw_reason {
    HW_REASON_NONE,
    HW_REASON_MALFORMED, /* no such operation, core or argument, or a request for another NI */
    HW_REASON_STALE,     /* the ID is not, or no longer, allocated */
    HW_REASON_KIND,      /* the ID's primitive does not have this operation */
    HW_REASON_BUSY,      /* deallocation of a primitive that is held, or that threads wait on */
    HW_REASON_UNBOUND    /* the condition's mutex is gone */
};

/* A packet taken apart. core is flit 2's. */
struct hw_message {
    uint32_t destination, source;
    enum hw_op op;
    uint32_t argument;
    uint32_t primitive;
    uint16_t thread;
    uint16_t core;
};

enum { HW_OP_BITS = 5, HW_ARGUMENT_BITS = 7 };

/* Fields that do not fit are cut off: the result is a packet, if not the one that was meant. */
static inline struct hw_packet hw_packet_encode(const struct hw_layout *layout, const struct hw_message *message) {
    uint32_t bits = layout->tile_bits;
    uint32_t header = message->destination << (32 - bits) | message->source << (32 - bits) >> bits |
                      hw_bits((uint32_t)message->op, 0, HW_OP_BITS) << HW_ARGUMENT_BITS |
                      hw_bits(message->argument, 0, HW_ARGUMENT_BITS);
    return (struct hw_packet){{header, message->primitive, (uint32_t)message->thread << 16 | message->core}};
}

/* Never fails; hw_packet_is_request says whether the result means anything. */
static inline struct hw_message hw_packet_decode(const struct hw_layout *layout, const struct hw_packet *packet) {
    uint32_t bits = layout->tile_bits, header = packet->flit[0];
    return (struct hw_message){.destination = header >> (32 - bits),
                               .source = header << bits >> (32 - bits),
                               .op = (enum hw_op)hw_bits(header, HW_ARGUMENT_BITS, HW_OP_BITS),
                               .argument = hw_bits(header, 0, HW_ARGUMENT_BITS),
                               .primitive = packet->flit[1],
                               .thread = (uint16_t)(packet->flit[2] >> 16),
                               .core = (uint16_t)packet->flit[2]};
}

/* Single fields of the header. */
static inline uint32_t hw_packet_destination(const struct hw_layout *layout, const struct hw_packet *packet) {
    return packet->flit[0] >> (32 - layout->tile_bits);
}

static inline enum hw_op hw_packet_op(const struct hw_packet *packet) {
    return (enum hw_op)hw_bits(packet->flit[0], HW_ARGUMENT_BITS, HW_OP_BITS);
}

static inline uint32_t hw_packet_argument(const struct hw_packet *packet) {
    return hw_bits(packet->flit[0], 0, HW_ARGUMENT_BITS);
}

/* Is this the answer to a thread that was queued, and slept? A request that was held back for want of an element, and
 * then found the mutex free, does not count: the packet does not tell that. */
static inline bool hw_packet_ends_wait(const struct hw_packet *packet) {
    enum hw_op op = hw_packet_op(packet);
    return (op == HW_OP_GRANT && hw_packet_argument(packet) == 1) ||
           (op == HW_OP_RELEASE && hw_packet_argument(packet) == 0);
}

/* A request to allocate. The NI is the caller's choice (round robin in the paper), but a condition's is its mutex's. */
static inline struct hw_packet hw_packet_alloc(const struct hw_layout *layout, enum hw_op op, uint32_t ni,
                                               uint32_t flit1, uint32_t core, uint32_t thread) {
    struct hw_message message = {.destination = ni,
                                 .source = core,
                                 .op = op,
                                 .primitive = flit1,
                                 .thread = (uint16_t)thread,
                                 .core = (uint16_t)core};
    return hw_packet_encode(layout, &message);
}

/* Any other request: from a thread on a core to the home of a primitive. */
static inline struct hw_packet hw_packet_request(const struct hw_layout *layout, enum hw_op op, uint32_t id,
                                                 uint32_t core, uint32_t thread) {
    return hw_packet_alloc(layout, op, hw_id_ni(layout, id), id, core, thread);
}

static inline bool hw_op_is_request(uint32_t op) {
    return op > HW_OP_NONE && op < HW_N_REQUESTS;
}

/* Is it a well-formed request for NI `ni`: each field in its range, an ID of this NI, the answer to its source? So
 * there is only one header that it can have. */
static inline bool hw_packet_is_request(const struct hw_layout *layout, const struct hw_packet *packet, uint32_t ni) {
    uint32_t bits = layout->tile_bits, op = (uint32_t)hw_packet_op(packet), core = (uint16_t)packet->flit[2];
    if (packet->flit[0] != (ni << (32 - bits) | core << (32 - 2 * bits) | op << HW_ARGUMENT_BITS))
        return false;
    if (core >= layout->n_tiles || !hw_op_is_request(op))
        return false;
    if (op == HW_OP_ALLOC_MUTEX)
        return packet->flit[1] == 0;
    if (op == HW_OP_ALLOC_BARRIER)
        return packet->flit[1] >= 1 && packet->flit[1] <= UINT16_MAX;
    return hw_id_ni(layout, packet->flit[1]) == ni;
}

/* What a NACK's argument says: the request that was refused, and why. */
static inline uint32_t hw_nack_argument(enum hw_op op, enum hw_reason reason) {
    return (uint32_t)op << 3 | (uint32_t)reason;
}

static inline enum hw_op hw_nack_op(uint32_t argument) {
    return (enum hw_op)hw_bits(argument, 3, 4);
}

static inline enum hw_reason hw_nack_reason(uint32_t argument) {
    return (enum hw_reason)hw_bits(argument, 0, 3);
}

#endif
