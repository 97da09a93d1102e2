/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread's way along its trace. */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "chip.h"

/* Sets sim->call and sim->cut. */
void sim_replay_init(struct sim *sim);
/* The first thread of an application begins, and the threads that the trace does not see created. */
void sim_replay_start(struct sim *sim, struct sim_app *app);
void sim_replay_born_event(struct sim *sim, const struct sim_event *event);

/* No thread can go on. True: a wait has ended that nothing would have ended. */
bool sim_replay_pass(struct sim *sim);
/* Not even that helps: the run fails. */
void sim_replay_fail(struct sim *sim);

/*
 * If threads of the application wait for each other's locks, round in a circle, let one of these waits end. In the
 * trace one of the locks was taken by a trylock, or they came at other times. Without this they would wait until no
 * other thread sleeps.
 */
void sim_replay_pass_circle(struct sim *sim, const struct sim_app *app);
/* Does the thread, which waits, wait in the end for itself? */
bool sim_replay_closes_circle(const struct sim_thread *t);
/* The same for all applications, again and again while threads sleep outside. */
void sim_replay_circles_event(struct sim *sim);

#endif
