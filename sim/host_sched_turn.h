/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A core's thread, from one event of the core to the next: what host_sched.c builds waiting and waking of. */
#ifndef SIM_HOST_SCHED_TURN_H
#define SIM_HOST_SCHED_TURN_H

#include "host_core.h"

/* What is left of a spin without an end, however long it has lasted: so much, or more. */
#define SIM_HOST_ENDLESS (UINT64_MAX / 8)

void sim_host_own_event(struct sim *sim, uint32_t core);                    /* of a core with a thread */
void sim_host_event(struct sim *sim, const struct sim_event *event);        /* the same, from far ahead */
void sim_host_search_event(struct sim *sim, const struct sim_event *event); /* of an idle carrier */

/* As sim_core_run, for parts that know that the machine is the host. */
void sim_host_run(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);

/* The core, which has a thread, gets its next event: the thread is done, or the kernel looks. */
void sim_host_arm(struct sim *sim, struct sim_host_core *core);
/* A thread has come into the run queue. A core without an event runs its thread's function, which gives it the next. */
void sim_host_queue_changed(struct sim *sim, struct sim_host_core *core);

/* The thread, which was ready, begins to run `late` ns from now, and later if the core had another thread before. */
void sim_host_run_on(struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t late);
/* The core has no thread: it takes the next one, or goes idle. */
void sim_host_next_thread(struct sim *sim, struct sim_host_core *core);
/* The running thread goes back to the run queue. */
void sim_host_preempt(struct sim *sim, struct sim_host_core *core);

/* How long the idle core needs until a woken thread runs there. */
uint64_t sim_host_late(const struct sim *sim, const struct sim_host_core *core, bool carrier);
/* The sleeping carrier is woken, and will look. The result is what that costs its waker, in ns. */
uint64_t sim_host_wake_to_search(struct sim *sim, struct sim_host_core *idle);
bool sim_host_slice_is_over(const struct sim *sim, const struct sim_host_core *core);

#endif
