/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call that has no effect. */
#ifndef SIM_CALL_ATTEMPT_H
#define SIM_CALL_ATTEMPT_H

#include "chip.h"

/* It costs an attempt; then `then`. */
void sim_call_attempt(struct sim *sim, struct sim_thread *t, sim_then *then);

#endif
