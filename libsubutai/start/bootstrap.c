/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine before an engine is installed.
 *
 * A lock may be taken before any constructor of ours has run: by another library's constructor, or by an allocator
 * inside the dynamic linker. The first operation of any kind initialises the library, decides again whether the object
 * is glibc's, and makes the call once more. The second decision is needed because the marks of glibc's objects are
 * known only after the initialisation.
 *
 * Barriers are not here: they have no static initialiser, and their init function initialises the library.
 */
#include <errno.h>

#include "core/object.h"
#include "engine/engine.h"
#include "os/real.h"
#include "start/init.h"

/* Mutexes and spinlocks carry no mark that has to be learnt. */
static bool all_theirs(void) {
    sbt_init();
    return sbt_all_theirs != 0;
}

static bool theirs(const void *object, const struct sbt_mark *mark) {
    sbt_init();
    return sbt_marked(object, mark);
}

/* Semaphores report by errno, an engine by its result. */
static int error_of(int result) {
    return result == 0 ? 0 : errno;
}

/* The object is zero: glibc's, too, when it has been initialised. */
static void first_mutex_init(pthread_mutex_t *m, const void *site) {
    if (!all_theirs() && sbt_engine.mutex_init != NULL)
        sbt_engine.mutex_init(m, site);
}

static int first_mutex_destroy(pthread_mutex_t *m) {
    return all_theirs() ? sbt_real.pthread_mutex_destroy(m) : sbt_engine.mutex_destroy(m);
}

static int first_mutex_lock(pthread_mutex_t *m) {
    return all_theirs() ? sbt_real.pthread_mutex_lock(m) : sbt_engine.mutex_lock(m);
}

static int first_mutex_trylock(pthread_mutex_t *m) {
    return all_theirs() ? sbt_real.pthread_mutex_trylock(m) : sbt_engine.mutex_trylock(m);
}

static int first_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *d) {
    return all_theirs() ? sbt_real.pthread_mutex_clocklock(m, d->clock, &d->at) : sbt_engine.mutex_timedlock(m, d);
}

static int first_mutex_unlock(pthread_mutex_t *m) {
    return all_theirs() ? sbt_real.pthread_mutex_unlock(m) : sbt_engine.mutex_unlock(m);
}

static int first_cond_destroy(pthread_cond_t *c) {
    return theirs(c, &sbt_layout.cond) ? sbt_real.pthread_cond_destroy(c) : sbt_engine.cond_destroy(c);
}

static int first_cond_signal(pthread_cond_t *c) {
    return theirs(c, &sbt_layout.cond) ? sbt_real.pthread_cond_signal(c) : sbt_engine.cond_signal(c);
}

static int first_cond_broadcast(pthread_cond_t *c) {
    return theirs(c, &sbt_layout.cond) ? sbt_real.pthread_cond_broadcast(c) : sbt_engine.cond_broadcast(c);
}

static int first_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                           const struct sbt_deadline *d) {
    if (!theirs(c, &sbt_layout.cond))
        return sbt_engine.cond_wait(c, m, released, d);
    return d != NULL ? sbt_real.pthread_cond_clockwait(c, m, d->clock, &d->at) : sbt_real.pthread_cond_wait(c, m);
}

static int first_rwlock_destroy(pthread_rwlock_t *l) {
    return theirs(l, &sbt_layout.rwlock) ? sbt_real.pthread_rwlock_destroy(l) : sbt_engine.rwlock_destroy(l);
}

static int first_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *d) {
    if (!theirs(l, &sbt_layout.rwlock))
        return sbt_engine.rwlock_rdlock(l, d);
    return d != NULL ? sbt_real.pthread_rwlock_clockrdlock(l, d->clock, &d->at) : sbt_real.pthread_rwlock_rdlock(l);
}

static int first_rwlock_tryrdlock(pthread_rwlock_t *l) {
    return theirs(l, &sbt_layout.rwlock) ? sbt_real.pthread_rwlock_tryrdlock(l) : sbt_engine.rwlock_tryrdlock(l);
}

static int first_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *d) {
    if (!theirs(l, &sbt_layout.rwlock))
        return sbt_engine.rwlock_wrlock(l, d);
    return d != NULL ? sbt_real.pthread_rwlock_clockwrlock(l, d->clock, &d->at) : sbt_real.pthread_rwlock_wrlock(l);
}

static int first_rwlock_trywrlock(pthread_rwlock_t *l) {
    return theirs(l, &sbt_layout.rwlock) ? sbt_real.pthread_rwlock_trywrlock(l) : sbt_engine.rwlock_trywrlock(l);
}

static int first_rwlock_unlock(pthread_rwlock_t *l) {
    return theirs(l, &sbt_layout.rwlock) ? sbt_real.pthread_rwlock_unlock(l) : sbt_engine.rwlock_unlock(l);
}

static int first_sem_destroy(sem_t *s) {
    return theirs(s, &sbt_layout.sem) ? error_of(sbt_real.sem_destroy(s)) : sbt_engine.sem_destroy(s);
}

static int first_sem_wait(sem_t *s, const struct sbt_deadline *d) {
    if (!theirs(s, &sbt_layout.sem))
        return sbt_engine.sem_wait(s, d);
    return error_of(d != NULL ? sbt_real.sem_clockwait(s, d->clock, &d->at) : sbt_real.sem_wait(s));
}

static int first_sem_trywait(sem_t *s) {
    return theirs(s, &sbt_layout.sem) ? error_of(sbt_real.sem_trywait(s)) : sbt_engine.sem_trywait(s);
}

static int first_sem_post(sem_t *s) {
    return theirs(s, &sbt_layout.sem) ? error_of(sbt_real.sem_post(s)) : sbt_engine.sem_post(s);
}

static int first_sem_getvalue(sem_t *s, int *value) {
    return theirs(s, &sbt_layout.sem) ? error_of(sbt_real.sem_getvalue(s, value)) : sbt_engine.sem_getvalue(s, value);
}

static int first_spin_lock(pthread_spinlock_t *s) {
    return all_theirs() ? sbt_real.pthread_spin_lock(s) : sbt_engine.spin_lock(s);
}

static int first_spin_trylock(pthread_spinlock_t *s) {
    return all_theirs() ? sbt_real.pthread_spin_trylock(s) : sbt_engine.spin_trylock(s);
}

static int first_spin_unlock(pthread_spinlock_t *s) {
    return all_theirs() ? sbt_real.pthread_spin_unlock(s) : sbt_engine.spin_unlock(s);
}

static void nothing(void) {}

struct sbt_engine sbt_engine = {
    .name = "none yet",
    .thread_enter = nothing,
    .thread_exit = nothing,
    .fork_child = nothing,
    .mutex_init = first_mutex_init,
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
