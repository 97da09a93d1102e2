/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mutex of simulated threads in one shared word, as glibc's: 0 free, 1 locked, 2 locked and threads may sleep (U.
 * Drepper, Futexes Are Tricky, 2011).
 */
#ifndef ATAC_MUTEX_H
#define ATAC_MUTEX_H

#include <stdint.h>

/* May block. */
void atac_mutex_lock(uint32_t word);
void atac_mutex_unlock(uint32_t word);

#endif
