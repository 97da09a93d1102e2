/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two files of the walk of serving share: ni_walk.c has the program's threads and the scenarios, ni_below.c
 * what the code under test stands on.
 */
#ifndef NI_WALK_H
#define NI_WALK_H

#define NI_SCHED_ITSELF
#include "ni_sched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/ni/eager.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/service_thread.h"
#include "engine/ni/settle.h"
#include "engine/ni/step.h"
#include "engine/ni/thread.h"
#include "os/lock.h"
#include "os/real.h"
#include "wait/park.h"

enum { MAX_PROGRAM = 3, N_TILES = 4, N_CONTROL = 4, WAY_CYCLES = 100, GAP_CYCLES = 50 };

/*
 * A thread's script, after the number of its tile:
 *   uN  hand in a request to NI N
 *   aN  the same, and wait until it has been served
 *   oN  as uN, of a thread that has found its service thread late, and serves itself if it can
 *   wN  wait until something of thread N has been served, and all that it has handed in
 *   lN  the thread has found its service thread late, N times in a row
 *   sN  serve NI N, as a thread does that has held its lock
 *   fN  wait until what the mailbox of tile N holds has been served
 *   tN  end, and leave the record to a new thread on tile N, which follows the rest
 *   d   no longer be counted among the program's threads, as in the destructors of thread-specific data
 *   y   let the others go on
 *   b   have service threads begin, if there are to be any
 * The last thread that is counted ends the service threads. These are signal handlers of the first thread, and are not
 * counted:
 *   H   interrupts it where it is not inside the engine, and follows the rest in the meantime
 *   F   could not be deferred, so it interrupts it anywhere, and forks. What follows is the child: there are the first
 *       thread and the handler
 *   G   the same at a moment when no NI is served
 */
struct scenario {
    const char *name;
    const char *script[MAX_PROGRAM];
    uint32_t n_preemptions;
    uint32_t n_services;  /* 0: inline */
    uint32_t n_creatable; /* so many threads can be created, then no more */
    bool timed;           /* with a time scale */
    bool gaps;            /* the packets behind the first one find gaps before it, and are due at once */
    uint32_t n_cores;     /* 0: for all threads */
    uint32_t starved;     /* bit n: service thread n is awake, and gets no core until the program ends */
};

/* Of each thread of the program. */
struct ni_walk_thread {
    bool is_counted;
    bool is_handing_in;
    bool leaves_all;                /* what it does now it leaves to the service threads */
    uint64_t due_at[N_TILES];       /* when the last of its packets to an NI reaches that */
    uint64_t turns_before[NI_RING]; /* of the home's mailbox, when it handed its request in */
    uint64_t last_before;           /* its record's `last` then */
    uint64_t claimed;               /* the position that it claimed, plus 1; 0: none, or not yet */
    uint32_t comes_after;           /* at a full ring: the thread that looked for a slot when it came, plus 1 */
};

extern const struct scenario *scenario;
extern struct ni_tile tiles[N_TILES];
extern struct ni_thread records[MAX_PROGRAM];
extern uint32_t n_left;    /* threads of the program that have not ended */
extern uint32_t n_created; /* service threads */
extern uint32_t created[NI_MAX_SERVICES];
extern uint32_t n_parents;  /* so many of them are the parent's; a forked child does not have them */
extern uint32_t fed;        /* 1: starved service threads get a core */
extern uint32_t n_sent;     /* packets */
extern uint64_t now_cycles; /* model time: passes only while a thread waits for it */
extern uint32_t handed_in[MAX_PROGRAM], n_stepped[MAX_PROGRAM], n_served[MAX_PROGRAM];
extern uint32_t n_before[MAX_PROGRAM];            /* requests that the record's earlier thread has handed in */
extern uint32_t last_at[MAX_PROGRAM][2][N_TILES]; /* of each thread: number of its last request that was served there */
extern bool blocked;                              /* the signals of the thread that has service threads begin or end */
extern bool has_forked;
extern bool doubled;            /* the child has served the request that the first thread was serving when it forked */
extern uint32_t looks[N_TILES]; /* the thread that looks for a slot of a tile, plus 1 */
extern struct ni_walk_thread program[MAX_PROGRAM];

/* ---- ni_below.c ---- */

/* The state machine has the request. */
void ni_walk_note(const struct ni_tile *tile, const struct hw_packet *packet);
/* Its thread, and the others, may learn of it. */
void ni_walk_tell(const struct hw_packet *packet, struct ni_work *work);
int ni_walk_create(pthread_t *id, const pthread_attr_t *attr, void *(*routine)(void *), void *argument);
int ni_walk_mask(int how, const sigset_t *set, sigset_t *old);
/* As sbt_park and the wait for an answer do it. */
void ni_walk_wait_uncounted(const uint32_t *word, uint32_t expected);

#endif
