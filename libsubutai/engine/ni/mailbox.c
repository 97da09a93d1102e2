/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/mailbox.h"

#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/thread.h"
#include "os/futex.h"
#include "wait/yield_gate.h"

#define LOOKS_BEFORE_PAUSE 4  /* at a full ring, or at a slot that is to be served; */
#define PAUSE_NS 50000        /* first pause, */
#define PAUSE_MOST_NS 1000000 /* and a longest one: a ring is served in less */

/* Make sure that what has been handed in is served: by the service thread, or here. */
static void kick(struct ni_tile *tile, bool leave) {
    if (leave) {
        ni_service_wake(tile);
        if (ni_service_runs())
            return;
        /* the service has just stopped, and may have left what came too late for it */
    }
    ni_serve(tile);
}

/* With a time scale only service threads know when a request is due. Otherwise a thread need not wait for them. */
static bool must_leave(void) {
    return ni_machine.time_scale != 0 && ni_service_runs();
}

/*
 * Claim the next position, if its slot is free (ring.h). False: the ring is full. The tail is relaxed: it orders
 * nothing but the claims, and the turn decides. A turn that is newer than the tail says that another producer was
 * quicker. The acquire pairs with ni_slot_free.
 */
static bool try_claim(struct ni_mailbox *box, uint64_t *position) {
    for (;;) {
        uint64_t at = __atomic_load_n(&box->tail, __ATOMIC_RELAXED), seen = at;
        uint64_t turn = __atomic_load_n(&box->ring[at % NI_RING].turn, __ATOMIC_ACQUIRE);
        *position = at;
        if (turn < ni_turn_free(at))
            return false;
        if (turn == ni_turn_free(at) &&
            __atomic_compare_exchange_n(&box->tail, &seen, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    }
}

/*
 * Between two looks: serve the NI, or let its server run. With thousands of threads each mailbox may be looked at. If
 * all those threads looked they would leave the server no core. So a single thread looks at a mailbox, and after a few
 * looks it sleeps, each time for twice as long.
 */
static void before_next_look(struct ni_tile *tile, uint32_t n_looks) {
    kick(tile, must_leave());
    if (n_looks > LOOKS_BEFORE_PAUSE) {
        long pause_ns = PAUSE_NS;
        for (uint32_t i = LOOKS_BEFORE_PAUSE + 1; i < n_looks && pause_ns < PAUSE_MOST_NS; i++)
            pause_ns *= 2;
        sbt_pause_ns(pause_ns);
    } else if (n_looks > 0) {
        sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
    }
}

/*
 * A full ring is the network pushing back. A single producer looks for a free slot, and the others sleep until it has
 * claimed it.
 */
static uint64_t claim_at_full_ring(struct ni_tile *tile) {
    struct ni_mailbox *box = &tile->mailbox;
    uint64_t position;
    sbt_lock_take(&box->full);
    __atomic_store_n(&box->awaited, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; !try_claim(box, &position); i++)
        before_next_look(tile, i);
    __atomic_store_n(&box->awaited, 0, __ATOMIC_RELAXED);
    sbt_lock_drop(&box->full);
    return position;
}

/* `awaited` is relaxed: a producer that does not see it yet is before the producer that waits. */
static uint64_t claim(struct ni_tile *tile) {
    struct ni_mailbox *box = &tile->mailbox;
    uint64_t position;
    if (SBT_LIKELY(__atomic_load_n(&box->awaited, __ATOMIC_RELAXED) == 0) && SBT_LIKELY(try_claim(box, &position)))
        return position;
    return claim_at_full_ring(tile);
}

/* False: the position is the parent's, and the slot another's. The release pairs with next_in_mailbox (serve.c). */
static bool publish(struct ni_request *slot, uint64_t position) {
    uint64_t turn = ni_turn_free(position);
    return __atomic_compare_exchange_n(&slot->turn, &turn, ni_turn_full(position), false, __ATOMIC_RELEASE,
                                       __ATOMIC_RELAXED);
}

/*
 * Has the last request in a mailbox with the thread's number been served? Its turn stays full for that position until
 * then. The acquire pairs with ni_slot_free.
 */
static bool last_is_served(const struct ni_thread *t) {
    const struct ni_mailbox *box = &ni_machine.tiles[t->last_tile].mailbox;
    uint64_t last = t->last - 1;
    return t->last == 0 || __atomic_load_n(&box->ring[last % NI_RING].turn, __ATOMIC_ACQUIRE) != ni_turn_full(last);
}

static struct ni_issue push_inside(struct ni_thread *t, const struct hw_packet *packet, const void *object) {
    struct ni_tile *tile = &ni_machine.tiles[t->tile];
    struct ni_mailbox *box = &tile->mailbox;
    struct ni_request *slot;
    struct ni_issue issue;
    uint64_t position;
    bool leave = ni_service_leave(t);
    t->home = (uint16_t)hw_packet_destination(&ni_machine.layout, packet);
    if (!leave && last_is_served(t) && ni_serve_own(t, packet, object, &issue))
        return issue;
    do {
        position = claim(tile);
        slot = &box->ring[position % NI_RING];
        slot->packet = *packet;
        slot->object = object;
        issue = ni_tile_issue(tile); /* not before there is room: a full buffer keeps the core */
        slot->issued_cycles = issue.cycles;
    } while (SBT_UNLIKELY(!publish(slot, position)));
    t->last = position + 1;
    t->last_tile = t->tile;
    kick(tile, leave);
    return issue;
}

/*
 * With a time scale a call ends when the model says. A call that has an answer ends with that (await.c); another one
 * when the core has handed the request over.
 */
static void push(struct ni_thread *t, enum hw_op op, const struct hw_packet *packet, const void *object) {
    ni_go_inside(t);
    struct ni_issue issue = push_inside(t, packet, object);
    if (ni_has_answer(op))
        t->answer[ni_answer_of(op)].rest_ns = issue.rest_ns;
    ni_leave_inside(t);
    if (SBT_UNLIKELY(ni_machine.time_scale != 0) && !ni_has_answer(op))
        ni_tile_delay(&ni_machine.tiles[t->tile], issue.cycles + ni_handover_of(op), issue.rest_ns);
}

void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    if (ni_has_answer(op))
        t->posted[ni_answer_of(op)] = (uint8_t)op;
    struct hw_packet packet = hw_packet_request(&ni_machine.layout, op, id, t->tile, t->id);
    push(t, op, &packet, object);
}

void ni_post_alloc(struct ni_thread *t, enum hw_op op, uint32_t ni, uint32_t flit1, const void *object) {
    t->posted[NI_ANSWER_MAIN] = (uint8_t)op;
    struct hw_packet packet = hw_packet_alloc(&ni_machine.layout, op, ni, flit1, t->tile, t->id);
    push(t, op, &packet, object);
}

bool ni_outstanding(uint32_t number) {
    const struct ni_mailbox *box = &ni_machine.tiles[number].mailbox;
    for (uint32_t i = 0; i < NI_RING; i++)
        if (ni_turn_is_full(__atomic_load_n(&box->ring[i].turn, __ATOMIC_ACQUIRE)))
            return true;
    return false;
}

static uint64_t turn_of(const struct ni_mailbox *box, uint32_t slot) {
    return __atomic_load_n(&box->ring[slot].turn, __ATOMIC_ACQUIRE); /* pairs with ni_slot_free */
}

/*
 * The requests are those that are there at the beginning. A position that is claimed and not published need not be
 * waited for: its call has not returned. A single thread looks, and the others sleep; most of them find their requests
 * served when it has ended.
 */
void ni_fence(struct ni_thread *t, uint32_t number) {
    struct ni_tile *tile = &ni_machine.tiles[number];
    struct ni_mailbox *box = &tile->mailbox;
    uint64_t seen[NI_RING];
    bool any = false;
    for (uint32_t i = 0; i < NI_RING; i++) {
        seen[i] = turn_of(box, i);
        any |= ni_turn_is_full(seen[i]);
    }
    if (!any)
        return;
    ni_go_inside(t);
    sbt_lock_take(&box->fenced);
    for (uint32_t i = 0, n_looks = 0; i < NI_RING; i++) {
        while (ni_turn_is_full(seen[i]) && turn_of(box, i) == seen[i])
            before_next_look(tile, n_looks++);
    }
    sbt_lock_drop(&box->fenced);
    ni_leave_inside(t);
}

/* The full slot with the oldest position; NULL: none is full. The caller is the only thread. */
static struct ni_request *oldest(struct ni_mailbox *box) {
    struct ni_request *found = NULL;
    for (struct ni_request *slot = box->ring; slot < box->ring + NI_RING; slot++)
        if (ni_turn_is_full(slot->turn) && (found == NULL || slot->turn < found->turn))
            found = slot;
    return found;
}

/* The child has one thread, so nothing here needs an order. */
void ni_mailbox_fork_child(struct ni_tile *tile, void (*serve)(const struct hw_packet *)) {
    struct ni_mailbox *box = &tile->mailbox;
    for (struct ni_request *slot; (slot = oldest(box)) != NULL; slot->turn++)
        serve(&slot->packet);
    box->full = box->fenced = (struct sbt_lock){0};
    box->awaited = 0;
    box->head = box->first = box->tail;
    for (uint64_t at = box->head; at < box->head + NI_RING; at++)
        box->ring[at % NI_RING].turn = ni_turn_free(at);
}
