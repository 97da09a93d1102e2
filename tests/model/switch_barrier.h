/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWITCH_BARRIER_H
#define SWITCH_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

/* A barrier for so many, that switch-walk's threads wait in, and destroy when they know that all have been let go. */
void walk_barrier_setup(uint32_t count);
/* `stays_away`: nothing sends it home from a carrier. */
void walk_barrier_wait(bool stays_away);
void walk_barrier_destroy(void);
/* NULL, or what is wrong. */
const char *walk_barrier_at_end(void);

/* Each schedule begins with a word of which nothing is known: otherwise the same choices would lead elsewhere. */
void walk_forget_waits(void);

/* How often the kernel has been asked to run others. */
extern uint32_t walk_n_offers;
/* So often a thread looks again before it parks. */
extern uint32_t walk_n_looks;
/* How often the caller has said that it had been woken in vain. */
uint32_t *walk_n_in_vain(void);

#endif
