/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which signals of a condition have happened, by their numbers in the trace. They may happen in another order. */
#ifndef SIM_SIGNALS_H
#define SIM_SIGNALS_H

#include "chip.h"

/* The signal or broadcast with this number has happened. */
void sim_signals_add(struct sim *sim, struct sim_object *condition, uint64_t number);
/*
 * The thread's signal or broadcast happens. The waiters that it wakes go from the condition's list to t->targets: a
 * signal wakes those that it woke in the trace, a broadcast all, but for the recorded order.
 *
 * On the host a signal that none of the waiters awaits wakes the first of them, as a condition does: the waiter that
 * awaits it is late, or there was none in the trace. The two signals are exchanged. The one that this waiter awaited
 * will count as this one when it comes, and so wake the late waiter, or another one. Only signals are exchanged: a
 * program broadcasts for another reason than it signals, such as the end of all work. And none is exchanged before the
 * time at which the signal that the waiter awaited can come at the earliest on any chip (survey.h): so each wait ends
 * no earlier than there, and the critical path stays a bound.
 */
void sim_signals_wake(struct sim *sim, struct sim_thread *t);
/* Has this signal been given, and another waiter's in its place? */
bool sim_signals_was_exchanged(const struct sim_object *condition, uint64_t number);
/* If so they are exchanged no more: the caller wakes its waiter. */
bool sim_signals_end_exchange(struct sim *sim, struct sim_object *condition, uint64_t number);
bool sim_signals_has(const struct sim_object *condition, uint64_t number);

#endif
