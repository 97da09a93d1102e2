/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interface between the object types of the software engine. */
#ifndef SBT_ENGINE_DIRECT_H
#define SBT_ENGINE_DIRECT_H

#include "engine/engine.h"
#include "wait/adapt.h"
#include "wait/parking_lot.h"

/* clang-format off */
/*
 * The mutex word.
 *
 * | bit    | set by                                      | cleared by                                    | meaning                                          |
 * |--------|---------------------------------------------|-----------------------------------------------|--------------------------------------------------|
 * | LOCKED | a thread that takes the mutex: fetch_or     | its owner; a hand-over leaves it set          | held, or kept for a waiter                       |
 * |        | (bts) on the fast path, CAS elsewhere       |                                               |                                                  |
 * | QUEUED | under the bucket lock                       | under the bucket lock                         | the parking lot has waiters with this key        |
 * | WOKEN  | under the bucket lock, when a waiter is     | under the bucket lock: by the designated      | the designated waker will look: wake no more     |
 * |        | notified; a hand-over sets it too           | waker, when it leaves or waits again, or when |                                                  |
 * |        |                                             | a handler holds it up; by a thread that       |                                                  |
 * |        |                                             | queues, or that moves waiters here, when the  |                                                  |
 * |        |                                             | designated waker is overdue or there is none  |                                                  |
 * | ACTIVE | a thread that looks again and again, while  | a waiter that takes the mutex by CAS (the     | a thread that is awake will look once more: an   |
 * |        | QUEUED, before each look                    | fast path leaves it set); a thread that       | unlock need not wake a sleeper                   |
 * |        |                                             | queues; an unlock that relies on it; a        |                                                  |
 * |        |                                             | handler's start                               |                                                  |
 * | SPUN   | a thread after many failed trylocks         | the owner, when no more of them have come     | threads wait by spinning on trylock: an unlock   |
 * |        |                                             |                                               | yields its core                                  |
 * | HANDED | the owner, under the bucket lock            | a notified waiter that takes the mutex, by    | no thread has the mutex; it is kept for a        |
 * |        |                                             | CAS; under the bucket lock: a thread that     | notified waiter                                  |
 * |        |                                             | queues and takes the mutex, when the          |                                                  |
 * |        |                                             | designated waker is overdue or there is none; |                                                  |
 * |        |                                             | with LOCKED, a thread that moves waiters here |                                                  |
 * |        |                                             | when that is so, the owner that has set it,   |                                                  |
 * |        |                                             | or a notified waiter that a handler holds up  |                                                  |
 * | SERVED | an owner that grants it, under the bucket   | the owner that it was granted, at its unlock; | a server runs the section (delegate.h): it ends  |
 * |        | lock                                        | it stays where that grants it to the next one | in the slow path                                 |
 * | TIMED  | a thread that has waited for the mutex and  | the owner, first of all at its unlock         | the section is timed (delegate_auto.h): it ends  |
 * |        | owns it now                                 |                                               | in the slow path                                 |
 *
 * Illegal: SERVED or TIMED without LOCKED; HANDED without LOCKED and QUEUED; WOKEN without QUEUED, because the designated waker is still queued. A
 * forked child is the exception for a moment: its parking lot is empty, and all three may be stale. An unlock that
 * finds no waiter clears them, and so does the next waiter that finds no designated waker.
 *
 * An unlock may rely on ACTIVE once, because the thread that sets it looks once more afterwards. A thread that queues
 * clears it, so no ACTIVE is left behind.
 */
/* clang-format on */
enum {
    DIRECT_LOCKED = 1,
    DIRECT_QUEUED = 2,
    DIRECT_WOKEN = 4,
    DIRECT_ACTIVE = 8,
    DIRECT_SPUN = 16,
    DIRECT_HANDED = 32,
    DIRECT_SERVED = 64,
    DIRECT_TIMED = 128
};

int direct_mutex_destroy(pthread_mutex_t *m);
int direct_mutex_lock(pthread_mutex_t *m);
int direct_mutex_trylock(pthread_mutex_t *m);
int direct_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline);
int direct_mutex_unlock(pthread_mutex_t *m);

/*
 * For conditions, which move their waiters to a mutex: how waiters wait there; and, with the mutex's bucket locked,
 * the waiter to notify after a move, or in place of a waiter that did not sleep. The owner's unlock sees moved waiters.
 */
extern const struct sbt_lot_role direct_mutex_waits;
sbt_lot_choose direct_mutex_after_move, direct_mutex_wake_another;

/*
 * At the end of a wait of a thread with asynchronous cancellation, which was deferred meanwhile. A cancellation that
 * came meanwhile acts here at the latest, and `give_back` gives back what the thread has got; NULL: nothing.
 */
void direct_be_asynchronous_again(void (*give_back)(void *), void *got);

int direct_cond_destroy(pthread_cond_t *c);
int direct_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline);
/*
 * The same for an engine that has the software serve a wait. The functions take and release the mutex, and return 0 or
 * an errno value; if `unlock` returns an errno value, there is no wait. `moves`: the mutex is this engine's, and
 * waiters may be moved to its queue.
 */
struct direct_released {
    int (*lock)(pthread_mutex_t *m);
    int (*unlock)(pthread_mutex_t *m);
    bool moves;
};
int direct_cond_wait_by(pthread_cond_t *c, pthread_mutex_t *m, const struct direct_released *released,
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

struct sbt_futex_moved;
int direct_futex_wait(uint32_t *word, bool shared, uint32_t expected, uint32_t bits,
                      const struct sbt_deadline *deadline, uint64_t in_ns);
uint32_t direct_futex_wake(uint32_t *word, bool shared, uint32_t n, uint32_t bits);
int direct_futex_requeue(uint32_t *from, uint32_t *to, bool shared, struct sbt_futex_moved *most,
                         const uint32_t *expected);

int direct_spin_lock(pthread_spinlock_t *s);
int direct_spin_trylock(pthread_spinlock_t *s);
int direct_spin_unlock(pthread_spinlock_t *s);

#endif
