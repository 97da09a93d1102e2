/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What mutex.c, mutex_queue.c, contention.c and trylock.c need of each other. */
#ifndef SBT_ENGINE_DIRECT_MUTEX_H
#define SBT_ENGINE_DIRECT_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"
#include "engine/direct/direct.h"

static inline struct sbt_mutex *direct_mutex_of(const void *key) {
    return (struct sbt_mutex *)(uintptr_t)key;
}

/* Take the mutex if it is free. Acquire pairs with the release in the unlocks. */
static inline bool direct_mutex_take(uint32_t *word, uint32_t *seen) {
    *seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((*seen & DIRECT_LOCKED) == 0)
        if (__atomic_compare_exchange_n(word, seen, (*seen | DIRECT_LOCKED) & ~DIRECT_ACTIVE, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

/* mutex_queue.c, what the parking lot asks: its roles say what the functions are for. The bucket is locked. */
int direct_mutex_validate(struct sbt_lot_queue *q, struct sbt_waiter *w);
struct sbt_waiter *direct_mutex_successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result);
struct sbt_waiter *direct_mutex_held_up(struct sbt_lot_queue *q, struct sbt_waiter *w);
/* It has been freed, and may be gone if no waiter is queued: the waiter to notify, if none is on its way. */
sbt_lot_choose direct_mutex_wake_unless_woken;
/* A designated waker is on its way, and sleepers are left asleep because of that: is it late? */
bool direct_mutex_is_late(const struct sbt_lot_queue *q);

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
