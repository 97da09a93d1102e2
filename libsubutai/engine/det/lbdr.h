/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * LBDR's budgets (Chen and others: A Load-Balanced Deterministic Runtime for Pipeline Parallelism, IEICE 2015, Fig. 4).
 * A thread that gives the turn up is passed over for as many turns of the other threads: its budget. Pure, as turn.h:
 * the same calls give the same budgets. The caller serializes the calls.
 *
 * The paper's lines, and what stands for them here:
 *
 *  - 5 to 9: the active threads are the runnable ones, with the thread itself. A thread's clock counts its turns: an
 *    operation that has waited has taken two, but for a barrier. Its stage is its start routine.
 *  - 10, 11: a budget counts thousandths of a turn. In whole turns the supplement of a budget below ten would never
 *    grow, since line 17 adds a tenth.
 *  - 15: the paper counts instructions. Here each call site has a weight, which stands for what a thread computes after
 *    an operation there. A budget is small if the section weighs more than what any other active thread has done
 *    meanwhile. It is not small if the section was over early, because no thread was runnable: a larger one would not
 *    have let more operations happen.
 */
#ifndef SBT_ENGINE_DET_LBDR_H
#define SBT_ENGINE_DET_LBDR_H

#include "engine/det/turn.h"

#define LBDR_UNIT 1000        /* of a budget: a turn */
#define LBDR_MOST 1000000000  /* of a budget and of a supplement: a million turns */
#define LBDR_STAGES 64        /* the last one is that of all further start routines */
#define LBDR_SECTIONS 64      /* that are measured at a time; the budgets of others are never small */
#define LBDR_SUPPLEMENTS 4096 /* a power of 2; further ones stay 0 */

/* All-zero, then lbdr_begin. */
struct lbdr {
    uint32_t n_stages;
    uintptr_t stage[LBDR_STAGES]; /* start routines; the first is for threads without one: the main thread */
    struct lbdr_thread {
        uint64_t clock;   /* turns */
        uint64_t work;    /* weights of its operations; never less than before, also if the number is used again */
        uint8_t stage;    /* index */
        uint8_t measured; /* plus 1: index of its section; 0: none */
    } thread[TURN_THREADS];
    struct lbdr_section {
        bool is_used;
        uint32_t hint;
        uint64_t stages, weight, budget;
        uint64_t active[TURN_THREADS / 64]; /* at the start, without the thread itself */
        uint64_t work[TURN_THREADS];        /* of those, at the start */
    } section[LBDR_SECTIONS];
    struct lbdr_supplement {
        uint32_t hint; /* plus 1; 0: free */
        uint64_t stages, amount;
    } supplement[LBDR_SUPPLEMENTS];
};

/* The main thread has number 0. */
void lbdr_begin(struct lbdr *l);
/* A new thread has that number; `routine` 0: not known. */
void lbdr_create(struct lbdr *l, uint32_t i, uintptr_t routine);
/* The thread has taken a turn, and computes then. */
void lbdr_count(struct lbdr *l, uint32_t i, uint64_t weight);
/*
 * SyncFreeStart: the turns of others for which thread i gives the turn up, from 1 on. Its bit is set in `runnable`.
 * `weight`: of what it computes meanwhile.
 */
uint64_t lbdr_start(struct lbdr *l, uint32_t i, uint32_t hint, uint64_t weight, const struct turn *t);
/* SyncFreeEnd; nothing if the section is not measured. False for `is_exhausted`: it was over before its budget. */
void lbdr_end(struct lbdr *l, uint32_t i, bool is_exhausted);

#endif
