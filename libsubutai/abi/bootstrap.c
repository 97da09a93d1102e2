/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine before there is one. A lock may be taken before any constructor of ours has run (other libraries'
 * constructors, an allocator inside the dynamic linker): the first operation of any kind initialises the library and is
 * then made again from the top, because whose the object is may be decided differently now.
 */
#include <errno.h>

#include "abi/abi.h"

/* Barriers are not here: they have no static initialiser, and their init function initialises the library. */
#define FIRST(name, parameters, call)                                                                                  \
    static int name parameters {                                                                                       \
        sbt_init();                                                                                                    \
        return call;                                                                                                   \
    }

FIRST(first_mutex_destroy, (pthread_mutex_t * m), ABI(pthread_mutex_destroy)(m))
FIRST(first_mutex_lock, (pthread_mutex_t * m), ABI(pthread_mutex_lock)(m))
FIRST(first_mutex_trylock, (pthread_mutex_t * m), ABI(pthread_mutex_trylock)(m))
FIRST(first_mutex_timedlock, (pthread_mutex_t * m, const struct sbt_deadline *d),
      ABI(pthread_mutex_clocklock)(m, d->clock, &d->at))
FIRST(first_mutex_unlock, (pthread_mutex_t * m), ABI(pthread_mutex_unlock)(m))
FIRST(first_cond_destroy, (pthread_cond_t * c), ABI(pthread_cond_destroy)(c))
FIRST(first_cond_signal, (pthread_cond_t * c), ABI(pthread_cond_signal)(c))
FIRST(first_cond_broadcast, (pthread_cond_t * c), ABI(pthread_cond_broadcast)(c))
FIRST(first_rwlock_destroy, (pthread_rwlock_t * l), ABI(pthread_rwlock_destroy)(l))
FIRST(first_rwlock_rdlock, (pthread_rwlock_t * l, const struct sbt_deadline *d),
      d != NULL ? ABI(pthread_rwlock_clockrdlock)(l, d->clock, &d->at) : ABI(pthread_rwlock_rdlock)(l))
FIRST(first_rwlock_tryrdlock, (pthread_rwlock_t * l), ABI(pthread_rwlock_tryrdlock)(l))
FIRST(first_rwlock_wrlock, (pthread_rwlock_t * l, const struct sbt_deadline *d),
      d != NULL ? ABI(pthread_rwlock_clockwrlock)(l, d->clock, &d->at) : ABI(pthread_rwlock_wrlock)(l))
FIRST(first_rwlock_trywrlock, (pthread_rwlock_t * l), ABI(pthread_rwlock_trywrlock)(l))
FIRST(first_rwlock_unlock, (pthread_rwlock_t * l), ABI(pthread_rwlock_unlock)(l))

/* Semaphores report by errno, an engine by its result. */
FIRST(first_sem_wait, (sem_t * s, const struct sbt_deadline *d),
      (d != NULL ? ABI(sem_clockwait)(s, d->clock, &d->at) : ABI(sem_wait)(s)) == 0 ? 0 : errno)
FIRST(first_sem_trywait, (sem_t * s), ABI(sem_trywait)(s) == 0 ? 0 : errno)
FIRST(first_sem_post, (sem_t * s), ABI(sem_post)(s) == 0 ? 0 : errno)
FIRST(first_sem_getvalue, (sem_t * s, int *value), ABI(sem_getvalue)(s, value))
FIRST(first_spin_lock, (pthread_spinlock_t * s), ABI(pthread_spin_lock)(s))
FIRST(first_spin_trylock, (pthread_spinlock_t * s), ABI(pthread_spin_trylock)(s))
FIRST(first_spin_unlock, (pthread_spinlock_t * s), ABI(pthread_spin_unlock)(s))

static int first_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                           const struct sbt_deadline *d) {
    (void)released;
    sbt_init();
    return d != NULL ? ABI(pthread_cond_clockwait)(c, m, d->clock, &d->at) : ABI(pthread_cond_wait)(c, m);
}

static int first_sem_destroy(sem_t *s) {
    (void)s;
    return 0;
}

static void nothing(void) {}

struct sbt_engine sbt_engine = {
    .name = "none yet",
    .thread_enter = nothing,
    .thread_exit = nothing,
    .fork_child = nothing,
    .mutex_destroy = first_mutex_destroy,
    .mutex_lock = first_mutex_lock,
    .mutex_trylock = first_mutex_trylock,
    .mutex_timedlock = first_mutex_timedlock,
    .mutex_unlock = first_mutex_unlock,
    .cond_destroy = first_cond_destroy,
    .cond_wait = first_cond_wait,
    .cond_signal = first_cond_signal,
    .cond_broadcast = first_cond_broadcast,
    .rwlock_destroy = first_rwlock_destroy,
    .rwlock_rdlock = first_rwlock_rdlock,
    .rwlock_tryrdlock = first_rwlock_tryrdlock,
    .rwlock_wrlock = first_rwlock_wrlock,
    .rwlock_trywrlock = first_rwlock_trywrlock,
    .rwlock_unlock = first_rwlock_unlock,
    .sem_destroy = first_sem_destroy,
    .sem_wait = first_sem_wait,
    .sem_trywait = first_sem_trywait,
    .sem_post = first_sem_post,
    .sem_getvalue = first_sem_getvalue,
    .spin_lock = first_spin_lock,
    .spin_trylock = first_spin_trylock,
    .spin_unlock = first_spin_unlock,
};
