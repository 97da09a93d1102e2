/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The double-linked queues in a scratchpad, access by access as the state machine makes them.
 *
 * Putting in makes as many accesses as it needs, 5 to 10: the best and worst cases of Table III need both. Taking out
 * and splicing run a fixed schedule, in which a slot with no neighbour to update reads or writes the element's own
 * word. That is derived from two of the paper's numbers. Its barrier injects a packet "periodically at every 25 ns" up
 * to the last waiter and takes 1583 ns in all. And its broadcast reaches 18m + c only if the splice onto the queue of a
 * mutex that was free takes all its seven accesses.
 *
 * The caller has checked that the control elements are of the right kind.
 */
#ifndef HW_QUEUE_H
#define HW_QUEUE_H

#include "spm.h"

/* Appends a waiter. There must be a free element. 5 to 10 accesses. */
void hw_queue_put(struct hw_spm *spm, uint32_t index, uint32_t waiter);

/* Taking the first waiter out comes in two parts, so that its packet can leave between them. */
struct hw_first {
    uint16_t at; /* HW_NIL: no thread waits. After hw_queue_drop_first: the element that is first now */
    uint16_t tail;
    uint32_t waiter; /* after hw_queue_first_waiter */
};

/* R ctrl.w1 */
static inline struct hw_first hw_queue_first(struct hw_spm *spm, uint32_t index) {
    uint32_t queue = hw_spm_read(spm, hw_control_word(index, 1));
    return (struct hw_first){.at = hw_high(queue), .tail = hw_low(queue)};
}

/* R head.w1 */
static inline void hw_queue_first_waiter(struct hw_spm *spm, struct hw_first *first) {
    first->waiter = hw_spm_read(spm, first->at + 1u);
}

void hw_queue_drop_first(struct hw_spm *spm, uint32_t index, struct hw_first *first); /* the other 7 of 9 */

/* Appends the whole queue of `from` to the queue of `to`. The machine still has word 1 of `from` in a register. 7
 * accesses. */
void hw_queue_splice(struct hw_spm *spm, uint32_t to, uint32_t from, uint16_t head, uint16_t tail);

/*
 * Ours: takes the first element of this waiter out, wherever it is in the queue. 2 accesses for each element read, 1
 * for ctrl.w1, at most 4 to close the gap, 3 to free the element. False: the waiter is not in the queue.
 */
bool hw_queue_remove(struct hw_spm *spm, uint32_t index, uint32_t waiter);

#endif
