/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When a core of the host changes to another thread, under a model of Linux's scheduler (EEVDF) or of the library's
 * carriers. sim_core_* comes here when the simulated machine is the host. Further calls that only the host's primitives
 * need:
 */
#ifndef SIM_HOST_SCHED_H
#define SIM_HOST_SCHED_H

#include "host_sched_turn.h"

bool sim_host_init(struct sim *sim); /* false: no memory */
void sim_host_free(struct sim *sim);

/* The thread, which waits by looking again and again, runs `then` after `ns` if it has a core, and else when it has. */
void sim_host_poke(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);
/* The thread, which works, has at most `ns` left to do. */
void sim_host_shorten(struct sim *sim, struct sim_thread *t, uint64_t ns);
/* Has the thread a core, and does it run its own code there? */
bool sim_host_is_running(const struct sim *sim, const struct sim_thread *t);
/* The running thread goes to another core, and has to run for `ns` there before `then`. */
void sim_host_move(struct sim *sim, struct sim_thread *t, struct sim_host_core *to, uint64_t ns, sim_then *then);
/* The running thread gives its core to the next ready thread, if there is one. Then, or at once, `then`. */
void sim_host_yield(struct sim *sim, struct sim_thread *t, sim_then *then);
/* As sim_core_wake, by a running thread: a fiber goes into the run queue of its waker's carrier. */
void sim_host_wake_by(struct sim *sim, struct sim_thread *waker, struct sim_thread *t);
/* What the running thread spends on waking that one now. */
uint64_t sim_host_wake_cost(struct sim *sim, const struct sim_thread *waker, const struct sim_thread *t);
/* Do the application's threads all have a core? Then a wait spins, and a fiber waits as a thread does. */
static inline bool sim_host_cores_to_spare(const struct sim *sim, const struct sim_thread *t) {
    return t->app->n_alive <= sim->n_cores - sim->host->model.n_servers;
}

/* Other threads wait for the core of the running thread. */
static inline bool sim_host_others_ready(const struct sim *sim, const struct sim_thread *t) {
    return sim_host_core_of(sim, t)->n_ready > 0;
}

/* How long that much recorded work takes on this machine, begun now. */
uint64_t sim_host_work_ns(const struct sim *sim, uint64_t work_ns);

#endif
