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

/* The same for a service thread: what reaches NIs of another service thread is left to that. */
void ni_serve_and_hand_over(struct ni_tile *tile);

/*
 * The thread's last request was left to a service thread, and there is no answer: do the service thread's work. After
 * this the request has been stepped, or a thread that has one of the two NIs steps it before it leaves that NI, so the
 * caller does not wait for a service thread that may have no core. There is one exception: if the two NIs have
 * different service threads, and that of the caller's NI has it, then it leaves the request to that of the home NI.
 */
void ni_serve_instead(struct ni_thread *t);

/*
 * Serve this request of the caller's, after all requests that came before it. False: it was not served, because another
 * thread serves its home just now, or not all of those could be. Only while the mailbox of the caller's core has no
 * request of the caller's. *issue is set if it was served.
 */
bool ni_serve_own(struct ni_thread *t, const struct hw_packet *packet, const void *object, struct ni_issue *issue);

#endif
