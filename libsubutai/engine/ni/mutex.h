/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mutexes, by the engine contract (engine/engine.h). */
#ifndef SBT_ENGINE_NI_MUTEX_H
#define SBT_ENGINE_NI_MUTEX_H

#include <pthread.h>

#include "engine/ni/record.h"
#include "os/clock.h"

void ni_mutex_init(pthread_mutex_t *m, const void *site);
int ni_mutex_destroy(pthread_mutex_t *m);
int ni_mutex_lock(pthread_mutex_t *m);
int ni_mutex_trylock(pthread_mutex_t *m);
int ni_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline);
int ni_mutex_unlock(pthread_mutex_t *m);

/* The mutex has just been granted to the caller. Always 0. */
int ni_mutex_own(const struct ni_thread *t, pthread_mutex_t *m);
/*
 * ni_mutex_timedlock within an operation, with asynchronous cancellation deferred. `cancelable`: but for the wait; then
 * a mutex that the software engine serves is left to the caller, and the result is negative.
 */
int ni_mutex_take(struct ni_thread *t, pthread_mutex_t *m, const struct sbt_deadline *deadline, bool cancelable);

#endif
