/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A core's mailbox: a ring of requests with one producer at a time, which is lock-free for its consumer. On the chip a
 * core runs one thread at a time; here threads that share a tile take turns by the guard, which is held for as long
 * as it takes to write three flits. A request is handed in by one store; when nobody waits for an answer that is all.
 */
#include <errno.h>

#include "engine/ni/ni.h"
#include "wait/park.h"
#include "wait/turn.h"

/* Have it served what has been handed in. */
static void kick(struct ni_tile *tile) {
    if (ni_service_runs())
        ni_service_wake(tile);
    if (!ni_service_runs()) /* also if it has just stopped: it has left what came too late for it */
        ni_serve(tile);
}

static void help(struct ni_thread *t, struct ni_tile *tile) {
    ni_go_inside(t);
    kick(tile);
    ni_leave_inside(t);
}

/* The next slot, free. A ring that is full is the network pushing back: help, or let the server run. */
static struct ni_request *free_slot(struct ni_tile *tile) {
    struct ni_request *slot = &tile->mailbox.ring[tile->mailbox.tail % NI_RING];
    for (uint32_t i = 0; __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE; i++) {
        kick(tile);
        if (i > 0)
            sbt_turn_give_or_pause();
    }
    return slot;
}

static void push(struct ni_thread *t, const struct hw_packet *packet, const void *object) {
    struct ni_tile *tile = &ni_machine.tiles[t->tile];
    struct ni_mailbox *box = &tile->mailbox;
    ni_go_inside(t);
    if (!ni_service_runs() && (t->last == NULL || __atomic_load_n(&t->last->state, __ATOMIC_ACQUIRE) == NI_SLOT_FREE) &&
        ni_serve_own(t, packet, object)) {
        ni_leave_inside(t);
        return;
    }
    ni_take(&box->guard);
    struct ni_request *slot = free_slot(tile);
    slot->packet = *packet;
    slot->object = object;
    slot->issued_cycles = ni_now_cycles();
    box->tail++;
    t->last = slot;
    __atomic_store_n(&box->n_pushed, box->n_pushed + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, NI_SLOT_FULL, __ATOMIC_RELEASE); /* pairs with the server's acquire */
    ni_release(&box->guard);
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
        if (__atomic_load_n(&box->ring[i].state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE)
            return true;
    return false;
}

void ni_fence(struct ni_thread *t, uint32_t number) {
    struct ni_tile *tile = &ni_machine.tiles[number];
    struct ni_mailbox *box = &tile->mailbox;
    for (uint32_t i = 0; i < NI_RING; i++) {
        /* Over when it is free, or full of something later: then a server has come round since. */
        uint32_t *state = &box->ring[i].state, head = __atomic_load_n(&box->head, __ATOMIC_ACQUIRE);
        while (__atomic_load_n(state, __ATOMIC_ACQUIRE) != NI_SLOT_FREE &&
               __atomic_load_n(&box->head, __ATOMIC_ACQUIRE) - head <= NI_RING) {
            help(t, tile);
            sbt_turn_give_or_pause();
        }
    }
}

static struct sbt_adapt soon; /* waits for the hardware alone; all threads' together */

static void got(struct ni_thread *t, int which, struct hw_message *message) {
    *message = hw_packet_decode(&ni_machine.layout, &t->answer[which].packet);
    t->posted[which] = 0;
    if (which == NI_ANSWER_WITHDRAW && message->op == HW_OP_WITHDRAWN)
        t->posted[NI_ANSWER_MAIN] = 0;
    uint64_t at = t->answer[which].at_cycles;
    if (which == NI_ANSWER_MAIN) /* a withdrawal has been answered before this: nobody else writes it now */
        __atomic_store_n(&t->state, 0, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&t->state, ~(NI_ANSWERED(which) | NI_PARKED), __ATOMIC_RELAXED);
    if (ni_machine.time_scale != 0)
        ni_wait_until(at);
}

/*
 * Where a core runs both sides at once, an answer comes within a microsecond or so: worth a look at every turn. The
 * line that is looked at is the thread's own, which only its answer takes away.
 */
#define EAGER_TURNS 100

static bool eagerly(struct ni_thread *t, int which) {
    if (!ni_service_runs())
        return (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(which)) != 0;
    bool found = false;
    if (!ni_eager_pays(&t->eager))
        return false;
    for (uint32_t i = 0; i < EAGER_TURNS && !found; i++) {
        found = (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(which)) != 0;
        sbt_cpu_relax();
    }
    ni_eager_done(&t->eager, found);
    return found;
}

int ni_await(struct ni_thread *t, int which, const struct sbt_deadline *deadline, struct sbt_adapt *memory,
             bool cancelable, struct hw_message *message) {
    uint32_t state;
    if (eagerly(t, which)) {
        got(t, which, message);
        return 0;
    }
    if (memory == NULL)
        memory = &soon;
    struct sbt_active active;
    sbt_active_begin(&active, memory);
    for (;;) {
        state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE); /* pairs with the server's release */
        if ((state & NI_ANSWERED(which)) != 0)
            break;
        if (sbt_active_step(&active))
            continue;
        uint32_t *wake_word = sbt_waiter_word();
        __atomic_store_n(&t->wake_word, wake_word, __ATOMIC_RELAXED);
        /*
         * Release: whoever answers from here on sees by what to wake. Also where it is parked already, by a wait that
         * has timed out: that may have been another word.
         */
        if (!__atomic_compare_exchange_n(&t->state, &state, state | NI_PARKED, false, __ATOMIC_RELEASE,
                                         __ATOMIC_RELAXED))
            continue;
        int r = sbt_park_own(&t->state, state | NI_PARKED, wake_word, deadline, cancelable);
        if (r == ETIMEDOUT && (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(which)) == 0)
            return ETIMEDOUT;
    }
    sbt_active_end(&active, memory);
    got(t, which, message);
    return 0;
}

void ni_await_barrier(struct ni_thread *t, uint32_t id, struct hw_message *message) {
    uint32_t *epoch = &ni_home(id)->epochs[hw_id_index(&ni_machine.layout, id)];
    struct sbt_active active;
    if (!eagerly(t, NI_ANSWER_MAIN)) {
        sbt_active_begin(&active, &t->barriers);
        for (;;) {
            uint32_t seen = __atomic_load_n(epoch, __ATOMIC_ACQUIRE); /* before the answer: opening steps it after */
            if ((__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(NI_ANSWER_MAIN)) != 0)
                break;
            if (sbt_active_step(&active))
                continue;
            if ((seen & NI_ASLEEP) != 0 ||
                __atomic_compare_exchange_n(epoch, &seen, seen | NI_ASLEEP, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                sbt_park(epoch, seen | NI_ASLEEP, NULL);
        }
        sbt_active_end(&active, &t->barriers);
    }
    got(t, NI_ANSWER_MAIN, message);
}

struct hw_message ni_ask(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    struct hw_message message;
    ni_post(t, op, id, object);
    ni_await(t, NI_ANSWER_MAIN, NULL, NULL, false, &message);
    return message;
}

bool ni_withdraw(struct ni_thread *t, uint32_t id, struct hw_message *message) {
    struct hw_message answer;
    ni_post(t, HW_OP_WITHDRAW, id, NULL);
    ni_await(t, NI_ANSWER_WITHDRAW, NULL, NULL, false, &answer);
    if (answer.op == HW_OP_WITHDRAWN)
        return true;
    /* Gone, or its primitive is: the answer has been sent, or comes when the mutex is unlocked. */
    ni_await(t, NI_ANSWER_MAIN, NULL, message->op == HW_OP_COND_WAIT ? &t->conditions : NULL, false, message);
    return false;
}
