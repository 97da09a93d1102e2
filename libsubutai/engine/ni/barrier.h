/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Barriers, by the engine contract (engine/engine.h). */
#ifndef SBT_ENGINE_NI_BARRIER_H
#define SBT_ENGINE_NI_BARRIER_H

#include <pthread.h>

int ni_barrier_init(pthread_barrier_t *b, unsigned count);
int ni_barrier_destroy(pthread_barrier_t *b);
int ni_barrier_wait(pthread_barrier_t *b);

#endif
