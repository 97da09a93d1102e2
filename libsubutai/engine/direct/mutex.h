/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What mutex.c, contention.c and trylock.c need of each other. */
#ifndef SBT_ENGINE_DIRECT_MUTEX_H
#define SBT_ENGINE_DIRECT_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"
#include "engine/direct/direct.h"

/* Take the mutex if it is free. Acquire pairs with the release in the unlocks. */
static inline bool direct_mutex_take(uint32_t *word, uint32_t *seen) {
    *seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((*seen & DIRECT_LOCKED) == 0)
        if (__atomic_compare_exchange_n(word, seen, (*seen | DIRECT_LOCKED) & ~DIRECT_ACTIVE, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

/* The caller holds it, and waiters are queued; the bucket is locked. The results are for sbt_lot_unpark_one. */

/* Free it and notify a sleeper, or hand it over if that is due. */
sbt_lot_choose direct_mutex_free_or_hand_over;
/* Hand it to `w`, which sleeps. */
struct sbt_waiter *direct_mutex_hand_over(struct sbt_lot_queue *q, struct sbt_waiter *w);

/* Do others wait for a mutex by calling trylock again and again? */
enum direct_spun {
    DIRECT_SPUN_NOT,
    DIRECT_SPUN_BY_FIBERS, /* perhaps: it has been taken by trylock, */
    DIRECT_SPUN_BY_ANY     /* certainly: trylocks have failed */
};

/* The caller holds it, SPUN is set, and it is about to be freed. May clear SPUN. Does not block. */
enum direct_spun direct_mutex_spun(struct sbt_mutex *mx);

/* It has been freed: should the caller give its core away now? */
bool direct_mutex_unlock_yields(enum direct_spun spun);

/* Have the wait begin with a spin, if experience speaks for one (contention.c). */
void direct_mutex_spin(struct sbt_mutex *mx, struct sbt_active *active);
/* The caller has spun for the mutex, and has it now. */
void direct_mutex_learn_taken(struct sbt_mutex *mx);
/* The caller has spun for the mutex: was the spin enough? */
void direct_mutex_learn_luck(struct sbt_mutex *mx, bool got);

#endif
