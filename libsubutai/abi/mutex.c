/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_mutex_*. Plain mutexes (normal and adaptive) go straight to the engine. Recursion and error checking are done
 * here, above any engine, with the owner's thread id (sbt_thread_owner) and the depth in the object. Robust,
 * priority-inheritance, priority-protect and process-shared mutexes go to glibc.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/abi.h"
#include "core/probes.h"
#include "switch/switch.h"

/*
 * Is it neither normal nor adaptive, or not ours? Types 1 and 2 have bit 1 set when 1 is added, types 0 and 3 do not.
 */
static inline bool special(uint32_t kind) {
    return ((kind & SBT_KIND_THEIRS) | ((kind + 1) & 2)) != 0;
}

static inline uint32_t kind_of(const pthread_mutex_t *m) {
    return sbt_mutex_kind(m) | sbt_all_theirs;
}

static inline bool theirs(uint32_t kind) {
    return (kind & SBT_KIND_THEIRS) != 0;
}

/* The kind, read again after the library has been initialised: the process's first lock may be a recursive one. */
static inline uint32_t final_kind_of(const pthread_mutex_t *m) {
    sbt_init();
    return kind_of(m);
}

/* Relaxed: only the caller's own id can match, and the caller wrote it. */
static inline bool owned_by_caller(const struct sbt_mutex *mx) {
    return __atomic_load_n(&mx->owner, __ATOMIC_RELAXED) == sbt_thread_owner();
}

/* Relaxed: a thread that is not the owner may look, to no effect (observe/mutex.c). */
static inline void set_count(struct sbt_mutex *mx, uint32_t count) {
    __atomic_store_n(&mx->count, count, __ATOMIC_RELAXED);
}

static void own(struct sbt_mutex *mx) {
    set_count(mx, 0);
    __atomic_store_n(&mx->owner, sbt_thread_owner(), __ATOMIC_RELAXED);
}

/* The caller owns the mutex already: the result of a lock or trylock of it. */
static int relock(struct sbt_mutex *mx, uint32_t kind, int errorcheck_result) {
    if ((kind & SBT_KIND_TYPE) == SBT_KIND_ERRORCHECK)
        return errorcheck_result;
    if (mx->count == UINT32_MAX - 1)
        return EAGAIN;
    set_count(mx, mx->count + 1);
    return 0;
}

/*
 * The kernel knows the owner of a priority mutex by its kernel thread. So the owner is pinned from before the lock to
 * after the unlock.
 */
static inline void before_theirs(uint32_t kind) {
    if (SBT_UNLIKELY((kind & SBT_KIND_PRIORITY) != 0))
        sbt_pin_hold();
}

/* `r` is the result of taking it: any result but these two leaves the mutex alone. */
static inline int after_theirs(uint32_t kind, int r) {
    if (SBT_UNLIKELY((kind & SBT_KIND_PRIORITY) != 0) && r != 0 && r != EOWNERDEAD)
        sbt_pin_release();
    return r;
}

static SBT_NOINLINE int lock_special(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t kind = final_kind_of(m);
    if (theirs(kind)) {
        before_theirs(kind);
        return after_theirs(kind, THEIRS_WAITS(pthread_mutex_lock(m)));
    }
    if (owned_by_caller(mx))
        return relock(mx, kind, EDEADLK);
    int r = sbt_engine.mutex_lock(m);
    if (r == 0)
        own(mx);
    return r;
}

SBT_EXPORT int pthread_mutex_lock(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    SBT_PROBE_THREADS1(mutex_entry, m);
    sbt_progress();
    return SBT_LIKELY(!special(kind)) ? sbt_engine.mutex_lock(m) : lock_special(m);
}

SBT_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    struct sbt_mutex *mx = sbt_mutex_of(m);
    if (SBT_LIKELY(!special(kind)))
        return sbt_engine.mutex_trylock(m);
    kind = final_kind_of(m);
    if (theirs(kind)) {
        before_theirs(kind);
        return after_theirs(kind, THEIRS(pthread_mutex_trylock(m)));
    }
    if (owned_by_caller(mx))
        return relock(mx, kind, EBUSY);
    int r = sbt_engine.mutex_trylock(m);
    if (r == 0)
        own(mx);
    return r;
}

static int timedlock(pthread_mutex_t *m, uint32_t kind, clockid_t clock, const struct timespec *at) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    struct sbt_deadline deadline = {clock, *at};
    SBT_PROBE_THREADS2(mutex_timedlock_entry, m, at);
    if (special(kind) && owned_by_caller(mx))
        return relock(mx, kind, EDEADLK);
    int r = sbt_engine.mutex_timedlock(m, &deadline);
    if (r == 0) {
        SBT_PROBE_THREADS1(mutex_timedlock_acquired, m);
        if (special(kind))
            own(mx);
    }
    return r;
}

SBT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at) {
    uint32_t kind = final_kind_of(m);
    if (theirs(kind)) {
        before_theirs(kind);
        return after_theirs(kind, THEIRS_WAITS(pthread_mutex_timedlock(m, at)));
    }
    return timedlock(m, kind, CLOCK_REALTIME, at);
}

SBT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at) {
    uint32_t kind = final_kind_of(m);
    if (theirs(kind)) {
        before_theirs(kind);
        return after_theirs(kind, THEIRS_WAITS(pthread_mutex_clocklock(m, clock, at)));
    }
    return clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC ? EINVAL : timedlock(m, kind, clock, at);
}

static SBT_NOINLINE int unlock_special(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t kind = final_kind_of(m);
    if (theirs(kind)) {
        int r = THEIRS(pthread_mutex_unlock(m));
        if (r == 0 && (kind & SBT_KIND_PRIORITY) != 0)
            sbt_pin_release();
        return r;
    }
    if (!owned_by_caller(mx))
        return EPERM;
    if (mx->count > 0) {
        set_count(mx, mx->count - 1);
        return 0;
    }
    __atomic_store_n(&mx->owner, 0, __ATOMIC_RELAXED);
    SBT_PROBE_THREADS1(mutex_release, m);
    return sbt_engine.mutex_unlock(m);
}

SBT_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    if (SBT_UNLIKELY(special(kind)))
        return unlock_special(m);
    SBT_PROBE_THREADS1(mutex_release, m);
    return sbt_engine.mutex_unlock(m);
}

/*
 * glibc reads the attribute and refuses what it must. If glibc has made a mutex that is served, only the kind is kept.
 */
SBT_EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr) {
    if (attr != NULL || sbt_all_theirs != 0) {
        int r = THEIRS(pthread_mutex_init(m, attr));
        if (r != 0 || theirs(kind_of(m)))
            return r;
    }
    int32_t kind = attr != NULL ? sbt_mutex_of(m)->kind : 0;
    memset(m, 0, sizeof *m);
    sbt_mutex_of(m)->kind = kind;
    if (SBT_UNLIKELY(sbt_engine.mutex_init != NULL))
        sbt_engine.mutex_init(m, __builtin_return_address(0));
    SBT_PROBE_THREADS1(mutex_init, m);
    return 0;
}

SBT_EXPORT int pthread_mutex_destroy(pthread_mutex_t *m) {
    if (theirs(kind_of(m)))
        return THEIRS(pthread_mutex_destroy(m));
    if (sbt_mutex_kind(m) >= SBT_KIND_WAIT)
        return EBUSY;
    SBT_PROBE_THREADS1(mutex_destroy, m);
    int r = sbt_engine.mutex_destroy(m);
    if (r == 0)
        sbt_mutex_of(m)->kind = SBT_KIND_DESTROYED; /* as glibc does: later use is refused with EINVAL */
    return r;
}

/*
 * pthread_mutex_consistent and the functions of the priority ceiling are not defined here. They look at the kind, which
 * is where glibc put it, and so refuse our mutexes with EINVAL by themselves.
 */
SBT_ALIAS(__pthread_mutex_init, pthread_mutex_init);
SBT_ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
SBT_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
SBT_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
SBT_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);
