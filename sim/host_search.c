/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_search.h"

#include <stdlib.h>

/* The carrier's last look. */
static uint64_t ends_at(const struct sim *sim, const struct sim_host_core *core) {
    uint64_t n = (sim->host->model.search_ns + SIM_SEARCH_EVERY_NS - 1) / SIM_SEARCH_EVERY_NS;
    return core->search_from + (n > 0 ? n : 1) * SIM_SEARCH_EVERY_NS;
}

/* The next look of a carrier that looks on. A look at the present time has been: looks come first. */
static uint64_t next_at(const struct sim *sim, const struct sim_host_core *core) {
    uint64_t n = (sim_now(sim) - core->search_from) / SIM_SEARCH_EVERY_NS;
    return core->search_from + (n + 1) * SIM_SEARCH_EVERY_NS;
}

/* What has come of looks that were no events. */
static void look_back(struct sim *sim, struct sim_host_core *core) {
    if (!core->searches)
        return;
    core->searches = sim_now(sim) < ends_at(sim, core);
    if (!core->searches && sim->host->searches_to < ends_at(sim, core))
        sim->host->searches_to = ends_at(sim, core);
}

void sim_host_search_on(struct sim *sim, struct sim_host_core *core) {
    struct sim_host *host = sim->host;
    core->searches = sim_now(sim) < ends_at(sim, core);
    if (!core->searches)
        return;
    if (sim_now(sim) == core->search_from)
        core->search_order = ++host->n_searches;
    if (!core->listed)
        host->looks[host->n_looks++].core = core->number;
    core->listed = true;
}

void sim_host_search_stop(struct sim *sim, struct sim_host_core *core) {
    look_back(sim, core);
    if (core->searches && sim->host->searches_to < next_at(sim, core))
        sim->host->searches_to = next_at(sim, core);
    core->searches = false;
}

bool sim_host_is_searching(struct sim *sim, struct sim_host_core *core) {
    look_back(sim, core);
    return core->armed || core->searches;
}

void sim_host_search_at(struct sim *sim, struct sim_host_core *core, uint64_t at) {
    core->armed = true;
    core->ticket = SIM_NO_EVENT; /* a carrier that is woken has one such event */
    sim_events_put_words(&sim->events, at, SIM_EV_SEARCH, core->number, ++core->generation, 0, NULL);
}

/* By time; at the same time the carrier that went idle before the other. */
static int compare(const void *a, const void *b) {
    const struct sim_host_look *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Those that search still, with their next looks, in the order of these. */
static void list_looks(struct sim *sim) {
    struct sim_host *host = sim->host;
    uint32_t n = host->n_looks;
    host->n_looks = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct sim_host_core *core = &host->cores[host->looks[i].core];
        look_back(sim, core);
        core->listed = false;
        if (core->searches)
            host->looks[host->n_looks++] = (struct sim_host_look){next_at(sim, core), core->search_order, core->number};
    }
    if (host->n_looks > 1)
        qsort(host->looks, host->n_looks, sizeof *host->looks, compare);
}

void sim_host_search_expect(struct sim *sim) {
    struct sim_host *host = sim->host;
    list_looks(sim);
    for (uint32_t i = 0; i < host->n_looks; i++) {
        const struct sim_host_look *look = &host->looks[i];
        struct sim_host_core *core = &host->cores[look->core];
        core->armed = true;
        core->ticket = SIM_NO_EVENT;
        core->searches = false;
        sim_events_put_first(&sim->events, look->at, SIM_EV_SEARCH, look->core, ++core->generation);
    }
    host->n_looks = 0;
}

void sim_host_search_rest(struct sim *sim) {
    struct sim_host *host = sim->host;
    for (uint32_t i = 0; i < sim->n_cores; i++)
        if (host->cores[i].searches && host->searches_to < ends_at(sim, &host->cores[i]))
            host->searches_to = ends_at(sim, &host->cores[i]);
    sim_events_rest(&sim->events, host->searches_to);
}
