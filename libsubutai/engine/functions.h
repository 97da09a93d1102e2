/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For the tables of the engines (engine.h): all functions for one kind of object, of the engine with that prefix. So a
 * table says which engine serves which objects, and no function is left out. What only some engines have stands there
 * by itself.
 */
#ifndef SBT_ENGINE_FUNCTIONS_H
#define SBT_ENGINE_FUNCTIONS_H

#define SBT_MUTEXES_OF(engine)                                                                                         \
    .mutex_destroy = engine##_mutex_destroy, .mutex_lock = engine##_mutex_lock,                                        \
    .mutex_trylock = engine##_mutex_trylock, .mutex_timedlock = engine##_mutex_timedlock,                              \
    .mutex_unlock = engine##_mutex_unlock

#define SBT_CONDS_OF(engine)                                                                                           \
    .cond_destroy = engine##_cond_destroy, .cond_wait = engine##_cond_wait, .cond_signal = engine##_cond_signal,       \
    .cond_broadcast = engine##_cond_broadcast

#define SBT_BARRIERS_OF(engine)                                                                                        \
    .barrier_init = engine##_barrier_init, .barrier_destroy = engine##_barrier_destroy,                                \
    .barrier_wait = engine##_barrier_wait

#define SBT_RWLOCKS_OF(engine)                                                                                         \
    .rwlock_destroy = engine##_rwlock_destroy, .rwlock_rdlock = engine##_rwlock_rdlock,                                \
    .rwlock_tryrdlock = engine##_rwlock_tryrdlock, .rwlock_wrlock = engine##_rwlock_wrlock,                            \
    .rwlock_trywrlock = engine##_rwlock_trywrlock, .rwlock_unlock = engine##_rwlock_unlock

#define SBT_SEMS_OF(engine)                                                                                            \
    .sem_init = engine##_sem_init, .sem_destroy = engine##_sem_destroy, .sem_wait = engine##_sem_wait,                 \
    .sem_trywait = engine##_sem_trywait, .sem_post = engine##_sem_post, .sem_getvalue = engine##_sem_getvalue

#define SBT_FUTEXES_OF(engine)                                                                                         \
    .futex_wait = engine##_futex_wait, .futex_wake = engine##_futex_wake, .futex_requeue = engine##_futex_requeue

#define SBT_SPINS_OF(engine)                                                                                           \
    .spin_lock = engine##_spin_lock, .spin_trylock = engine##_spin_trylock, .spin_unlock = engine##_spin_unlock

#endif
