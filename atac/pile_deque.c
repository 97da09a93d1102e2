/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section 5.2.1: a queue with a lock. The owner works at the bottom, thieves at the top. */
#include "pile.h"

void pile_deque_put(DWorkPile *pile, uint64_t task) {
    atac_mutex_lock(pile->queue + QUEUE_LOCK);
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    pile_check_room(pile, atac_machine->load(pile->queue + QUEUE_TOP), bottom);
    atac_machine->store(pile_item(pile->master, pile->queue, bottom), task);
    atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom + 1);
    atac_mutex_unlock(pile->queue + QUEUE_LOCK);
}

static uint64_t get(DWorkPile *pile) {
    uint64_t task = 0;
    atac_mutex_lock(pile->queue + QUEUE_LOCK);
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    if (bottom > atac_machine->load(pile->queue + QUEUE_TOP)) {
        task = atac_machine->load(pile_item(pile->master, pile->queue, bottom - 1));
        atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom - 1);
    }
    atac_mutex_unlock(pile->queue + QUEUE_LOCK);
    return task;
}

static uint32_t size(DWorkPile *pile) {
    uint64_t top = atac_machine->load(pile->queue + QUEUE_TOP), bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    return bottom > top ? (uint32_t)(bottom - top) : 0;
}

static void offer(DWorkPile *pile, struct pile_offer *offer) {
    (void)pile; /* thieves find the tasks themselves, under the lock */
    (void)offer;
}

static uint64_t accept(DWorkPile *pile, const struct pile_offer *offer) {
    uint32_t queue = pile_queue_of(pile->master, offer->victim), n = 0;
    uint64_t tasks[PILE_MAX_OFFER];
    atac_mutex_lock(queue + QUEUE_LOCK);
    uint64_t top = atac_machine->load(queue + QUEUE_TOP), bottom = atac_machine->load(queue + QUEUE_BOTTOM);
    for (; n < offer->n && top + n < bottom; n++)
        tasks[n] = atac_machine->load(pile_item(pile->master, queue, top + n));
    if (n != 0)
        atac_machine->store(queue + QUEUE_TOP, top + n);
    atac_mutex_unlock(queue + QUEUE_LOCK);
    for (uint32_t i = 1; i < n; i++)
        pile_deque_put(pile, tasks[i]);
    return n != 0 ? tasks[0] : 0;
}

const struct pile_system pile_vc_deque = {.has_channel = true,
                                          .put = pile_deque_put,
                                          .get = get,
                                          .steal = pile_vc_steal,
                                          .size = size,
                                          .offer = offer,
                                          .accept = accept};
