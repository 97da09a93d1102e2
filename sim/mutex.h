/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A mutex, wherever it is served: its word says where. */
#ifndef SIM_MUTEX_H
#define SIM_MUTEX_H

#include "chip.h"

/* Does the hardware serve this object on this chip? Any object. */
static inline bool sim_mutex_in_hardware(const struct sim *sim, const struct sim_object *o) {
    return sim_sync_has_nis(sim->config.sync) && o->id != SIM_ID_SOFTWARE;
}

/* Lock or unlock. `then` runs when the thread has got the mutex, or has released it: at once or later. */
void sim_mutex_lock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then);
void sim_mutex_unlock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then);

#endif
