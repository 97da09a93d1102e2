/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The base lines of section 6.2: one queue with one lock; and Cilk's (M. Frigo, C. E. Leiserson, K. H. Randall, The
 * Implementation of the Cilk-5 Multithreaded Language, PLDI 1998, section 5): the owner takes the lock only if a thief
 * may want the same task.
 */
#include "pile.h"

enum { LOOK_AGAIN = 100 }; /* cycles between two looks at an empty queue */

static bool done(const DWorkPile *pile) {
    return atac_machine->load(pile->master->words + PILE_DONE) != 0;
}

/* ---- one queue ---- */

static uint64_t take_top(const DWorkPile *pile) {
    uint64_t top = atac_machine->load(pile->queue + QUEUE_TOP), task = 0;
    if (top < atac_machine->load(pile->queue + QUEUE_BOTTOM)) {
        task = atac_machine->load(pile_item(pile->master, pile->queue, top));
        atac_machine->store(pile->queue + QUEUE_TOP, top + 1);
    }
    return task;
}

static uint64_t global_get(DWorkPile *pile) {
    atac_mutex_lock(pile->queue + QUEUE_LOCK);
    uint64_t task = take_top(pile);
    atac_mutex_unlock(pile->queue + QUEUE_LOCK);
    return task;
}

static uint64_t global_steal(DWorkPile *pile) {
    while (!done(pile)) {
        uint64_t task = 0;
        if (atac_machine->load(pile->queue + QUEUE_TOP) != atac_machine->load(pile->queue + QUEUE_BOTTOM))
            task = global_get(pile);
        if (task != 0)
            return task;
        atac_machine->compute(LOOK_AGAIN);
    }
    return 0;
}

const struct pile_system pile_global_queue = {
    .is_global = true, .put = pile_deque_put, .get = global_get, .steal = global_steal};

/* ---- Cilk ---- */

static void cilk_put(DWorkPile *pile, uint64_t task) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    pile_check_room(pile, atac_machine->load(pile->queue + QUEUE_TOP), bottom);
    atac_machine->store(pile_item(pile->master, pile->queue, bottom), task);
    atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom + 1);
}

static uint64_t cilk_get(DWorkPile *pile) {
    uint64_t bottom = atac_machine->load(pile->queue + QUEUE_BOTTOM);
    if (bottom == 0)
        return 0;
    atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom - 1);
    if (atac_machine->load(pile->queue + QUEUE_TOP) <= bottom - 1)
        return atac_machine->load(pile_item(pile->master, pile->queue, bottom - 1));
    /* A thief may be about to take it: the lock decides. */
    atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom);
    atac_mutex_lock(pile->queue + QUEUE_LOCK);
    bool there = atac_machine->load(pile->queue + QUEUE_TOP) <= bottom - 1;
    if (there)
        atac_machine->store(pile->queue + QUEUE_BOTTOM, bottom - 1);
    atac_mutex_unlock(pile->queue + QUEUE_LOCK);
    return there ? atac_machine->load(pile_item(pile->master, pile->queue, bottom - 1)) : 0;
}

static uint64_t rob(DWorkPile *pile, uint32_t queue) {
    uint64_t task = 0;
    if (atac_machine->load(queue + QUEUE_TOP) >= atac_machine->load(queue + QUEUE_BOTTOM))
        return 0;
    atac_mutex_lock(queue + QUEUE_LOCK);
    uint64_t top = atac_machine->load(queue + QUEUE_TOP);
    atac_machine->store(queue + QUEUE_TOP, top + 1); /* announced: the owner sees it, or this thread sees the owner's */
    if (top + 1 <= atac_machine->load(queue + QUEUE_BOTTOM))
        task = atac_machine->load(pile_item(pile->master, queue, top));
    else
        atac_machine->store(queue + QUEUE_TOP, top);
    atac_mutex_unlock(queue + QUEUE_LOCK);
    return task;
}

static uint64_t cilk_steal(DWorkPile *pile) {
    while (!done(pile)) {
        uint32_t victim = pile_random(pile, pile->master->n_threads);
        uint64_t task = victim != pile->self ? rob(pile, pile_queue_of(pile->master, victim)) : 0;
        if (task != 0)
            return task;
        atac_machine->compute(1);
    }
    return 0;
}

const struct pile_system pile_cilk = {.put = cilk_put, .get = cilk_get, .steal = cilk_steal};
