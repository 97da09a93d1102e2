/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWITCH_MUTEX_H
#define SWITCH_MUTEX_H

#include <stdbool.h>

/* A mutex, and a condition that its waiters have waited for when there is a turn for each of them. */
void walk_mutex_setup(void);
void walk_mutex_lock(void);
void walk_mutex_unlock(void);
/* Two others, which nobody else takes, one of them held for longer. */
void walk_trylock(bool outer);
void walk_trylock_undo(bool outer);
/* With the mutex. */
void walk_cond_wait(void);
/* One more turn. With the mutex. */
void walk_turn(void);
/* A signal, with or without the mutex; so many turns and a broadcast, with it. */
void walk_cond_signal(void);
void walk_cond_broadcast(uint32_t turns);
/* Nobody will wait any more, and who waits has been told. */
void walk_cond_destroy(void);
/* NULL, or what is wrong. */
const char *walk_mutex_at_end(void);

#endif
