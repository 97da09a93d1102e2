/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has this thread stayed on its core since it last asked? The kernel tells through the restartable-sequence area that
 * glibc registers for each thread (rseq(2)): a pointer to a sequence that the thread is not in is cleared when the
 * thread comes back to its core, or gets a signal. So an unchanged mark says that wall clock was CPU time, for a load
 * and a compare instead of a system call; a changed one says nothing. Sequences of the program's own take our mark
 * away, never the other way round: the kernel ends them before a handler runs, and we are called in none.
 */
#ifndef SBT_OBSERVE_STAY_H
#define SBT_OBSERVE_STAY_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t rec_stay_mark;             /* what a thread puts there; not 0 */
extern volatile uint64_t rec_stay_nowhere; /* 0: for threads whom the kernel does not tell */

/* Is this kernel one that clears marks? Before the first `place`. Sleeps a moment. */
void rec_stay_start(void);
/* The calling thread's place for the mark, or rec_stay_nowhere; the same as long as it lives. */
volatile uint64_t *rec_stay_place(void);

static inline void rec_stay_arm(volatile uint64_t *place) {
    if (place != &rec_stay_nowhere)
        *place = rec_stay_mark;
}

/* The mark costs the kernel a tenth of a microsecond when it clears it: not for who is about to sleep. */
static inline void rec_stay_disarm(volatile uint64_t *place) {
    if (place != &rec_stay_nowhere)
        *place = 0;
}

static inline bool rec_stayed(volatile uint64_t *place) {
    return *place == rec_stay_mark;
}

#endif
