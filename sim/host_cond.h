/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions on the host. The condition is t->object, its mutex t->mutex. */
#ifndef SIM_HOST_COND_H
#define SIM_HOST_COND_H

#include "chip.h"

void sim_host_cond_wait(struct sim *sim, struct sim_thread *t);
void sim_host_cond_signal(struct sim *sim, struct sim_thread *t); /* or broadcast, by t->event.op */

#endif
