/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real threads that share a core of the chip: the inboxes of sim/inbox.h under the run's lock, which all of these need.
 */
#ifndef ATAC_LIVE_SHARE_H
#define ATAC_LIVE_SHARE_H

#include "live.h"

/* The message's head and data, for the thread that retrieves it. */
void live_copy(const struct hw_optical_message *head, const void *data, struct atac_received *to);

/* Sorts what all cores have: before it is judged whether there are too many messages (sim/program_share.h). */
void live_share_sort(uint64_t now);
/* Has the thread a message that was sorted already? False if no core is shared. */
bool live_share_has(const struct live_thread *t, uint32_t channel);
/* Sorts what the calling thread's core has of the channel, and takes its first message. False: there is none. */
bool live_share_take(uint32_t channel, uint64_t now, struct atac_received *received);
/* Before the calling thread subscribes: what came until now is not for it. */
void live_share_subscribe(uint32_t channel);
/* The filter of its core from now on. */
struct hw_filter live_share_set_filter(struct hw_filter filter);
/* A message has been sent: the other threads of the core have it now. */
void live_share_send(const struct hw_optical_message *message, uint64_t now, const void *data);
/* The run fails, and the calling thread ends, if one of the core's threads does not read a channel. */
void live_share_look_for_overflow(void);

#endif
