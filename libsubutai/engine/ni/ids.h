/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* IDs of primitives, in the objects' words. */
#ifndef SBT_ENGINE_NI_IDS_H
#define SBT_ENGINE_NI_IDS_H

#include <pthread.h>

#include "engine/ni/record.h"
#include "fsm.h"

#define NI_SOFTWARE 1u /* in place of an ID: the software engine serves this object for the rest of its life */

static inline bool ni_is_id(uint32_t word) {
    return (word & HW_ID_IN_USE) != 0;
}

/* The words in the objects. Atomic; zero: no ID yet. Neither an ID, nor 0 or 1: a thread is allocating (ids.c). */
uint32_t *ni_mutex_word(pthread_mutex_t *m);
uint32_t *ni_cond_word(pthread_cond_t *c);
uint32_t *ni_barrier_word(pthread_barrier_t *b);

/*
 * Give the object a primitive, if it has none, or if its ID is `stale` (0: no ID is). The result is the word as it is
 * now: an ID or NI_SOFTWARE, written by another thread if that was quicker. Waits for the hardware's answers, and for
 * a thread that allocates for the same object.
 */
uint32_t ni_obtain(struct ni_thread *t, uint32_t *word, uint32_t stale, enum hw_op op, uint32_t flit1);

/*
 * The same for an object that is being initialised: its word is zero and no other thread uses it. If all elements are
 * taken the word stays zero.
 */
void ni_obtain_early(struct ni_thread *t, uint32_t *word, enum hw_op op, uint32_t flit1);

/* The word, when no thread is allocating for it: an ID or NI_SOFTWARE; any other value means that it has no ID. */
uint32_t ni_settled(const struct ni_thread *t, const uint32_t *word);

/* The ID of the condition, which lives with this mutex. 0: there is none, and this wait must be served in software. */
uint32_t ni_obtain_condition(struct ni_thread *t, uint32_t *word, uint32_t mutex);

#endif
