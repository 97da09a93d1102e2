/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of work stealing. A system is a struct of functions; pile.c has what they share: which tasks are open, and the
 * end.
 *
 * Shared words. OPEN: a token for each thread that has not got yet, for each task that was put and has not been run. A
 * task is counted before it is in a queue, and settled when the thread that has run it gets again. The thread that
 * brings it to 0 is the last: no thread runs a task that could put more. DONE is 1 then.
 *
 * A queue has a line of LOCK, TOP, BOTTOM and an item, and its other items: the tasks, 0 for none. TOP <= BOTTOM;
 * places are counted on and on, modulo one more than the capacity. The owner puts and gets at the bottom.
 */
#ifndef ATAC_PILE_H
#define ATAC_PILE_H

#include <stdint.h>

#include "machine.h"
#include "mutex.h"
#include "port.h"

enum { PILE_OPEN, PILE_DONE = ATAC_WORDS_OF_LINE, PILE_WORDS = 2 * ATAC_WORDS_OF_LINE };
enum { QUEUE_LOCK, QUEUE_TOP, QUEUE_BOTTOM, QUEUE_LAST_ITEM, QUEUE_ITEMS = ATAC_WORDS_OF_LINE };

/* The data of an offer. With a lock: how many tasks, of which thread. With compare-and-swap: their words. */
struct pile_offer {
    uint32_t thief, victim, n;
    uint32_t words[PILE_MAX_OFFER];
    uint64_t tasks[PILE_MAX_OFFER];
};

struct pile_system {
    bool has_channel, is_global;
    void (*put)(DWorkPile *pile, uint64_t task);
    uint64_t (*get)(DWorkPile *pile); /* 0: the own queue is empty */
    /* A task of another's queue; more of them may have come into the own one. 0: all have been run. */
    uint64_t (*steal)(DWorkPile *pile);
    uint32_t (*size)(DWorkPile *pile);
    /* With a channel: n tasks for a thief; and the other side: take them. */
    void (*offer)(DWorkPile *pile, struct pile_offer *offer);
    uint64_t (*accept)(DWorkPile *pile, const struct pile_offer *offer);
};
extern const struct pile_system pile_vc_deque, pile_vc_cas, pile_global_queue, pile_cilk;

struct DWorkPileMaster {
    const struct pile_system *system;
    VirtualChannel *vc;
    uint32_t n_threads, capacity;
    uint32_t words, queues; /* the first of them; queues are queue_words apart */
    uint32_t queue_words;
};

struct DWorkPile {
    DWorkPileMaster *master;
    VirtualChannelPort *port;
    uint32_t self, queue; /* the first word of the own queue */
    bool has_finished;
    uint64_t random;
    /* With a channel: */
    uint32_t filter;          /* the signature that is set */
    uint64_t requested_until; /* a request of this thread may still be answered */
    uint64_t assigner;        /* with compare-and-swap: the place that is offered next */
};

/* From 0 to n - 1. */
uint32_t pile_random(DWorkPile *pile, uint32_t n);
/* The first word of a thread's queue, and the word of a place in a queue. */
uint32_t pile_queue_of(const DWorkPileMaster *master, uint32_t thread);
uint32_t pile_item(const DWorkPileMaster *master, uint32_t queue, uint64_t place);
/* At the bottom of the pile's queue, under its lock. */
void pile_deque_put(DWorkPile *pile, uint64_t task);
/* The run ends if the queue is full. */
void pile_check_room(const DWorkPile *pile, uint64_t top, uint64_t bottom);

/* pile_vc.c: requests and offers. */
void pile_vc_process(DWorkPile *pile);
void pile_vc_update_filter(DWorkPile *pile);
void pile_vc_finish(DWorkPile *pile);
uint64_t pile_vc_steal(DWorkPile *pile);
/* The own queue is nearly empty: ask for more before it is. */
void pile_vc_ask_early(DWorkPile *pile);

#endif
