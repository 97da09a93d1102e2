/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The software engine's own interface: what its object types need of each other. */
#ifndef SBT_ENGINE_DIRECT_H
#define SBT_ENGINE_DIRECT_H

#include "engine/engine.h"
#include "wait/adapt.h"
#include "wait/lot.h"

/* clang-format off */
/*
 * The mutex word.
 *
 * | bit    | set by                                      | cleared by                                    | meaning                                          |
 * |--------|---------------------------------------------|-----------------------------------------------|--------------------------------------------------|
 * | LOCKED | whoever takes the mutex, CAS                | its owner; a hand-over leaves it set          | held, or kept for somebody                       |
 * | QUEUED | under the bucket lock                       | under the bucket lock                         | the lot has waiters with this key                |
 * | WOKEN  | under the bucket lock                       | under the bucket lock                         | one of them is counted on to try: wake no more   |
 * | ACTIVE | a thread that looks again and again, while  | whoever takes the mutex or queues; an unlock  | somebody awake is about to take it: an unlock    |
 * |        | QUEUED                                      | that relies on it                             | need not wake anybody                            |
 * | SPUN   | a thread whose trylock fails time after     | its holder, when there has been no more of    | threads wait for it by spinning: an unlock gives |
 * |        | time                                        | that                                          | the core away                                    |
 * | HANDED | its owner, under the bucket lock            | a waiter that was told, with any atomic; or   | nobody's, kept for a waiter that is on its way   |
 * |        |                                             | who set it, with LOCKED, under the bucket     |                                                  |
 * |        |                                             | lock                                          |                                                  |
 *
 * Illegal: HANDED without LOCKED and QUEUED; WOKEN without QUEUED (the woken waiter is still queued), except for a
 * moment in a forked child, whose lot is empty: there all three may be stale. An unlock that finds nobody clears them,
 * and so does the next waiter that finds nobody inflight. ACTIVE is set by a thread that will look once more after it
 * has set it, so an unlock may rely on it once; a thread that queues clears it, so it cannot be left behind.
 */
/* clang-format on */
enum {
    DIRECT_LOCKED = 1,
    DIRECT_QUEUED = 2,
    DIRECT_WOKEN = 4,
    DIRECT_ACTIVE = 8,
    DIRECT_SPUN = 16,
    DIRECT_HANDED = 32
};

int direct_mutex_destroy(pthread_mutex_t *m);
int direct_mutex_lock(pthread_mutex_t *m);
int direct_mutex_trylock(pthread_mutex_t *m);
int direct_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline);
int direct_mutex_unlock(pthread_mutex_t *m);

/*
 * For conditions. Put the waiter `w`, which is in no queue, into m's queue in the locked bucket `to`.
 * direct_mutex_wake_moved then makes sure, before the bucket is unlocked, that somebody will wake it: the owner's
 * unlock, or a waiter already inflight, or, if there is neither, the first of the queue, whose word is returned for
 * direct_mutex_wake_told.
 */
void direct_mutex_adopt(pthread_mutex_t *m, struct sbt_waiter *w, struct sbt_bucket *to);
uint32_t *direct_mutex_wake_moved(pthread_mutex_t *m, struct sbt_bucket *b);
/* Wake by that word, or NULL, once the bucket is unlocked. By address: the mutex may be gone. */
void direct_mutex_wake_told(pthread_mutex_t *m, uint32_t *word);

/*
 * Finish a lock for a waiter that is in m's queue: 0 when the mutex is held, ETIMEDOUT when it is not and the waiter
 * has left. Waits actively while `active` has steps left.
 */
int direct_mutex_finish(pthread_mutex_t *m, struct sbt_waiter *w, const struct sbt_deadline *deadline,
                        struct sbt_active *active);

int direct_cond_destroy(pthread_cond_t *c);
int direct_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline);
int direct_cond_signal(pthread_cond_t *c);
int direct_cond_broadcast(pthread_cond_t *c);

int direct_barrier_init(pthread_barrier_t *b, unsigned count);
int direct_barrier_destroy(pthread_barrier_t *b);
int direct_barrier_wait(pthread_barrier_t *b);

int direct_rwlock_destroy(pthread_rwlock_t *l);
int direct_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
int direct_rwlock_tryrdlock(pthread_rwlock_t *l);
int direct_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
int direct_rwlock_trywrlock(pthread_rwlock_t *l);
int direct_rwlock_unlock(pthread_rwlock_t *l);

int direct_sem_init(sem_t *s, unsigned value);
int direct_sem_destroy(sem_t *s);
int direct_sem_wait(sem_t *s, const struct sbt_deadline *deadline);
int direct_sem_trywait(sem_t *s);
int direct_sem_post(sem_t *s);
int direct_sem_getvalue(sem_t *s, int *value);

int direct_spin_lock(pthread_spinlock_t *s);
int direct_spin_trylock(pthread_spinlock_t *s);
int direct_spin_unlock(pthread_spinlock_t *s);

#endif
