/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The preemption mark: has this thread stayed on its core since it last asked?
 *
 * The mark is in the restartable-sequence area that glibc registers for each thread (rseq(2)). It is a pointer to a
 * sequence in which the thread is not. The kernel clears such a pointer when the thread comes back to its core, or gets
 * a signal. So an unchanged mark says that wall clock was CPU time, for a load and a compare instead of a system call.
 * A changed mark says nothing. The program's own sequences overwrite our mark. Our mark never overwrites theirs: the
 * kernel ends a sequence before a handler runs, and no sequence calls the recorder.
 *
 * Two readers share the place. Events ask at their beginning and end, profiles at each lock and unlock. A profile that
 * has seen a cleared mark sets one of its own, by which an event still sees that the thread was away.
 */
#ifndef SBT_OBSERVE_PREEMPT_H
#define SBT_OBSERVE_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t rec_preempt_mark;             /* the mark that a thread sets; not 0 */
extern volatile uint64_t rec_preempt_nowhere; /* 0: the place of a thread if the kernel does not show its preemptions */

/* Does this kernel clear marks? Called before the first rec_preempt_place. Sleeps a moment. */
void rec_preempt_start(void);
/* The calling thread's place for the mark, which stays the same as long as the thread lives; or rec_preempt_nowhere. */
volatile uint64_t *rec_preempt_place(void);

static inline void rec_preempt_arm(volatile uint64_t *place) {
    if (place != &rec_preempt_nowhere)
        *place = rec_preempt_mark;
}

/* Clearing the mark costs the kernel a tenth of a microsecond. So a thread that is about to sleep clears it itself. */
static inline void rec_preempt_disarm(volatile uint64_t *place) {
    if (place != &rec_preempt_nowhere)
        *place = 0;
}

enum { REC_PREEMPT_AGAIN = 32 }; /* the bit in which a profile's mark differs */

static inline void rec_preempt_arm_again(volatile uint64_t *place) {
    if (place != &rec_preempt_nowhere)
        *place = rec_preempt_mark | REC_PREEMPT_AGAIN;
}

/* Is the mark an event's or a profile's? */
static inline bool rec_preempt_is_armed(const volatile uint64_t *place) {
    return (*place & ~(uint64_t)REC_PREEMPT_AGAIN) == rec_preempt_mark;
}

static inline bool rec_unpreempted(volatile uint64_t *place) {
    return *place == rec_preempt_mark;
}

#endif
