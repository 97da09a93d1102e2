/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Serving a network interface; for the thread that has its lock (tile.h). */
#ifndef SBT_ENGINE_NI_SERVE_H
#define SBT_ENGINE_NI_SERVE_H

#include "engine/ni/record.h"
#include "engine/ni/tile.h"

/*
 * Serve this NI, and all NIs that its requests reach. If another thread serves it, this call does nothing: that thread
 * will see what has been handed in.
 */
void ni_serve(struct ni_tile *tile);

/*
 * Inline service: serve this request of the caller's, after all requests that came before it. False: another thread
 * serves its home just now, and nothing was done. Only while the mailbox of the caller's core has no request of the
 * caller's. *issue is set if it was served.
 */
bool ni_serve_own(struct ni_thread *t, const struct hw_packet *packet, const void *object, struct ni_issue *issue);

#endif
