/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim/host_search.c in the obvious way: each look of a carrier is an event, also while no fiber is ready. A carrier
 * that looks puts in the event of its next look, until it has searched for long enough.
 */
#include "host_search.h"

void sim_host_search_on(struct sim *sim, struct sim_host_core *core) {
    uint64_t now = sim_now(sim);
    if (now != core->search_from && now >= core->search_from + sim->host->model.search_ns)
        return;
    core->armed = true;
    core->ticket = SIM_NO_EVENT;
    sim_events_put_first(&sim->events, now + SIM_SEARCH_EVERY_NS, SIM_EV_SEARCH, core->number, ++core->generation);
}

void sim_host_search_at(struct sim *sim, struct sim_host_core *core, uint64_t at) {
    core->armed = true;
    core->ticket = SIM_NO_EVENT;
    sim_events_put_words(&sim->events, at, SIM_EV_SEARCH, core->number, ++core->generation, 0, NULL);
}

bool sim_host_is_searching(struct sim *sim, struct sim_host_core *core) {
    (void)sim;
    return core->armed;
}

/* The core's generation changes as it gets a fiber: the event of its next look is stale. */
void sim_host_search_stop(struct sim *sim, struct sim_host_core *core) {
    (void)sim;
    (void)core;
}

void sim_host_search_expect(struct sim *sim) {
    (void)sim;
}

void sim_host_search_rest(struct sim *sim) {
    (void)sim;
}
