/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that a full NI has answered with AGAIN, on the paper's chip.
 *
 * In a program such a thread tries again each microsecond. Attempts that would be in vain are left out here, so that a
 * replay that is stuck comes to rest:
 *  - A thread that is refused a mutex or a barrier is parked until its NI has room.
 *  - A condition's waiter is parked until its signal has happened. Before that it would only ask for an element, and
 *    take it from other threads.
 */
#ifndef SIM_AGAIN_H
#define SIM_AGAIN_H

#include "core.h"

/* The thread was answered AGAIN. It tries again, with `then`. why: SIM_WHY_SIGNAL for a condition's waiter. */
void sim_again_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then);
/* This NI has room again. */
void sim_again_room(struct sim *sim, const struct sim_tile *tile);
/* A signal of this condition has happened. */
void sim_again_signalled(struct sim *sim, const struct sim_object *condition);

#endif
