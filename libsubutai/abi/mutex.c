/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_mutex_*. Plain mutexes (normal and adaptive) go straight to the engine; recursion and error checking are done
 * here, over any engine, with the owner's kernel thread id and the depth in the object; robust, PI, priority-protect
 * and process-shared ones go to glibc.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/abi.h"
#include "switch/switch.h"

/* Neither normal nor adaptive, or not ours: types 1 and 2 have bit 1 set when 1 is added, types 0 and 3 do not. */
static inline bool special(uint32_t kind) {
    return ((kind & SBT_KIND_THEIRS) | ((kind + 1) & 2)) != 0;
}

static inline uint32_t kind_of(const pthread_mutex_t *m) {
    return (uint32_t)((const struct sbt_mutex *)m)->kind | sbt_all_theirs;
}

static inline bool theirs(uint32_t kind) {
    return (kind & SBT_KIND_THEIRS) != 0;
}

/* The kind again, once it is certain who serves: the process's first lock may be a recursive one. */
static inline uint32_t settled_kind_of(const pthread_mutex_t *m) {
    sbt_init();
    return kind_of(m);
}

/* Relaxed: only the caller's own id can match, and the caller wrote that itself. */
static inline bool owned_by_caller(const struct sbt_mutex *mx) {
    return __atomic_load_n(&mx->owner, __ATOMIC_RELAXED) == sbt_thread_tid();
}

static void own(struct sbt_mutex *mx) {
    mx->count = 0;
    __atomic_store_n(&mx->owner, sbt_thread_tid(), __ATOMIC_RELAXED);
}

/* The caller holds it already: what a lock or trylock of it returns. */
static int relock(struct sbt_mutex *mx, uint32_t kind, int errorcheck_result) {
    if ((kind & SBT_KIND_TYPE) == SBT_KIND_ERRORCHECK)
        return errorcheck_result;
    if (mx->count == UINT32_MAX - 1)
        return EAGAIN;
    mx->count++;
    return 0;
}

/*
 * Of a mutex whose owner the kernel knows, the owner stays on its own kernel thread from the lock to the unlock.
 * `call` takes it; any result but these two leaves it alone.
 */
#define TAKE_THEIRS(kind, call)                                                                                        \
    do {                                                                                                               \
        if (SBT_LIKELY(((kind)&SBT_KIND_PRIORITY) == 0))                                                               \
            return THEIRS(call);                                                                                       \
        sbt_switch_hold_home();                                                                                        \
        int taken = THEIRS(call);                                                                                      \
        if (taken != 0 && taken != EOWNERDEAD)                                                                         \
            sbt_switch_release();                                                                                      \
        return taken;                                                                                                  \
    } while (0)

static SBT_NOINLINE int lock_special(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t kind = settled_kind_of(m);
    if (theirs(kind))
        TAKE_THEIRS(kind, pthread_mutex_lock(m));
    if (owned_by_caller(mx))
        return relock(mx, kind, EDEADLK);
    int r = sbt_engine.mutex_lock(m);
    if (r == 0)
        own(mx);
    return r;
}

SBT_EXPORT int ABI(pthread_mutex_lock)(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    return SBT_LIKELY(!special(kind)) ? sbt_engine.mutex_lock(m) : lock_special(m);
}

SBT_EXPORT int ABI(pthread_mutex_trylock)(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    struct sbt_mutex *mx = sbt_mutex_of(m);
    if (SBT_LIKELY(!special(kind)))
        return sbt_engine.mutex_trylock(m);
    kind = settled_kind_of(m);
    if (theirs(kind))
        TAKE_THEIRS(kind, pthread_mutex_trylock(m));
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
    if (!special(kind))
        return sbt_engine.mutex_timedlock(m, &deadline);
    if (owned_by_caller(mx))
        return relock(mx, kind, EDEADLK);
    int r = sbt_engine.mutex_timedlock(m, &deadline);
    if (r == 0)
        own(mx);
    return r;
}

SBT_EXPORT int ABI(pthread_mutex_timedlock)(pthread_mutex_t *m, const struct timespec *at) {
    uint32_t kind = settled_kind_of(m);
    if (theirs(kind))
        TAKE_THEIRS(kind, pthread_mutex_timedlock(m, at));
    return timedlock(m, kind, CLOCK_REALTIME, at);
}

SBT_EXPORT int ABI(pthread_mutex_clocklock)(pthread_mutex_t *m, clockid_t clock, const struct timespec *at) {
    uint32_t kind = settled_kind_of(m);
    if (theirs(kind))
        TAKE_THEIRS(kind, pthread_mutex_clocklock(m, clock, at));
    return clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC ? EINVAL : timedlock(m, kind, clock, at);
}

static SBT_NOINLINE int unlock_special(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t kind = settled_kind_of(m);
    if (theirs(kind)) {
        int r = THEIRS(pthread_mutex_unlock(m));
        if (r == 0 && (kind & SBT_KIND_PRIORITY) != 0)
            sbt_switch_release();
        return r;
    }
    if (!owned_by_caller(mx))
        return EPERM;
    if (mx->count > 0) {
        mx->count--;
        return 0;
    }
    __atomic_store_n(&mx->owner, 0, __ATOMIC_RELAXED);
    return sbt_engine.mutex_unlock(m);
}

SBT_EXPORT int ABI(pthread_mutex_unlock)(pthread_mutex_t *m) {
    uint32_t kind = kind_of(m);
    return SBT_LIKELY(!special(kind)) ? sbt_engine.mutex_unlock(m) : unlock_special(m);
}

/*
 * glibc reads the attribute and refuses what it must; where the mutex it made is one of ours, only the kind is kept.
 */
SBT_EXPORT int ABI(pthread_mutex_init)(pthread_mutex_t *m, const pthread_mutexattr_t *attr) {
    if (attr != NULL || sbt_all_theirs != 0) {
        int r = THEIRS(pthread_mutex_init(m, attr));
        if (r != 0 || theirs(kind_of(m)))
            return r;
    }
    int32_t kind = attr != NULL ? sbt_mutex_of(m)->kind : 0;
    memset(m, 0, sizeof *m);
    sbt_mutex_of(m)->kind = kind;
    return 0;
}

SBT_EXPORT int ABI(pthread_mutex_destroy)(pthread_mutex_t *m) {
    if (theirs(kind_of(m)))
        return THEIRS(pthread_mutex_destroy(m));
    int r = sbt_engine.mutex_destroy(m);
    if (r == 0)
        sbt_mutex_of(m)->kind = SBT_KIND_DESTROYED; /* as glibc does: later use is refused with EINVAL */
    return r;
}

/*
 * Not defined here: pthread_mutex_consistent and the priority ceiling's functions look at the kind, which is where
 * glibc put it, and so tell our mutexes (EINVAL) from glibc's own by themselves.
 */
SBT_ALIAS(ABI(__pthread_mutex_init), ABI(pthread_mutex_init));
SBT_ALIAS(ABI(__pthread_mutex_destroy), ABI(pthread_mutex_destroy));
SBT_ALIAS(ABI(__pthread_mutex_lock), ABI(pthread_mutex_lock));
SBT_ALIAS(ABI(__pthread_mutex_trylock), ABI(pthread_mutex_trylock));
SBT_ALIAS(ABI(__pthread_mutex_unlock), ABI(pthread_mutex_unlock));
