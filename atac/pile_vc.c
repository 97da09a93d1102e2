/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests and offers of the two systems with a channel (section 5.2, Figs. 5-3 to 5-6).
 *
 * Signatures, one bit each: a request; the end; and an offer has its thief's, one of 30. A filter lets the end and the
 * own bit pass, and requests if the thread has work to share. So a busy thread is not told of offers to others, but for
 * threads with the same bit.
 *
 * Ours: how many tasks are few and many (machine.h). Ours too: how much is offered. A victim shares evenly among itself
 * and the requests that it has read at once. A request may stay without an answer, so a thief that waits repeats it, at
 * first after patience_cycles and then twice as late each time.
 */
#include <string.h>

#include "pile.h"

enum {
    REQUEST = 1,
    FINISH = 2,
    FIRST_THIEF_BIT = 2,
    N_THIEF_BITS = 30,
    MOST_PATIENCE = 16 /* times the first one */
};

static uint32_t bit_of(uint32_t thread) {
    return UINT32_C(1) << (FIRST_THIEF_BIT + thread % N_THIEF_BITS);
}

void pile_vc_update_filter(DWorkPile *pile) {
    uint32_t n = pile->master->system->size(pile);
    uint32_t filter = FINISH | bit_of(pile->self);
    if (n >= atac_running.many ||
        (n > atac_running.few && pile_random(pile, atac_running.many - atac_running.few) < n - atac_running.few))
        filter |= REQUEST;
    if (filter != pile->filter)
        VirtualChannelPort_set_local_filter(pile->port, -1, ATAC_AND, (int)filter);
    pile->filter = filter;
}

void pile_vc_finish(DWorkPile *pile) {
    VirtualChannelPort_send_message(pile->port, 0, FINISH, FINISH);
}

/* ---- the victim's side ---- */

static void answer(DWorkPile *pile, const uint32_t *thieves, uint32_t n_thieves) {
    uint32_t few = atac_running.few;
    for (uint32_t i = 0; i < n_thieves; i++) {
        uint32_t n = pile->master->system->size(pile);
        struct pile_offer offer = {.thief = thieves[i], .victim = pile->self};
        if (n <= few)
            return;
        offer.n = n / (n_thieves - i + 1);
        offer.n = offer.n == 0 ? 1 : offer.n > n - few ? n - few : offer.n;
        offer.n = offer.n > PILE_MAX_OFFER ? PILE_MAX_OFFER : offer.n;
        pile->master->system->offer(pile, &offer);
        if (offer.n != 0)
            VirtualChannelPort_send_message_long(pile->port, (const char *)&offer, sizeof offer,
                                                 (int)bit_of(offer.thief), 0);
    }
}

/*
 * A task of an offer to this thread, the others of it into the own queue. 0: it is for another, or all are gone, or
 * this thread has so much by now that it would have to share it again.
 */
static uint64_t accept(DWorkPile *pile, const struct pile_offer *offer) {
    if (offer->thief != pile->self || pile->master->system->size(pile) >= atac_running.many)
        return 0;
    return pile->master->system->accept(pile, offer);
}

void pile_vc_process(DWorkPile *pile) {
    uint32_t thieves[ATAC_MAX_THREADS], n = 0;
    struct pile_offer offer;
    Message m;
    while (n < ATAC_MAX_THREADS &&
           VirtualChannelPort_receive_message_long(pile->port, &m, (char *)&offer, sizeof offer)) {
        if (m.signature == FINISH) {
            pile->has_finished = true;
        } else if (m.signature == REQUEST) {
            bool known = false;
            for (uint32_t i = 0; i < n; i++)
                known = known || thieves[i] == (uint32_t)m.sender;
            if (!known)
                thieves[n++] = (uint32_t)m.sender;
        } else {
            uint64_t task = accept(pile, &offer);
            if (task != 0)
                pile->master->system->put(pile, task);
        }
    }
    answer(pile, thieves, n);
}

/* ---- the thief's side ---- */

static void request(DWorkPile *pile, uint64_t patience) {
    VirtualChannelPort_send_message(pile->port, 0, REQUEST, 0);
    pile->requested_until = atac_machine->cycles() + patience;
}

void pile_vc_ask_early(DWorkPile *pile) {
    if (pile->master->system->size(pile) == 0 && atac_machine->cycles() >= pile->requested_until)
        request(pile, (uint64_t)MOST_PATIENCE * atac_running.patience_cycles);
}

uint64_t pile_vc_steal(DWorkPile *pile) {
    struct pile_offer offer;
    uint64_t patience = atac_running.patience_cycles, most = MOST_PATIENCE * patience, task;
    Message m;
    pile_vc_update_filter(pile);
    for (;; patience = patience < most ? 2 * patience : patience) {
        request(pile, patience);
        while (atac_port_wait_until(pile->port, pile->requested_until, &m, (char *)&offer, sizeof offer)) {
            if (m.signature == FINISH)
                return 0;
            if (m.signature != REQUEST && (task = accept(pile, &offer)) != 0) {
                pile_vc_process(pile); /* what other victims have offered meanwhile */
                return task;
            }
        }
    }
}
