/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegation on the host, as `--delegate all --servers N` and Remote Core Locking (Lozi) have it: the first cores are
 * servers, and sections of mutexes run there and nowhere else. A mutex that the thread gets by trylocks is taken where
 * it is, and its section runs there.
 *
 *  1. A thread that locks a mutex travels to the mutex's server, which costs the way of a cache line there.
 *  2. The server runs what comes in the order of coming. If the mutex is held, by a section that waits, the thread
 *     waits for it there, and the unlock hands it over.
 *  3. The thread travels back, which costs a line again, at the unlock after which it has no mutex that it has locked
 *     there. Other locks that it holds do not keep it.
 *
 * The section itself takes as long as recorded. A server changes from one section to the next as a carrier does. Other
 * threads never run on a server, and servers take none from others.
 */
#ifndef SIM_HOST_DELEGATE_H
#define SIM_HOST_DELEGATE_H

#include "host_core.h"

void sim_host_delegate_lock(struct sim *sim, struct sim_thread *t);   /* then t->locked */
void sim_host_delegate_unlock(struct sim *sim, struct sim_thread *t); /* then t->unlocked */

#endif
