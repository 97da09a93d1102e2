/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWITCH_MUTEX_H
#define SWITCH_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* A mutex, and a condition: its waiters have waited when there is a turn for each of them. */
/*
 * `delegated`: the mutex is, with so many servers, of which the first has it; `found`: as `--delegate auto` does, which
 * changes it in walk_mutex_change.
 */
void walk_mutex_setup(bool delegated, bool found, uint32_t n_servers);
void walk_mutex_change(void);
void walk_mutex_lock(void);
void walk_mutex_unlock(void);
/* Another mutex, which is delegated where the first is; the last server has it. */
void walk_other_lock(void);
void walk_other_unlock(void);
/* A section of the one was handed over to a server with a section of the other, in any schedule. */
extern bool walk_has_been_behind;
/* What a section of the one or the other is known by. */
const void *walk_mutex_object(bool other);
/* Two other mutexes, which no other thread takes; the outer one is held for longer. */
void walk_trylock(bool outer);
void walk_trylock_undo(bool outer);
/* With the mutex. */
void walk_cond_wait(void);
/* One more turn. With the mutex. */
void walk_turn(void);
/* A signal, with or without the mutex; so many turns and a broadcast, with it. */
void walk_cond_signal(void);
void walk_cond_broadcast(uint32_t turns);
/* No thread will wait any more, and every waiter has been notified. */
void walk_cond_destroy(void);
/* NULL, or what is wrong. */
const char *walk_mutex_at_end(void);

#endif
