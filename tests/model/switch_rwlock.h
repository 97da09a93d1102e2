/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWITCH_RWLOCK_H
#define SWITCH_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A read-write lock, which so many sections will be entered under. */
void walk_rwlock_setup(uint32_t n_sections, bool prefers_writers);
void walk_rwlock_read(void);
void walk_rwlock_write(void);
void walk_rwlock_unlock(void);
/* Held to write. After the last section it destroys the lock. */
void walk_rwlock_unlock_and_destroy(void);
/* NULL, or what is wrong. */
const char *walk_rwlock_at_end(void);

#endif
