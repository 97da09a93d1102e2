/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Handing a request in, at the mailbox of the calling thread's core; of the group of files of thread.h. */
#ifndef SBT_ENGINE_NI_MAILBOX_H
#define SBT_ENGINE_NI_MAILBOX_H

#include "engine/ni/record.h"
#include "engine/ni/tile.h"

/*
 * Hand in a request. If it has an answer, ni_await takes that. `object`: as in ni_request. May block for a short time.
 */
void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object);
void ni_post_alloc(struct ni_thread *t, enum hw_op op, uint32_t ni, uint32_t flit1, const void *object);

/* Does a mailbox hold a request that has not been served? */
bool ni_outstanding(uint32_t tile);
/* Wait until what the mailbox holds now has been served. Blocks; no cancellation point. */
void ni_fence(struct ni_thread *t, uint32_t tile);
/* In a forked child: give what the mailbox still has to `serve`, oldest first, and empty it. */
void ni_mailbox_fork_child(struct ni_tile *tile, void (*serve)(const struct hw_packet *));

#endif
