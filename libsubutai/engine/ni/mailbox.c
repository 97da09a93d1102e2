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

static void help(struct ni_thread *t, struct ni_tile *tile) {
    ni_go_inside(t);
    kick(tile, must_leave());
    ni_leave_inside(t);
}

/*
 * The next slot, when it is free; under the mailbox's lock. A full ring is the network pushing back: serve the NI, or
 * let its server run. The acquire pairs with the release of a server that has set the slot free.
 *
 * With thousands of threads the rings of all tiles may be full. If the threads that wait for a slot looked again all
 * the time they would leave the service thread no core. So after a few looks they sleep, each time for twice as long.
 */
static struct ni_request *free_slot(struct ni_tile *tile) {
    struct ni_request *slot = &tile->mailbox.ring[tile->mailbox.tail % NI_RING];
    long pause_ns = PAUSE_NS;
    for (uint32_t i = 0; __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE; i++) {
        kick(tile, must_leave());
        if (i > LOOKS_BEFORE_PAUSE) {
            sbt_pause_ns(pause_ns);
            pause_ns = pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : pause_ns;
        } else if (i > 0) {
            sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
        }
    }
    return slot;
}

/* `n_pushed` is relaxed: it is only counted. */
static struct ni_issue push_inside(struct ni_thread *t, const struct hw_packet *packet, const void *object) {
    struct ni_tile *tile = &ni_machine.tiles[t->tile];
    struct ni_mailbox *box = &tile->mailbox;
    struct ni_issue issue;
    bool leave = ni_service_leave(t);
    t->home = (uint16_t)hw_packet_destination(&ni_machine.layout, packet);
    if (!leave && (t->last == NULL || __atomic_load_n(&t->last->state, __ATOMIC_ACQUIRE) == NI_SLOT_FREE) &&
        ni_serve_own(t, packet, object, &issue))
        return issue;
    sbt_lock_take(&box->lock);
    struct ni_request *slot = free_slot(tile);
    slot->packet = *packet;
    slot->object = object;
    issue = ni_tile_issue(tile);
    slot->issued_cycles = issue.cycles;
    box->tail++;
    t->last = slot;
    __atomic_store_n(&box->n_pushed, box->n_pushed + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, NI_SLOT_FULL, __ATOMIC_RELEASE); /* pairs with next_in_mailbox */
    sbt_lock_drop(&box->lock);
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
        ni_tile_delay(&ni_machine.tiles[t->tile], issue.cycles + ni_machine.config.timing.handover_cycles,
                      issue.rest_ns);
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
        if (__atomic_load_n(&box->ring[i].state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE)
            return true;
    return false;
}

void ni_fence(struct ni_thread *t, uint32_t number) {
    struct ni_tile *tile = &ni_machine.tiles[number];
    struct ni_mailbox *box = &tile->mailbox;
    for (uint32_t i = 0; i < NI_RING; i++) {
        /* A slot was served if it is free, or if it holds a later request: then the server has passed it since. */
        uint32_t *state = &box->ring[i].state, head = __atomic_load_n(&box->head, __ATOMIC_ACQUIRE);
        while (__atomic_load_n(state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE &&
               __atomic_load_n(&box->head, __ATOMIC_ACQUIRE) - head <= NI_RING) {
            help(t, tile);
            sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
        }
    }
}
