/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/mailbox.h"

#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/thread.h"
#include "os/futex.h"
#include "wait/yield_gate.h"

#define LOOKS_BEFORE_PAUSE 4  /* at a full ring, */
#define PAUSE_NS 50000        /* first pause, */
#define PAUSE_MOST_NS 1000000 /* and a longest one: a ring is served in less */

/* Make sure that what has been handed in is served. */
static void kick(struct ni_tile *tile) {
    if (ni_service_serves(tile)) {
        ni_service_wake(tile);
        if (ni_service_runs())
            return;
        /* the service has just stopped, and may have left what came too late for it */
    }
    ni_serve(tile);
}

static void help(struct ni_thread *t, struct ni_tile *tile) {
    ni_go_inside(t);
    kick(tile);
    ni_leave_inside(t);
}

/*
 * Claim a position (ring.h says how). A full ring is the network pushing back: serve the NI, or let its server run. The
 * acquire pairs with ni_slot_free. The tail is relaxed: it orders nothing but the claims, and the turn decides.
 *
 * With thousands of threads the rings of all tiles may be full. If the threads that wait for a slot looked again all
 * the time they would leave the service thread no core. So after a few looks they sleep, each time for twice as long.
 */
static uint64_t claim(struct ni_thread *t, struct ni_tile *tile) {
    struct ni_mailbox *box = &tile->mailbox;
    long pause_ns = PAUSE_NS;
    for (uint32_t i = 0;;) {
        uint64_t at = __atomic_load_n(&box->tail, __ATOMIC_RELAXED), tail = at;
        t->claim = at + 1;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        uint64_t turn = __atomic_load_n(&box->ring[at % NI_RING].turn, __ATOMIC_ACQUIRE);
        if (turn >= ni_turn_free(at)) {
            if (__atomic_compare_exchange_n(&box->tail, &tail, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
                turn == ni_turn_free(at))
                return at;
            continue;
        }
        kick(tile);
        if (i > LOOKS_BEFORE_PAUSE) {
            sbt_pause_ns(pause_ns);
            pause_ns = pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : pause_ns;
        } else if (i > 0) {
            sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
        }
        i++;
    }
}

/* Has the thread's last request in its mailbox been served? The acquire pairs with ni_slot_free. */
static bool last_is_served(const struct ni_thread *t, const struct ni_mailbox *box) {
    return t->last == 0 ||
           __atomic_load_n(&box->ring[(t->last - 1) % NI_RING].turn, __ATOMIC_ACQUIRE) > ni_turn_free(t->last - 1) + 1;
}

static void push(struct ni_thread *t, const struct hw_packet *packet, const void *object) {
    struct ni_tile *tile = &ni_machine.tiles[t->tile];
    struct ni_mailbox *box = &tile->mailbox;
    ni_go_inside(t);
    if (!ni_service_serves(tile) && last_is_served(t, box) && ni_serve_own(t, packet, object)) {
        ni_leave_inside(t);
        return;
    }
    uint64_t at = claim(t, tile);
    struct ni_request *slot = &box->ring[at % NI_RING];
    slot->packet = *packet;
    slot->object = object;
    slot->issued_cycles = ni_now_cycles();
    t->last = at + 1;
    __atomic_store_n(&slot->turn, ni_turn_free(at) + 1, __ATOMIC_RELEASE); /* pairs with next_in_mailbox */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->claim = 0;
    kick(tile);
    ni_leave_inside(t);
}

void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    if (ni_has_answer(op))
        t->posted[op == HW_OP_WITHDRAW ? NI_ANSWER_WITHDRAW : NI_ANSWER_MAIN] = (uint8_t)op;
    struct hw_packet packet = hw_packet_request(&ni_machine.layout, op, id, t->tile, t->id);
    push(t, &packet, object);
}

void ni_post_alloc(struct ni_thread *t, enum hw_op op, uint32_t ni, uint32_t flit1, const void *object) {
    t->posted[NI_ANSWER_MAIN] = (uint8_t)op;
    struct hw_packet packet = hw_packet_alloc(&ni_machine.layout, op, ni, flit1, t->tile, t->id);
    push(t, &packet, object);
}

bool ni_outstanding(uint32_t number) {
    const struct ni_mailbox *box = &ni_machine.tiles[number].mailbox;
    for (uint32_t i = 0; i < NI_RING; i++)
        if (ni_turn_is_full(__atomic_load_n(&box->ring[i].turn, __ATOMIC_ACQUIRE)))
            return true;
    return false;
}

/* A position that is claimed and not published need not be waited for: its call has not returned. */
void ni_fence(struct ni_thread *t, uint32_t number) {
    struct ni_tile *tile = &ni_machine.tiles[number];
    for (uint32_t i = 0; i < NI_RING; i++) {
        const uint64_t *turn = &tile->mailbox.ring[i].turn;
        uint64_t seen = __atomic_load_n(turn, __ATOMIC_ACQUIRE);
        while (ni_turn_is_full(seen) && __atomic_load_n(turn, __ATOMIC_ACQUIRE) == seen) {
            help(t, tile);
            sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
        }
    }
}
