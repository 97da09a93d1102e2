/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What events do to threads and objects in a walk through a trace. */
#ifndef SIM_SURVEY_EVENT_H
#define SIM_SURVEY_EVENT_H

#include "survey_walk.h"

/* Make the thread's event. Then the thread waits, is at its next event that may bind, or has ended. */
void sim_walk_make(struct sim_walk *w, struct sim_walk_thread *t);
/* In the recorded order: the thread has acquired the mutex. */
void sim_walk_acquired(struct sim_walk_object *m, const struct sim_walk_thread *t);

#endif
