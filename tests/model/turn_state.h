/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of the walk of the turn. The pure turn and LBDR's budgets are large, so a state holds what a few threads
 * use of them.
 */
#ifndef TURN_STATE_H
#define TURN_STATE_H

#include "engine/det/lbdr.h"

#define MAX_THREADS 4
#define MAX_OPS 48
#define MUTEX 8
#define CONDITION 2592 /* in the mutex's queue */
#define BARRIER 40     /* a soft one of BARRIER_THREADS, or one of all threads; its queue is its own */
#define TURN_KEYS 3
#define SUPPLEMENTS 12

struct state {
    struct {
        uint32_t holder, n_runnable, n_back, n_soft;
        uint64_t now, kept_ns, next_due, random, runnable;
        uint32_t first[TURN_KEYS], last[TURN_KEYS]; /* their queues */
        struct turn_thread thread[MAX_THREADS];
        uint8_t offer[MAX_THREADS], padding[4];
    } turn;
    struct {
        struct lbdr_thread thread[MAX_THREADS];
        struct {
            uint32_t is_used, hint;
            uint64_t stages, weight, budget, active, work[MAX_THREADS];
        } section[MAX_THREADS];
        uint64_t supplement[SUPPLEMENTS]; /* plus 1; 0: there is none. At the places in `supplements` */
    } lbdr;
    uint32_t left[MAX_THREADS];   /* turns of others until its section is over */
    uint8_t at[MAX_THREADS];      /* place in the script */
    uint8_t arrived[MAX_THREADS]; /* 1: it has computed, and asks for the turn; 2: and has offered its operation */
    uint8_t passes[MAX_THREADS];  /* 1: it has passed the turn, and is about to look for an offer */
    uint8_t n_taken_back;         /* offers */
    uint8_t held, n_ops;
    uint8_t schedule[MAX_OPS];    /* thread << 4 | operation */
    uint8_t waits[MAX_THREADS];   /* 1: it has blocked, and made no operation since */
    uint8_t is_away[MAX_THREADS]; /* 1: a handler runs in its place */
    uint8_t n_interrupts;
    uint8_t padding[8];
};
_Static_assert(sizeof(struct state) % 8 == 0, "no hidden padding");

/* What the pure functions work on. */
extern struct turn turn;
extern struct lbdr lbdr;

/* For a walk with so many threads: neither has begun. */
void state_begin(int n_threads);
/* Between a state and these. */
void state_load(const struct state *s);
void state_save(struct state *s);
/* After lbdr_start: there may be a supplement that no path has had before. False: there is no room for it. */
bool state_find_supplements(void);

#endif
