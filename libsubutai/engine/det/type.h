/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The type of cancellation, which is deferred while a thread waits (block.c). A handler that leaves the wait by a jump
 * leaves the restoring behind too, so that is a clean-up as well (os/cleanup.h). It is the wait's first one, and so the
 * last that the jump calls: the thread is in the order again when a cancellation acts in it.
 *
 * The buffer's __canceltype, which glibc's functions without it leave alone, is what the jump restores:
 * PTHREAD_CANCEL_ASYNCHRONOUS, or nothing.
 */
#ifndef SBT_ENGINE_DET_TYPE_H
#define SBT_ENGINE_DET_TYPE_H

#include <stdbool.h>

#include "os/cleanup.h"

/* The caller is deferring handlers. True: the type was asynchronous, and one of the next two is to be called. */
bool det_type_defer(struct _pthread_cleanup_buffer *kept);
/* The type is asynchronous again; a cancellation may act. */
void det_type_restore(struct _pthread_cleanup_buffer *kept);
/* The caller has restored it, or will. */
void det_type_forget(struct _pthread_cleanup_buffer *kept);

/* The clean-up, of a buffer that is its own argument. */
void det_type_left(void *kept);

#endif
