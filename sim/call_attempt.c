/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call_attempt.h"

#include "host_sync.h"
#include "software.h"

void sim_call_attempt(struct sim *sim, struct sim_thread *t, sim_then *then) {
    if (sim_on_host(sim))
        sim_host_touch(sim, t, t->object, sim->host->model.atomic_ns, then);
    else
        sim_software_try(sim, t, then);
}
