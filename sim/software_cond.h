/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions in software. The condition is t->object, its mutex t->mutex. */
#ifndef SIM_SOFTWARE_COND_H
#define SIM_SOFTWARE_COND_H

#include "chip.h"

void sim_software_cond_wait(struct sim *sim, struct sim_thread *t);
void sim_software_cond_signal(struct sim *sim, struct sim_thread *t); /* or a broadcast: t->event */

#endif
