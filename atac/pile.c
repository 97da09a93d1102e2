/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pile.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_CAPACITY = 65536 };

/* ---- what the systems share ---- */

uint32_t pile_random(DWorkPile *pile, uint32_t n) {
    pile->random = pile->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(pile->random >> 33) % n;
}

uint32_t pile_queue_of(const DWorkPileMaster *master, uint32_t thread) {
    return master->queues + (master->system->is_global ? 0 : thread * master->queue_words);
}

/* One place more than the capacity: Cilk's thieves announce that they take a task before they read it. */
uint32_t pile_item(const DWorkPileMaster *master, uint32_t queue, uint64_t place) {
    uint32_t item = (uint32_t)(place % (master->capacity + 1));
    return queue + (item < master->capacity ? QUEUE_ITEMS + item : QUEUE_LAST_ITEM);
}

void pile_check_room(const DWorkPile *pile, uint64_t top, uint64_t bottom) {
    /* A thief of Cilk's may have announced itself beyond the bottom. */
    if (bottom > top && bottom - top >= pile->master->capacity)
        atac_fail("thread %u: more than %u tasks in a queue", pile->self, pile->master->capacity);
}

/* ---- making ---- */

DWorkPileMaster *DWorkPileMaster_new(int kind, int number_of_threads, int capacity) {
    static const struct pile_system *const systems[ATAC_N_PILES] = {[ATAC_VC_DEQUE] = &pile_vc_deque,
                                                                    [ATAC_VC_CAS] = &pile_vc_cas,
                                                                    [ATAC_GLOBAL_QUEUE] = &pile_global_queue,
                                                                    [ATAC_CILK] = &pile_cilk};
    if (kind < 0 || kind >= ATAC_N_PILES || number_of_threads < 1 || number_of_threads > ATAC_MAX_THREADS ||
        capacity < 1 || capacity > MOST_CAPACITY) {
        errno = EINVAL;
        return NULL;
    }
    if (!atac_may_make()) {
        errno = EPERM;
        return NULL;
    }
    DWorkPileMaster *master = malloc(sizeof *master);
    if (master == NULL)
        return NULL;
    *master = (DWorkPileMaster){
        .system = systems[kind], .n_threads = (uint32_t)number_of_threads, .capacity = (uint32_t)capacity};
    uint32_t lines = (master->capacity + ATAC_WORDS_OF_LINE - 1) / ATAC_WORDS_OF_LINE;
    uint32_t n_queues = master->system->is_global ? 1 : master->n_threads;
    master->queue_words = QUEUE_ITEMS + lines * ATAC_WORDS_OF_LINE;
    if (atac_machine->n_words() < PILE_WORDS + n_queues * master->queue_words)
        errno = ENOMEM;
    else if (!master->system->has_channel || (master->vc = VirtualChannel_create()) != NULL) {
        master->words = atac_machine->words(PILE_WORDS);
        master->queues = atac_machine->words(n_queues * master->queue_words);
        return master;
    }
    free(master);
    return NULL;
}

void DWorkPileMaster_delete(DWorkPileMaster *master) {
    VirtualChannel_delete(master->vc);
    free(master);
}

DWorkPile *DWorkPileMaster_generateLocalWorkPile(DWorkPileMaster *master) {
    uint32_t self = atac_self();
    if (self >= master->n_threads) {
        errno = self == ATAC_NO_THREAD ? EPERM : EINVAL;
        return NULL;
    }
    DWorkPile *pile = malloc(sizeof *pile);
    if (pile == NULL)
        return NULL;
    *pile = (DWorkPile){.master = master, .self = self};
    pile->queue = pile_queue_of(master, pile->self);
    pile->random = pile->self * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (master->vc != NULL) {
        pile->port = VirtualChannelPort_new(master->vc);
        if (pile->port == NULL) {
            free(pile);
            return NULL;
        }
        DWorkPile_update_filter(pile);
    }
    return pile;
}

void DWorkPile_delete(DWorkPile *pile) {
    if (pile->port != NULL)
        VirtualChannelPort_delete(pile->port);
    free(pile);
}

/* ---- tasks ---- */

/* False, with EPERM: the calling thread is none of a run. */
static bool is_own(const DWorkPile *pile) {
    uint32_t self = atac_self();
    if (self == ATAC_NO_THREAD)
        errno = EPERM;
    else if (self != pile->self)
        atac_fail("thread %u uses the pile of thread %u", self, pile->self);
    return self != ATAC_NO_THREAD;
}

void DWorkPile_put(DWorkPile *pile, IWorkTask *task_to_push) {
    if (!is_own(pile))
        return;
    if (task_to_push == NULL)
        atac_fail("thread %u puts no task", pile->self);
    /* Before the task is in a queue: a thief may have run it, and settled that, before this thread gets again. */
    atac_machine->fetch_add(pile->master->words + PILE_OPEN, 1);
    pile->master->system->put(pile, (uintptr_t)task_to_push);
}

/*
 * The task that this thread got before has been run; or it gets for the first time. OPEN lacks the threads' first
 * tokens: words are 0 at first. True: all tasks have been run.
 */
static bool settle(DWorkPile *pile) {
    uint64_t before = atac_machine->fetch_add(pile->master->words + PILE_OPEN, (uint64_t)-1);
    return before - 1 + pile->master->n_threads == 0;
}

IWorkTask *DWorkPile_get(DWorkPile *pile) {
    const struct pile_system *system = pile->master->system;
    if (!is_own(pile) || pile->has_finished)
        return NULL;
    if (settle(pile)) {
        DWorkPile_finish(pile, (int)pile->master->n_threads);
        return NULL;
    }
    uint64_t task = system->get(pile);
    if (task == 0)
        task = system->steal(pile);
    else if (system->has_channel)
        pile_vc_ask_early(pile);
    pile->has_finished = task == 0;
    return (IWorkTask *)(uintptr_t)task;
}

void DWorkPile_process_pending_request(DWorkPile *pile) {
    if (is_own(pile) && pile->master->system->has_channel)
        pile_vc_process(pile);
}

void DWorkPile_update_filter(DWorkPile *pile) {
    if (is_own(pile) && pile->master->system->has_channel)
        pile_vc_update_filter(pile);
}

void DWorkPile_finish(DWorkPile *pile, int num_threads) {
    if (!is_own(pile))
        return;
    (void)num_threads; /* the thesis's parameter: a broadcast needs no number */
    pile->has_finished = true;
    atac_machine->store(pile->master->words + PILE_DONE, 1);
    if (pile->master->system->has_channel)
        pile_vc_finish(pile);
}
