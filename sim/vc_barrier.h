/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Barriers by broadcast. */
#ifndef SIM_VC_BARRIER_H
#define SIM_VC_BARRIER_H

#include "broadcast.h"

/* The thread's wait at t->object; then its call ends. False: no channel serves it. */
bool sim_vc_barrier(struct sim *sim, struct sim_thread *t);
/* A wait that nothing would end: the episode is complete without the missing threads. */
void sim_vc_barrier_pass(struct sim *sim, struct sim_object *barrier);

#endif
