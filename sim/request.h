/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mutexes and barriers in hardware. If the hardware has no place for an object, the software model serves it. */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include "chip.h"

void sim_request_lock(struct sim *sim, struct sim_thread *t);   /* of t->mutex; then t->locked */
void sim_request_unlock(struct sim *sim, struct sim_thread *t); /* of t->mutex; then t->unlocked */
/* An attempt at t->object, without effect. */
void sim_request_try(struct sim *sim, struct sim_thread *t, sim_then *then);
void sim_request_barrier(struct sim *sim, struct sim_thread *t);

#endif
