/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a call, and on to the thread's next event. */
#ifndef SIM_RETURN_H
#define SIM_RETURN_H

#include "core.h"

/* Times and lengths of work in a trace are below this, a hundred years in ns. All bits below some bit are set. */
#define SIM_RETURN_LONGEST (UINT64_MAX / 4)

/* The call ends now. */
void sim_return(struct sim *sim, struct sim_thread *t);
/* The call ends `extra` cycles from now. Those and the work after the call are one step. */
void sim_return_after(struct sim *sim, struct sim_thread *t, uint64_t extra);
/*
 * Go on to the thread's next event: `extra` cycles, its work, and then sim->call; or sim->cut if its events have ended.
 */
void sim_return_to_trace(struct sim *sim, struct sim_thread *t, uint64_t extra);

#endif
