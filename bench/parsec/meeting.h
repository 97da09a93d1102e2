/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The three barriers that streamcluster can meet in, behind one name. They put very different loads on a pthread
 * implementation:
 *   pthread  one pthread_barrier_t;
 *   cond     a two-phase barrier on one mutex and one condition variable: a burst of waiters for one mutex per round;
 *   spin     the same, but a thread first reads the phase in a loop and then takes the mutex by trylock, over and over.
 *            This is how PARSEC's own barrier behaves, and what makes it so slow with more threads than cores.
 */
#ifndef MEETING_H
#define MEETING_H

#include <pthread.h>
#include <stdatomic.h>

enum meeting_kind { MEETING_PTHREAD, MEETING_COND, MEETING_SPIN, N_MEETING_KINDS };
extern const char *const meeting_names[N_MEETING_KINDS];

struct meeting {
    enum meeting_kind kind;
    pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    pthread_cond_t phase_changed;
    unsigned n_threads, n_inside; /* n_inside is protected by mutex */
    atomic_int phase;             /* written under mutex; spin reads it without */
};

void meeting_init(struct meeting *m, enum meeting_kind kind, unsigned n_threads);
void meeting_destroy(struct meeting *m);

/* Returns when all threads of this round have called it. Orders memory like pthread_barrier_wait. */
void meeting_wait(struct meeting *m);

/* Ends the program with status 1 if `error` is not 0. */
void must(int error, const char *call);

#endif
