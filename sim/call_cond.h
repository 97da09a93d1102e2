/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls on conditions. */
#ifndef SIM_CALL_COND_H
#define SIM_CALL_COND_H

#include "chip.h"

void sim_call_wait(struct sim *sim, struct sim_thread *t);
void sim_call_signal(struct sim *sim, struct sim_thread *t); /* or broadcast, by t->event.op */

#endif
