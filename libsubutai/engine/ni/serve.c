/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Serving a network interface: the requests in its core's mailbox, and those that have come over the network, one step
 * each (step.c).
 *
 * The requests of one thread keep their order to one NI:
 *  - Mailbox, mesh and queue are first in, first out.
 *  - Requests that are not due are sorted by arrival, and none before an earlier request of its thread (delay).
 *  - A thread serves a request itself only if none of its own is in a mailbox.
 *
 * Two threads of one core may overtake each other: only one of them may find a gap in the mesh, or serve itself.
 */
#include "engine/ni/serve.h"

#include <limits.h>

#include "engine/ni/broadcast.h"
#include "engine/ni/service.h"
#include "engine/ni/step.h"
#include "wait/park.h"

/*
 * Keep a request that is not due, behind the requests that come no later, and behind those of its own thread. Data
 * traffic can let a packet find a gap before the packet that it follows, which a real router would not: a withdrawal
 * must not overtake its request. A request of another thread of the same core does not wait for it. `next_cycles` is
 * relaxed: for a reader without the lock it is a hint.
 */
static void delay(struct ni_tile *tile, struct ni_request *r) {
    struct ni_request **at = &tile->pending;
    for (struct ni_request *other = tile->pending; other != NULL; other = other->next)
        if (other->packet.flit[2] == r->packet.flit[2] && other->at_cycles > r->at_cycles)
            r->at_cycles = other->at_cycles;
    while (*at != NULL && (*at)->at_cycles <= r->at_cycles)
        at = &(*at)->next;
    r->next = *at;
    *at = r;
    __atomic_store_n(&tile->next_cycles, tile->pending->at_cycles, __ATOMIC_RELAXED);
}

static void arrived(struct ni_tile *tile, struct ni_request *r, uint64_t until_cycles, struct ni_work *work) {
    if (r->at_cycles > until_cycles || (tile->pending != NULL && until_cycles != UINT64_MAX))
        delay(tile, r);
    else
        ni_step_request(tile, r, r, work);
}

static void serve_pending(struct ni_tile *tile, uint64_t until_cycles, struct ni_work *work) {
    while (tile->pending != NULL && tile->pending->at_cycles <= until_cycles) {
        struct ni_request *r = tile->pending;
        tile->pending = r->next;
        ni_step_request(tile, r, r, work);
    }
    __atomic_store_n(&tile->next_cycles, tile->pending != NULL ? tile->pending->at_cycles : UINT64_MAX,
                     __ATOMIC_RELAXED);
}

/*
 * The acquire pairs with publish (mailbox.c). The head is under the tile's lock; it is a relaxed atomic for readers
 * without it. If a handler has forked after the first load, the position is the parent's (ring.h): the child has served
 * or dropped the request there. The fence keeps the store before the last look.
 */
static struct ni_request *next_in_mailbox(struct ni_tile *tile) {
    struct ni_mailbox *box = &tile->mailbox;
    uint64_t head = __atomic_load_n(&box->head, __ATOMIC_RELAXED);
    struct ni_request *slot = &box->ring[head % NI_RING];
    if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) != ni_turn_full(head))
        return NULL;
    __atomic_store_n(&box->head, head + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(head >= box->first))
        return slot;
    if (box->head < box->first)
        __atomic_store_n(&box->head, box->first, __ATOMIC_RELAXED);
    return NULL;
}

static struct ni_request *next_in_queue(struct ni_tile *tile) {
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(&tile->queue_head, &tile->queue_tail);
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK) /* a thread is enqueueing it, and makes sure that it is served */
        return NULL;
    return caa_container_of(node, struct ni_request, node);
}

/* When a request that was made then arrives at another tile. The caller has `tile`'s lock. */
static uint64_t arrival_of(struct ni_tile *tile, const struct hw_packet *packet, uint32_t from, uint32_t to,
                           uint64_t issued_cycles) {
    if (SBT_UNLIKELY(ni_machine.optical) && hw_packet_op(packet) == HW_OP_BROADCAST && ni_machine.timed)
        return from != to ? ni_broadcast_request(from, to, issued_cycles)
                          : issued_cycles + ni_handover_of(HW_OP_BROADCAST);
    return ni_send(tile, from, to, issued_cycles + ni_handover()).head_cycles;
}

static void forward(struct ni_tile *from, struct ni_tile *to, struct ni_request *r, struct ni_work *work) {
    r->at_cycles = arrival_of(from, &r->packet, ni_number_of(from), ni_number_of(to), r->issued_cycles);
    cds_wfcq_node_init(&r->node);
    cds_wfcq_enqueue(&to->queue_head, &to->queue_tail, &r->node);
    for (uint32_t i = 0; i < work->n_touched; i++)
        if (work->touched[i] == to)
            return;
    work->touched[work->n_touched++] = to;
}

/* Under the tile's lock. */
static void serve_locked(struct ni_tile *tile, uint64_t until_cycles, struct ni_work *work) {
    for (bool more = true; more && work->n_touched < NI_MAX_TOUCHED;) {
        struct ni_request *r;
        more = false;
        if (tile->pending != NULL) /* they came first */
            serve_pending(tile, until_cycles, work);
        while (work->n_touched < NI_MAX_TOUCHED && (r = next_in_mailbox(tile)) != NULL) {
            struct ni_tile *to = &ni_machine.tiles[hw_packet_destination(&ni_machine.layout, &r->packet)];
            r->at_cycles = r->issued_cycles + ni_handover_of(hw_packet_op(&r->packet));
            if (to == tile)
                arrived(tile, r, until_cycles, work);
            else
                forward(tile, to, r, work);
            more = true;
        }
        while ((r = next_in_queue(tile)) != NULL) {
            arrived(tile, r, until_cycles, work);
            more = true;
        }
        if (tile->pending != NULL)
            serve_pending(tile, until_cycles, work);
    }
}

/* A service thread serves what is due. A thread that serves itself serves all: no thread would come back later. */
static uint64_t until(void) {
    return ni_machine.time_scale != 0 && ni_service_runs() ? ni_now_cycles() : UINT64_MAX;
}

static bool has_work_until(struct ni_tile *tile, uint64_t until_cycles) {
    uint64_t next = __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED);
    return ni_has_arrivals(tile) || (next != UINT64_MAX && next <= until_cycles);
}

/* Tiles to serve next. */
struct todo {
    uint32_t n;
    bool hands_over; /* tiles of other service threads are left to those */
    struct ni_tile *tile[NI_MAX_TODO];
};

static void add(struct todo *todo, struct ni_tile *tile) {
    for (uint32_t i = 0; i < todo->n; i++)
        if (todo->tile[i] == tile)
            return;
    if (todo->n < NI_MAX_TODO)
        todo->tile[todo->n++] = tile;
    else if (todo->hands_over)
        ni_serve_and_hand_over(tile);
    else
        ni_serve(tile);
}

static void clear(struct ni_work *work, const struct ni_thread *self) {
    work->self = self;
    work->opened = NULL;
    work->n_wakes = work->n_touched = 0;
}

static void finish(const struct ni_work *work, const struct ni_tile *tile, struct todo *todo) {
    if (work->opened != NULL)
        sbt_wake(work->opened, INT_MAX);
    for (uint32_t i = 0; i < work->n_wakes; i++)
        sbt_waiter_wake(work->wakes[i]);
    for (uint32_t i = 0; i < work->n_touched; i++)
        if (!todo->hands_over || !ni_service_hand_over(tile, work->touched[i]))
            add(todo, work->touched[i]);
}

static void serve_one(struct ni_tile *tile, struct todo *todo) {
    struct ni_work work;
    uint64_t until_cycles;
    do {
        clear(&work, NULL);
        until_cycles = until();
        if (!ni_tile_try(tile))
            return;
        serve_locked(tile, until_cycles, &work);
        ni_tile_release(tile);
        finish(&work, tile, todo);
    } while (has_work_until(tile, until_cycles));
    /*
     * A thread that is no service thread may have kept requests that are not due: as the service began, or while it
     * looked for a victim. They are the service thread's now.
     */
    if (SBT_UNLIKELY(__atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED) != UINT64_MAX) && ni_service_runs())
        ni_service_wake(tile);
}

static void serve_todo(struct todo *todo) {
    while (todo->n > 0)
        serve_one(todo->tile[--todo->n], todo);
}

static void serve(struct ni_tile *tile, bool hands_over) {
    struct todo todo;
    todo.n = 0;
    todo.hands_over = hands_over;
    serve_one(tile, &todo);
    serve_todo(&todo);
}

void ni_serve(struct ni_tile *tile) {
    serve(tile, false);
}

void ni_serve_and_hand_over(struct ni_tile *tile) {
    serve(tile, true);
}

void ni_serve_instead(struct ni_thread *t) {
    struct ni_tile *own = &ni_machine.tiles[t->tile], *home = &ni_machine.tiles[t->home];
    if (ni_has_arrivals(own) || ni_has_arrivals(home)) /* without them the answer depends on another thread */
        ni_service_judge(t, true);
    ni_serve(own);
    ni_serve(home);
}

bool ni_serve_own(struct ni_thread *t, const struct hw_packet *packet, const void *object, struct ni_issue *issue) {
    uint32_t number = hw_packet_destination(&ni_machine.layout, packet);
    struct ni_tile *tile = &ni_machine.tiles[number];
    struct ni_work work;
    struct todo todo;
    struct ni_origin origin;
    bool own_turn = true;
    if (!ni_tile_try(tile))
        return false;
    clear(&work, t);
    todo.n = 0;
    todo.hands_over = false;
    if (SBT_UNLIKELY(ni_has_work(tile))) { /* requests that came before it; they may be the caller's own */
        serve_locked(tile, UINT64_MAX, &work);
        /* Work may be left: more than fits into `work`, or behind a request that a thread is enqueueing. */
        own_turn = !ni_has_arrivals(tile);
    }
    if (SBT_LIKELY(own_turn)) {
        *issue = ni_tile_issue(&ni_machine.tiles[t->tile]);
        origin.issued_cycles = issue->cycles;
        origin.object = object;
        origin.at_cycles = arrival_of(tile, packet, t->tile, number, origin.issued_cycles);
        ni_step_direct(tile, packet, &origin, &work);
    }
    ni_tile_release(tile);
    if (SBT_UNLIKELY(work.n_wakes + work.n_touched != 0 || work.opened != NULL))
        finish(&work, tile, &todo);
    if (SBT_UNLIKELY(ni_has_arrivals(tile)))
        add(&todo, tile);
    serve_todo(&todo);
    return own_turn;
}
