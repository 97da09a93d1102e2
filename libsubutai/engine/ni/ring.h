/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request, and a core's mailbox: a ring of requests without a lock. The threads that share a tile put requests in,
 * and the tile's server takes them out.
 *
 * Positions count requests from the process's beginning, and never wrap around. The request at position p lies in slot
 * p modulo NI_RING. A slot has a turn, which says for which position it is free or full:
 *  1. A producer reads the tail p, and the turn of p's slot. If that is "free for p", it claims p: it moves the tail to
 *     p + 1, by a compare-and-swap. An older turn says that the ring is full.
 *  2. It writes the request into the slot, and publishes it: the turn becomes "full for p".
 *  3. The server takes requests from the head, one position after another, as long as the next is full.
 *  4. The server of the home NI sets the slot free for p + NI_RING when it has stepped the request, or has copied it.
 *
 * A turn without a position would not do. The slot that a producer has claimed and not written is still free for p. To
 * a producer at p + NI_RING it must look full.
 *
 * At a full ring a single producer looks, under the lock `full`, and the others wait for that lock. While it looks no
 * producer that comes later claims (`awaited`): the free slot is the looking producer's. No request takes this lock
 * while the ring has room.
 *
 * A thread's requests keep their order, because it claims the next position after it has published the last. The
 * model's times may be in another order: two threads of a tile that hand in at once may claim in one order and begin
 * their hand-overs (ni_tile_issue) in the other. The core still hands over one request at a time, and both times are
 * true.
 *
 * A producer may be held up between claim and publication. What others have put in behind it waits, as it would wait
 * behind a producer with the queue's tail in any such queue:
 *  1. A thread publishes p + 1 and sees to it that the tile is served. Nothing is at p, so the server finds nothing. It
 *     may fall asleep.
 *  2. The producer of p goes on, publishes p, and sees to it that the tile is served. That serves p and p + 1.
 *
 * So each producer makes sure of the service after it has published, also if the server has been woken by another. If
 * it does not come back, neither do the threads behind it:
 *  - A signal handler of the program is deferred (ni_go_inside). To a handler that cannot be deferred (core/handlers.h)
 *    its thread is inside the engine: it claims nothing. What has no answer it leaves for later (ni_defer), and a wait
 *    for an answer ends the process.
 *  - Asynchronous cancellation is deferred in a lock, but for its sleep. It is undefined in an unlock (POSIX), as it is
 *    everywhere under a lock.
 *
 * A forked child has the ring of its parent, with claims of threads that it does not have. It empties the ring and
 * counts on from the tail, which is behind all claims. The forking thread itself has a claim if a handler forks that
 * could not be deferred, wherever it has interrupted the thread:
 *  1. Before the compare-and-swap, the thread claims a position of the child's.
 *  2. Between claim and publication, the slot's turn is newer than the thread's position, so publishing fails and the
 *     thread claims again. For that publishing is a compare-and-swap. What the thread has written into the slot in vain
 *     does no harm, unless other threads of the child have handed in before the handler returned.
 *  3. After the publication, the child has served or dropped the request.
 *
 * In the same way the handler may have interrupted its thread as that served the request at p, and sets its slot free
 * later. The child has emptied the ring, so the slot is free for p + NI_RING: it has not been free since p was claimed,
 * so the tail is at most p + NI_RING. The thread finds it free, or stores what is there already. A compare-and-swap
 * would wait for the cache line, and the thread's answer with it. If the handler came between the load of the head and
 * the store of the next, the store moves the child's head back. The thread sees that its position is before the child's
 * first, and puts the head there (next_in_mailbox, serve.c).
 *
 * A lock and unlock through an NI thread move three cache lines to its CPU and back: the slot of the lock, the thread's
 * record with the answer, and the slot of the unlock. The tail is only the producers', and the head only the servers',
 * but for a producer at a full ring.
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

#include "engine/ni/bounds.h"
#include "engine/ni/wfqueue.h"
#include "os/lock.h"
#include "packet.h"

/*
 * A request, from its slot in the mailbox to the step that serves it. `turn` is atomic and says to which thread the
 * rest belongs. Each change adds 1:
 *
 * | turn            | set by                     | release, pairs with the acquire of | the request belongs to |
 * | ni_turn_free(p) | the server of the home NI  | claim (mailbox.c)                  | the producer at p      |
 * | ni_turn_full(p) | the producer, when written | next_in_mailbox (serve.c)          | the servers            |
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

_Static_assert(sizeof(struct ni_request) == 64, "a request is one cache line on its way to the server");

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

struct ni_mailbox {
    uint64_t tail __attribute__((aligned(64))); /* the next position to claim; atomic */
    struct sbt_lock full;                       /* of the producer that looks for a slot in a full ring */
    uint32_t awaited;                           /* 1: there is one; atomic */
    struct sbt_lock fenced;                     /* of the thread that waits until requests have been served */
    /*
     * When the core has handed over its last request; only if the machine is timed. Atomic, and relaxed: it orders
     * nothing but times. Threads that serve themselves change it too.
     */
    uint64_t handed_cycles;
    uint64_t n_delayed, late_ns; /* calls that waited for model time, and by how much later they went on; atomic */
    uint64_t head __attribute__((aligned(64))); /* under the tile's lock; atomic, because other threads look at it */
    uint64_t first;                             /* the first position of this process; a forked child counts on */
    struct ni_request ring[NI_RING];
};

/* The turn of a position's slot. All-zero memory is an empty ring. */
static inline uint64_t ni_turn_free(uint64_t position) {
    return 2 * (position / NI_RING);
}

static inline uint64_t ni_turn_full(uint64_t position) {
    return ni_turn_free(position) + 1;
}

static inline bool ni_turn_is_full(uint64_t turn) {
    return turn % 2 != 0;
}

/*
 * Set a slot free for its next position; by the server that has the request. The load is relaxed: only this server
 * changes the turn of a full slot. It is not full if a handler has forked (above). The release pairs with claim
 * (mailbox.c): the next producer writes after the server has read.
 */
static inline void ni_slot_free(struct ni_request *slot) {
    uint64_t turn = __atomic_load_n(&slot->turn, __ATOMIC_RELAXED);
    if (SBT_LIKELY(ni_turn_is_full(turn)))
        __atomic_store_n(&slot->turn, turn + 1, __ATOMIC_RELEASE);
}

/* Requests that have been published. For a thread that keeps the tile's server out; relaxed, because it only counts. */
static inline uint64_t ni_mailbox_handed_in(const struct ni_mailbox *box) {
    uint64_t head = __atomic_load_n(&box->head, __ATOMIC_RELAXED), n = head - box->first;
    for (uint64_t at = head; at < head + NI_RING; at++)
        n += __atomic_load_n(&box->ring[at % NI_RING].turn, __ATOMIC_RELAXED) == ni_turn_full(at);
    return n;
}

static inline bool ni_has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

#endif
