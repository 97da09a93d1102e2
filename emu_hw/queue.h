/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The double-linked queues in a scratchpad, access by access as the state machine makes them.
 *
 * Putting in takes as many accesses as there is to do (5 to 10: the best and worst of Table III need both). Taking out
 * and splicing run a fixed schedule: a slot with no neighbour to update reads or writes the element's own word instead.
 * That is derived from the paper's barrier, which injects a packet "periodically at every 25 ns" up to its last waiter
 * and takes 1583 ns in all, and from the broadcast's 18m + c, which is only reached if the splice onto the queue of a
 * mutex that was free takes its full seven accesses.
 *
 * The caller has checked that the control elements are what they should be.
 */
#ifndef HW_QUEUE_H
#define HW_QUEUE_H

#include "spm.h"

/* Append a waiter. There must be a free element. 5 to 10 accesses. */
void hw_queue_put(struct hw_spm *spm, uint32_t index, uint32_t who);

/* Taking the first waiter out comes in two parts, so that its packet can leave between them. */
struct hw_first {
    uint16_t at; /* HW_NIL: nobody waits. After hw_queue_drop_first: who is first now */
    uint16_t tail;
    uint32_t who; /* after hw_queue_first_who */
};

/* R ctrl.w1 */
static inline struct hw_first hw_queue_first(struct hw_spm *spm, uint32_t index) {
    uint32_t queue = hw_spm_read(spm, hw_control_word(index, 1));
    return (struct hw_first){.at = hw_high(queue), .tail = hw_low(queue)};
}

/* R head.w1 */
static inline void hw_queue_first_who(struct hw_spm *spm, struct hw_first *first) {
    first->who = hw_spm_read(spm, first->at + 1u);
}

void hw_queue_drop_first(struct hw_spm *spm, uint32_t index, struct hw_first *first); /* the other 7 of 9 */

/* Append the whole queue of `from`, whose word 1 the machine still holds, to that of `to`. 7 accesses. */
void hw_queue_splice(struct hw_spm *spm, uint32_t to, uint32_t from, uint16_t head, uint16_t tail);

/*
 * Ours: take the first element of this waiter out, wherever it stands. 2 accesses for each element looked at, 1 for
 * ctrl.w1, at most 4 to close the gap, 3 to free it. False if it is not there.
 */
bool hw_queue_remove(struct hw_spm *spm, uint32_t index, uint32_t who);

#endif
