/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* To which core of the host a thread goes: one that is new, or was woken, or is ready and waits for another core. */
#ifndef SIM_HOST_PLACE_H
#define SIM_HOST_PLACE_H

#include "host_core.h"

/* A thread that begins: an idle core, else one of those with the fewest threads, in turn. */
struct sim_host_core *sim_host_place_new(struct sim *sim);
/* A woken thread: its last core if that is idle, another idle core, its waker's, its last. waker NULL: a timer. */
struct sim_host_core *sim_host_place_woken(struct sim *sim, const struct sim_thread *t, const struct sim_thread *waker);

/*
 * The core, which has no thread, takes one into its run queue, from the longest run queue: the last one with a cold
 * cache. A carrier takes half of the fibers of a carrier that makes no progress. False: there is none.
 */
bool sim_host_steal(struct sim *sim, struct sim_host_core *core);
/*
 * At a tick, a core with ready threads gives one to the core with the fewest threads. (In Linux that core takes it, at
 * its own tick.) The core that got it; NULL: none.
 */
struct sim_host_core *sim_host_balance(struct sim *sim, struct sim_host_core *core);
/* At a tick, a core with ready threads puts one into the run queue of an idle core. That core; NULL: none. */
struct sim_host_core *sim_host_help_idle(struct sim *sim, struct sim_host_core *core);

#endif
