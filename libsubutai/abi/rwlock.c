/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pthread_rwlock_*. Process-shared locks are glibc's. In ours the kind stays where glibc's initialisers put it. */
#include <errno.h>
#include <string.h>

#include "abi/abi.h"
#include "core/probes.h"

static inline bool theirs(const pthread_rwlock_t *l) {
    return sbt_marked(l, &sbt_layout.rwlock);
}

SBT_EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attr) {
    int shared = PTHREAD_PROCESS_PRIVATE, kind = PTHREAD_RWLOCK_DEFAULT_NP;
    sbt_init();
    if (attr != NULL) {
        pthread_rwlockattr_getpshared(attr, &shared);
        pthread_rwlockattr_getkind_np(attr, &kind);
    }
    if (sbt_all_theirs != 0 || shared == PTHREAD_PROCESS_SHARED)
        return sbt_real.pthread_rwlock_init(l, attr);
    memset(l, 0, sizeof *l);
    sbt_rwlock_of(l)->kind = (uint32_t)kind;
    return 0;
}

SBT_EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *l) {
    if (theirs(l))
        return THEIRS(pthread_rwlock_destroy(l));
    SBT_PROBE_THREADS1(rwlock_destroy, l);
    return sbt_engine.rwlock_destroy(l);
}

/* Apart: what leaves an order and comes back would cost the other calls registers. */
static SBT_NOINLINE int rdlock_theirs(pthread_rwlock_t *l) {
    return THEIRS_WAITS(pthread_rwlock_rdlock(l));
}

static SBT_NOINLINE int wrlock_theirs(pthread_rwlock_t *l) {
    return THEIRS_WAITS(pthread_rwlock_wrlock(l));
}

static SBT_NOINLINE int timedrdlock_theirs(pthread_rwlock_t *l, const struct timespec *at) {
    return THEIRS_WAITS(pthread_rwlock_timedrdlock(l, at));
}

static SBT_NOINLINE int clockrdlock_theirs(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    return THEIRS_WAITS(pthread_rwlock_clockrdlock(l, clock, at));
}

static SBT_NOINLINE int timedwrlock_theirs(pthread_rwlock_t *l, const struct timespec *at) {
    return THEIRS_WAITS(pthread_rwlock_timedwrlock(l, at));
}

static SBT_NOINLINE int clockwrlock_theirs(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    return THEIRS_WAITS(pthread_rwlock_clockwrlock(l, clock, at));
}

SBT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
    if (theirs(l))
        return rdlock_theirs(l);
    SBT_PROBE_THREADS1(rdlock_entry, l);
    return sbt_engine.rwlock_rdlock(l, NULL);
}

SBT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) {
    return theirs(l) ? THEIRS(pthread_rwlock_tryrdlock(l)) : sbt_engine.rwlock_tryrdlock(l);
}

SBT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
    if (theirs(l))
        return wrlock_theirs(l);
    SBT_PROBE_THREADS1(wrlock_entry, l);
    return sbt_engine.rwlock_wrlock(l, NULL);
}

SBT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l) {
    return theirs(l) ? THEIRS(pthread_rwlock_trywrlock(l)) : sbt_engine.rwlock_trywrlock(l);
}

static SBT_NOINLINE int unlock_theirs(pthread_rwlock_t *l) {
    return THEIRS(pthread_rwlock_unlock(l));
}

SBT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l) {
    sbt_progress();
    if (theirs(l))
        return unlock_theirs(l);
    SBT_PROBE_THREADS1(rwlock_unlock, l);
    return sbt_engine.rwlock_unlock(l);
}

/* glibc's timed forms refuse a bad clock or deadline even if they need not wait. */
static int timed(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at,
                 int (*lock)(pthread_rwlock_t *, const struct sbt_deadline *)) {
    struct sbt_deadline deadline = {clock, *at};
    int r = sbt_deadline_check(&deadline);
    return r != 0 ? r : lock(l, &deadline);
}

SBT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *at) {
    return theirs(l) ? timedrdlock_theirs(l, at) : timed(l, CLOCK_REALTIME, at, sbt_engine.rwlock_rdlock);
}

SBT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    return theirs(l) ? clockrdlock_theirs(l, clock, at) : timed(l, clock, at, sbt_engine.rwlock_rdlock);
}

SBT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *at) {
    return theirs(l) ? timedwrlock_theirs(l, at) : timed(l, CLOCK_REALTIME, at, sbt_engine.rwlock_wrlock);
}

SBT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    return theirs(l) ? clockwrlock_theirs(l, clock, at) : timed(l, clock, at, sbt_engine.rwlock_wrlock);
}

/* Names that old binaries, and weak references of libstdc++, bind. */
SBT_ALIAS(__pthread_rwlock_init, pthread_rwlock_init);
SBT_ALIAS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
SBT_ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
SBT_ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
SBT_ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
SBT_ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
SBT_ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);
