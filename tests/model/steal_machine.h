/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine of atac/machine.h on which steal_walk.c walks work stealing: shared words, and a network that brings each
 * message to each core at any later time, in the order of its sender alone. A core's filter is that of the moment at
 * which the message arrives. All is in the arena of code_sched.h.
 *
 * A wait with a deadline may end without a message whenever there is none, `n_timeouts` times for each thread: so each
 * course ends. Messages that are late for ever are not walked: the network has delivered all when nothing goes on.
 */
#ifndef STEAL_MACHINE_H
#define STEAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum { STEAL_MOST_THREADS = 3 };

/* In setup. */
void steal_machine_init(uint32_t n_threads, uint32_t n_timeouts, bool is_instant);
/* In setup: what follows is done for that thread. */
void steal_machine_be(uint32_t thread);
/* The network, a thread of its own. */
_Noreturn void steal_network(void);

#endif
