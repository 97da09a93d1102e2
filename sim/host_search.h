/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carriers without a fiber that search: from the time when they went idle, or were woken, they look each
 * SIM_SEARCH_EVERY_NS whether another carrier has fibers to take, for model.search_ns.
 *
 * Such a look comes before all else that happens at its time. Looks at the same time are in the order in which their
 * carriers began to search. (The look of a carrier that is woken for a new fiber, sim_host_search_at, is an event like
 * any other.)
 *
 * As long as no fiber is ready all looks are in vain, and nothing happens at them. So a look is an event only while
 * fibers are ready.
 */
#ifndef SIM_HOST_SEARCH_H
#define SIM_HOST_SEARCH_H

#include "host_core.h"

enum { SIM_SEARCH_EVERY_NS = 5000 };

/* The carrier has just gone idle, or has looked in vain: it looks again, unless it has searched for long enough. */
void sim_host_search_on(struct sim *sim, struct sim_host_core *core);
/* The idle carrier gets a fiber. */
void sim_host_search_stop(struct sim *sim, struct sim_host_core *core);
/* Will the idle carrier look by itself, or has it been woken to look? */
bool sim_host_is_searching(struct sim *sim, struct sim_host_core *core);
/* Let the woken carrier look at that time. */
void sim_host_search_at(struct sim *sim, struct sim_host_core *core, uint64_t at);
/* Fibers are ready: the next look of each searching carrier becomes an event. */
void sim_host_search_expect(struct sim *sim);
/* No event is left: time passes until the last look. */
void sim_host_search_rest(struct sim *sim);

#endif
