/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions, by the engine contract (engine/engine.h). */
#ifndef SBT_ENGINE_NI_COND_H
#define SBT_ENGINE_NI_COND_H

#include "engine/engine.h"

int ni_cond_destroy(pthread_cond_t *c);
int ni_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                 const struct sbt_deadline *deadline);
int ni_cond_signal(pthread_cond_t *c);
int ni_cond_broadcast(pthread_cond_t *c);

#endif
