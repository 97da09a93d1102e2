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
 */
void sim_signals_wake(struct sim *sim, struct sim_thread *t);
bool sim_signals_has(const struct sim_object *condition, uint64_t number);

#endif
