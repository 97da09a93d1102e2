/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mutex.h"

#include "host_core.h"
#include "host_sync.h"
#include "owner.h"
#include "request.h"
#include "software.h"

static void lock_now(struct sim *sim, struct sim_thread *t) {
    if (sim_on_host(sim))
        sim_host_lock(sim, t);
    else if (sim_mutex_in_hardware(sim, t->mutex))
        sim_request_lock(sim, t);
    else
        sim_software_lock(sim, t);
}

void sim_mutex_lock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then) {
    t->mutex = mutex;
    t->locked = then;
    t->queued_lock = false;
    sim_owner_wait_order(sim, t, mutex, lock_now);
}

void sim_mutex_unlock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then) {
    t->mutex = mutex;
    t->unlocked = then;
    bool travels = sim_on_host(sim) && sim_host_delegates(sim); /* back, also if it unlocks in vain */
    if (mutex == NULL || (mutex->owner == NULL && !travels))
        then(sim, t);
    else if (sim_on_host(sim))
        sim_host_unlock(sim, t);
    else if (sim_mutex_in_hardware(sim, mutex))
        sim_request_unlock(sim, t);
    else
        sim_software_unlock(sim, t);
}
