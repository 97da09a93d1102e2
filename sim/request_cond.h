/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions in hardware. The condition is t->object, its mutex t->mutex. */
#ifndef SIM_REQUEST_COND_H
#define SIM_REQUEST_COND_H

#include "chip.h"

void sim_request_cond_wait(struct sim *sim, struct sim_thread *t);
void sim_request_cond_signal(struct sim *sim, struct sim_thread *t); /* or a broadcast: t->event */

#endif
