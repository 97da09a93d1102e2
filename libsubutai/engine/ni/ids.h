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

/* The words in the objects. Atomic; zero: not used yet. */
uint32_t *ni_mutex_word(pthread_mutex_t *m);
uint32_t *ni_cond_word(pthread_cond_t *c);
uint32_t *ni_barrier_word(pthread_barrier_t *b);

/*
 * Give the object a new primitive. Its word was `seen`. The result is the word as it is now: an ID or NI_SOFTWARE,
 * written by another thread if that was quicker. Waits for the hardware's answers.
 */
uint32_t ni_obtain(struct ni_thread *t, uint32_t *word, uint32_t seen, enum hw_op op, uint32_t flit1);

/* The ID of the condition, which lives with this mutex. 0: there is none, and this wait must be served in software. */
uint32_t ni_obtain_condition(struct ni_thread *t, uint32_t *word, uint32_t mutex);

#endif
