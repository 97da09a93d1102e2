/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A core's side of the optical network: filters, lambda queues, controller, message buffer.
 *
 * The filters look at a message when it arrives. What they let pass, of channels to which the core has subscribed, goes
 * into the lambda queue of its wavelength. The controller goes round the lambda queues and moves one message at a time:
 * if it is free, the first message of the next queue that is not empty. A message that arrives in the cycle in which
 * the controller becomes free is among those it chooses from.
 *
 * Nothing happens by itself: a core's side is brought up to a time when that is asked for.
 */
#ifndef HW_OPTICAL_RECEIVER_H
#define HW_OPTICAL_RECEIVER_H

#include "optical_state.h"

/* All that happens at this core until `now`, included. */
void hw_optical_advance(struct hw_optical *net, uint32_t core, uint64_t now);

/*
 * Is what the controller does until `until`, included, the same whatever else arrives later than `known`? It is if it
 * has a message in each lambda queue to which it comes until then, and one left: it passes none over. Until then the
 * side may be advanced beyond the present, all that arrives until `known` being sent. True also promises that
 * hw_optical_next, asked then, does not depend on what is not known. In the flat network without limits.
 */
bool hw_optical_is_certain(const struct hw_optical *net, uint32_t core, uint64_t known, uint64_t until);

/*
 * The earliest time at which a message of the channel could be retrieved, of what has been sent so far; the side has
 * been advanced to the present. Messages that come later never make it earlier in the flat network. UINT64_MAX: not
 * before another message is sent.
 */
uint64_t hw_optical_next(const struct hw_optical *net, uint32_t core, uint32_t channel);

#endif
