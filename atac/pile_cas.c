/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Section 5.2.2: a queue without a lock. Only the owner moves its ends. A task is taken by a compare-and-swap that
 * makes its item 0, by a thief or by the owner. The owner's assigner goes through the queue from the top to the
 * bottom (the critical region of the thesis is empty: pile_vc.c), offers each task that is still there, begins again,
 * and removes items that are 0 at the top. Items that are 0 further down are skipped by the owner's gets.
 *
 * An item of a place that has been used again has another task in it, and a thief with an old offer of that place must
 * not take it: so an offer has the task, and the compare-and-swap expects it. A task that was put back into the same
 * place is the same task, and not run yet.
 */
#include "pile.h"

static uint32_t item(const DWorkPile *pile, uint64_t place) {
    return pile_item(pile->master, pile->queue, place);
}

/* Taken items at the top go. */
static uint64_t collect(DWorkPile *pile, uint64_t bottom) {
    uint64_t top = atac_machine->load(pile->queue + QUEUE_TOP), first = top;
    while (top < bottom && atac_machine->load(item(pile, top)) == 0)
        top++;
    if (top != first)
        atac_machine->store(pile->queue + QUEUE_TOP, top);
    return top;
}

static void put(DWorkPile *pile, uint64_t task) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM), top = atac_machine->load(pile->queue + QUEUE_TOP);
    if (bottom - top >= pile->master->capacity)
        top = collect(pile, bottom);
    pile_check_room(pile, top, bottom);
    atac_machine->store(item(pile, bottom), task);
    atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom + 1);
}

static uint64_t get(DWorkPile *pile) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM), top = atac_machine->load(pile->queue + QUEUE_TOP);
    uint64_t found = 0, last = bottom;
    while (bottom > top && found == 0) {
        uint64_t task = atac_machine->load(item(pile, --bottom));
        if (task != 0 && atac_machine->compare_and_swap(item(pile, bottom), task, 0) == task)
            found = task;
    }
    if (bottom != last)
        atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom);
    return found;
}

/* Taken items count too, until they are removed. */
static uint32_t size(DWorkPile *pile) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    return (uint32_t)(bottom - collect(pile, bottom));
}

static void offer(DWorkPile *pile, struct pile_offer *offer) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM), top = collect(pile, bottom);
    uint32_t wanted = offer->n;
    offer->n = 0;
    for (uint64_t looked = top; looked < bottom && offer->n < wanted; looked++) {
        if (pile->assigner < top || pile->assigner >= bottom)
            pile->assigner = top;
        uint64_t place = pile->assigner++, task = atac_machine->load(item(pile, place));
        if (task == 0)
            continue;
        offer->words[offer->n] = item(pile, place);
        offer->tasks[offer->n++] = task;
    }
}

static uint64_t accept(DWorkPile *pile, const struct pile_offer *offer) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < offer->n; i++) {
        if (atac_machine->compare_and_swap(offer->words[i], offer->tasks[i], 0) != offer->tasks[i])
            continue;
        if (first == 0)
            first = offer->tasks[i];
        else
            put(pile, offer->tasks[i]);
    }
    return first;
}

const struct pile_system pile_vc_cas = {.has_channel = true,
                                        .put = put,
                                        .get = get,
                                        .steal = pile_vc_steal,
                                        .size = size,
                                        .offer = offer,
                                        .accept = accept};
