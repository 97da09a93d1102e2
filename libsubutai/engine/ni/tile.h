/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tile: a core's mailbox, its network interface (NI), and what the NI's server knows of the requests there.
 *
 * One thread at a time serves an NI. The thread that gets the tile's lock serves the requests of all threads, and looks
 * again after it has released the lock. So no request is left lying because its producer found the lock taken:
 *  1. The producer writes its request, tries the lock, and finds it taken.
 *  2. The server releases the lock.
 *  3. The server looks once more, and sees the request.
 *
 * Taking and releasing the lock are exchanges that are full barriers: the producer's write comes before its try, the
 * server's release before its look. So at least one of the two sees what the other has written.
 *
 * The lock is not the internal lock of os/, because as a rule no thread waits for it: a producer that finds it taken
 * leaves its request to the server.
 */
#ifndef SBT_ENGINE_NI_TILE_H
#define SBT_ENGINE_NI_TILE_H

#include "engine/ni/held.h"
#include "engine/ni/machine.h"
#include "engine/ni/ring.h"
#include "engine/ni/wfqueue.h"

struct ni_latency;        /* stats.h */
struct ni_requests_block; /* requests.h */

struct ni_tile {
    struct ni_mailbox mailbox;
    struct cds_wfcq_tail queue_tail __attribute__((aligned(64))); /* requests that have come over the network */
    struct __cds_wfcq_head queue_head __attribute__((aligned(64)));
    uint32_t lock;        /* its owner is this NI's server; everything from here on is under it */
    uint32_t n_used;      /* control elements in use; atomic, read without the lock as a hint */
    uint64_t free_cycles; /* until then the state machine is busy, */
    uint64_t busy_cycles; /* and has been since then, without a pause */
    uint64_t n_direct;    /* requests that were in no mailbox: their thread served them at once */
    uint64_t n_stepped, n_withdrawn_held;
    struct ni_held held;
    struct ni_request *pending; /* requests that are not due, by arrival time */
    uint64_t next_cycles;       /* arrival time of the first of them, UINT64_MAX: none; atomic, read without the lock */
    uint32_t hand;              /* where the next search for something to evict begins */
    uint64_t n_evicted;         /* evictions to make room; atomic */
    struct hw_ni ni;
    /*
     * For each control element the epoch of a barrier, a word that changes when the barrier opens. NI_ASLEEP: a thread
     * sleeps on it. Atomic.
     */
    uint32_t *epochs;
    struct hw_output *outputs;
    /*
     * For each control element the address of the word that holds its ID. An ID counts the allocations of its element,
     * and the count wraps. So an object that was not used for as many allocations may hold an ID that is another
     * object's by now. The address tells.
     */
    const void **objects;
    struct ni_latency *latency;         /* NULL: no statistics */
    struct ni_requests_block *requests; /* NULL: --requests is not given */
};

#define NI_ASLEEP 1u /* of an epoch */

/* Make the tiles, after ni_machine_start. 0 or an errno value. */
int ni_tile_start(void);

/* Move the memory of the tiles [from, to) to a memory node, and keep it there. False: the kernel refused. */
bool ni_tile_bind(uint32_t from, uint32_t to, uint32_t node);

static inline struct ni_tile *ni_home(uint32_t id) {
    return &ni_machine.tiles[hw_id_ni(&ni_machine.layout, id)];
}

static inline uint32_t ni_number_of(const struct ni_tile *tile) {
    return (uint32_t)(tile - ni_machine.tiles);
}

/* Between a store and a load of another word. An atomic exchange is next to it, which suffices on x86-64. */
#if defined(__x86_64__)
#define NI_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define NI_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* A call begins: when the tile's core, which may be handing over another request, takes it up. */
struct ni_issue ni_tile_issue(struct ni_tile *tile);

/* With a time scale a call of a thread of this tile ends: it waits until the model says. See ni_wait_until. */
void ni_tile_delay(struct ni_tile *tile, uint64_t cycles, uint64_t rest_ns);

/* Try to take the lock. False: another thread serves this NI, and will see what was handed in before this call. */
static inline bool ni_tile_try(struct ni_tile *tile) {
    NI_BARRIER();
    return __atomic_exchange_n(&tile->lock, 1, __ATOMIC_SEQ_CST) == 0;
}

/* Take the lock in any case: waits for as long as its owner serves. The caller has deferred its handlers. */
void ni_tile_take(struct ni_tile *tile);

/* Release the lock. The caller looks at the tile again afterwards (ni_has_arrivals). */
static inline void ni_tile_release(struct ni_tile *tile) {
    __atomic_exchange_n(&tile->lock, 0, __ATOMIC_SEQ_CST);
    NI_BARRIER();
}

/*
 * Has something arrived that no server has seen? Without the lock, and relaxed. A look that must see a certain request
 * comes after the barrier of ni_tile_release or of a service thread's doze; any other look is a hint. Of the queue only
 * the tail is read, which decides in the end: the head is written by the server.
 */
static inline bool ni_has_arrivals(struct ni_tile *tile) {
    uint64_t head = __atomic_load_n(&tile->mailbox.head, __ATOMIC_RELAXED);
    return __atomic_load_n(&tile->mailbox.ring[head % NI_RING].turn, __ATOMIC_RELAXED) == ni_turn_full(head) ||
           CMM_LOAD_SHARED(tile->queue_tail.p) != &tile->queue_head.node;
}

/* The same; also true for a request that is not due yet. */
static inline bool ni_has_work(struct ni_tile *tile) {
    return ni_has_arrivals(tile) || __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED) != UINT64_MAX;
}

#endif
