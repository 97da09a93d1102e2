/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request, and a core's mailbox: a ring of requests. One thread at a time puts requests in; the consumer takes no
 * lock of the ring. On the chip a core runs one thread at a time. Here the threads that share a tile take turns by the
 * mailbox's lock, which is held while three flits are written.
 *
 * The ring is the library's own and not a queue of liburcu's, because it stands for the paper's NI buffer:
 *  - it has a bound, and a full ring pushes back;
 *  - a slot is memory of the tile's, so a request needs no allocation, and no node that outlives its thread;
 *  - a forked child reads what lies in it.
 *
 * Requests that have crossed the mesh have no bound, and wait in a queue of liburcu's (tile.h).
 */
#ifndef SBT_ENGINE_NI_RING_H
#define SBT_ENGINE_NI_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ni/wfqueue.h"
#include "os/lock.h"
#include "packet.h"

enum ni_slot { NI_SLOT_FREE, NI_SLOT_FULL, NI_SLOT_MOVING };

/*
 * A request, from its slot in the mailbox to the step that serves it. `state` is atomic and says to which thread the
 * rest belongs:
 *
 * | state   | set by                     | order                                         | the request belongs to |
 * | FREE    | the server of the home NI  | release, pairs with free_slot's acquire       | the next producer      |
 * | FULL    | the producer, when written | release, pairs with next_in_mailbox's acquire | the core's server      |
 * | MOVING  | the core's server          | relaxed: under the tile's lock                | the server that has it |
 */
struct ni_request {
    struct hw_packet packet;
    uint32_t state;
    uint64_t issued_cycles;
    uint64_t at_cycles; /* when its header is at its home NI */
    const void *object; /* not on the wire: the place of the ID, see ni_tile.objects; NULL: none */
    struct cds_wfcq_node node;
    struct ni_request *next; /* in the list of requests that are not due yet */
} __attribute__((aligned(64)));

/*
 * When a core takes up a request, to hand it over; rest_ns: see ni_wait_until. A core hands over one request at a time.
 */
struct ni_issue {
    uint64_t cycles, rest_ns;
};

/* When a request was issued, when it arrived here, in cycles, and its object. */
struct ni_origin {
    uint64_t issued_cycles, at_cycles;
    const void *object;
};

#define NI_RING 16 /* requests that a mailbox holds, as many as the paper's NI buffers */

struct ni_mailbox {
    struct sbt_lock lock __attribute__((aligned(64))); /* the producer's; the tile's other threads wait for it */
    uint32_t tail;                                     /* under the lock */
    uint64_t n_pushed;                                 /* under the lock; atomic, read by the report */
    /*
     * When the core has handed over its last request; only if the machine is timed. Atomic, and relaxed: it orders
     * nothing but times. Threads that serve themselves change it without the lock.
     */
    uint64_t handed_cycles;
    uint64_t n_delayed, late_ns; /* calls that waited for model time, and by how much later they went on; atomic */
    uint32_t head __attribute__((aligned(64))); /* under the tile's lock; atomic, because producers look at it */
    struct ni_request ring[NI_RING];
};

static inline bool ni_has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

#endif
