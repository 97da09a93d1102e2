/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls on objects. */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include "chip.h"

/* Make the call of t->event, which is on an object. */
void sim_call_object(struct sim *sim, struct sim_thread *t);
/* The call lasts as long as it did when it was recorded. */
void sim_call_last(struct sim *sim, struct sim_thread *t);

#endif
