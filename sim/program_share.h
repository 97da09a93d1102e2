/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that share cores: more threads than cores.
 *
 * A core computes for one of its threads at a time, in the order in which they ask. It goes on with another one while a
 * thread waits, for memory too, and the change costs nothing: as cores with several contexts do. Its threads have one
 * cache, one wavelength, and the inboxes of inbox.h.
 *
 * A thread's subscription and filter hold for messages that come into the core's message buffer later. Those that have
 * arrived, and are in a lambda queue, are among them: on a core of its own, a thread's old ones hold for these.
 */
#ifndef SIM_PROGRAM_SHARE_H
#define SIM_PROGRAM_SHARE_H

#include "program_state.h"

/* False: no memory. */
bool sim_share_init(struct sim_program *p);
void sim_share_free(struct sim_program *p);

/*
 * Sorts what all cores have. Before it is judged whether there are too many messages: what the filters of a core's
 * threads refuse is in the hardware's buffer until a thread looks, and that may be never.
 */
void sim_share_sort(struct sim_program *p);
/* Sorts what the core has of the channel. Has the thread a message? */
bool sim_share_look(struct sim_program *p, struct sim_fiber *t, uint32_t channel);
/* Its first message, valid until it takes the next one. False: there is none. */
bool sim_share_take(struct sim_program *p, struct sim_fiber *t, uint32_t channel, struct sim_message *message);
/* Before the thread subscribes: what came until now is not for it. */
void sim_share_subscribe(struct sim_program *p, struct sim_fiber *t, uint32_t channel);
/* The filter of its core from now on. */
struct hw_filter sim_share_set_filter(struct sim_program *p, struct sim_fiber *t, struct hw_filter filter);
/* A message has been sent: the other threads of the core have it now. */
void sim_share_send(struct sim_program *p, struct sim_fiber *t, const struct hw_optical_message *message,
                    const void *data);
/* Threads of the core, but the writer, that spin on the line look again then. */
void sim_share_tell_spinning(struct sim_program *p, const struct sim_fiber *writer, uint32_t core, uint32_t line,
                             uint64_t at);

#endif
