/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* On the host a wait by polling or looking (polling.h) lasts until what it waits for has happened there. */
#ifndef SIM_HOST_POLL_H
#define SIM_HOST_POLL_H

#include "host_sched.h"

/*
 * The thread's next event is a trylock of a mutex. If it begins a poll, the event becomes the trylock that succeeds,
 * and t->host.poll_ns is the work between two trylocks (else 0). If the work before it is a look, that ends with the
 * condition's signal. The result runs after the work. `before`: the event before.
 */
sim_then *sim_host_poll_next(struct sim *sim, struct sim_thread *t, const struct sbt_trace_event *before);

/* A signal of the condition has happened: looks for it end. */
void sim_host_poll_signalled(struct sim *sim, struct sim_object *condition);

#endif
