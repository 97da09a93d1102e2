/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request, and a core's mailbox: a ring of requests. The threads that share a tile put requests in, and its server
 * takes them out. None of them holds a lock.
 *
 * Positions count requests from the beginning, and never wrap around. The request at position p lies in slot p modulo
 * NI_RING. Each slot has a turn, which says for which position it is free or full:
 *  1. A producer reads the tail p. It claims p by a compare-and-swap of the tail to p + 1, which it tries only if the
 *     slot's turn is "free for p". An older turn says that the ring is full. A newer one says that p has been claimed.
 *  2. It writes the request into the slot, and publishes it by the turn "full for p".
 *  3. The server takes requests from the head, one position after another, as long as the next is full.
 *  4. The server of the home NI sets the slot free for p + NI_RING when it has stepped the request.
 *
 * "Free" without a position would not do. The slot that a producer has claimed and not written is still free for p. To
 * a producer at p + NI_RING it must look full.
 *
 * A producer may be held up between claim and publication:
 *  1. Another thread of the tile publishes p + 1, and the server finds nothing at p. The request at p + 1 waits, as it
 *     would have waited for the tail if the two had come a moment later.
 *  2. The producer goes on, publishes p, and sees to it that the tile is served. That serves p and p + 1.
 *
 * A signal handler that comes between claim and publication is deferred (ni_go_inside). Some handlers cannot be
 * deferred (core/handlers.h). To those their thread is inside the engine: what has no answer they leave for later
 * (ni_defer), and a wait ends the process. So a handler never claims while its thread has a claim.
 *
 * A forked child has the ring of its parent, with the claims of threads that it does not have. It empties the ring, and
 * counts on from the tail. The forking thread itself has a claim only if a handler forks that could not be deferred.
 * Then the child counts on from the position p that this thread has claimed, or was about to claim (ni_thread.claim),
 * with the tail at p:
 *  1. If the thread had not made its compare-and-swap, that succeeds now, or fails and is made again.
 *  2. If it had claimed p, it publishes p, and the tail is one behind. The next producer finds a newer turn at p, and
 *     moves the tail on.
 *
 * A lock and unlock through an NI thread moves three cache lines to its CPU and back: the slot of the lock, the
 * thread's record with the answer, and the slot of the unlock. The tail is written by producers only, the head by
 * servers only.
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
#include "packet.h"

/*
 * A request, from its slot in the mailbox to the step that serves it. `turn` is atomic and says to which thread the
 * rest belongs. It counts how often the slot has been filled and emptied, so each change adds one:
 *
 * | turn                     | set by                     | order                                         | belongs to
 * | | ni_turn_free(p)          | the server of the home NI  | release, pairs with claim's acquire           | claimant
 * of p | | ni_turn_free(p) + 1      | the producer, when written | release, pairs with next_in_mailbox's acquire | the
 * servers   |
 */
struct ni_request {
    struct hw_packet packet;
    uint64_t turn;
    uint64_t issued_cycles;
    uint64_t at_cycles; /* when its header is at its home NI */
    const void *object; /* not on the wire: the place of the ID, see ni_tile.objects; NULL: none */
    struct cds_wfcq_node node;
    struct ni_request *next; /* in the list of requests that are not due yet */
} __attribute__((aligned(64)));

/* When a request was handed in, when it arrived here, in cycles, and its object. */
struct ni_origin {
    uint64_t issued_cycles, at_cycles;
    const void *object;
};

#define NI_RING 16 /* requests that a mailbox holds, as many as the paper's NI buffers */

struct ni_mailbox {
    uint64_t tail __attribute__((aligned(64))); /* the next position to claim; atomic */
    uint64_t first;                             /* the first position since the process began */
    uint64_t head __attribute__((aligned(64))); /* under the tile's lock; atomic, because producers look at it */
    uint64_t issued_cycles;                     /* of the last request that was taken out; under the tile's lock */
    struct ni_request ring[NI_RING];
};

/* Turn of the slot for position `at`, when it is free for that position. All-zero memory is an empty ring. */
static inline uint64_t ni_turn_free(uint64_t at) {
    return 2 * (at / NI_RING);
}

static inline bool ni_turn_is_full(uint64_t turn) {
    return turn % 2 != 0;
}

/* Free a slot for its next position. By the server that has the request. */
static inline void ni_slot_free(struct ni_request *slot) {
    __atomic_store_n(&slot->turn, slot->turn + 1, __ATOMIC_RELEASE); /* pairs with claim (mailbox.c) */
}

/* Requests that were handed in. Relaxed: it is only a count. */
static inline uint64_t ni_mailbox_pushed(const struct ni_mailbox *box) {
    return __atomic_load_n(&box->tail, __ATOMIC_RELAXED) - box->first;
}

static inline bool ni_has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

#endif
