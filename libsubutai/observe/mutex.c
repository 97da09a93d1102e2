/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_mutex_*, observed. Acquisitions are counted while the mutex is held, so their numbers are the order in which
 * threads had it. Of a recursive mutex the outermost lock and unlock are events, and the inner ones are not.
 */
#include <errno.h>

#include "observe/observe.h"

/*
 * Does the caller hold it exactly once? Relaxed: a thread that does not own it gets its error, whatever this says.
 * Our mutexes count from 0 and glibc's from 1, in the same place.
 */
static bool held_once(const pthread_mutex_t *m) {
    const struct sbt_mutex *mx = (const struct sbt_mutex *)m;
    uint32_t kind = (uint32_t)mx->kind | sbt_all_theirs;
    uint32_t once = (kind & SBT_KIND_THEIRS) != 0 ? 1 : 0;
    return (kind & SBT_KIND_TYPE) != SBT_KIND_RECURSIVE || __atomic_load_n(&mx->count, __ATOMIC_RELAXED) == once;
}

static int locked(struct rec_call *c, const pthread_mutex_t *m, int r) {
    if (r == 0 || r == EOWNERDEAD) {
        if (!held_once(m)) {
            rec_drop(c);
            return r;
        }
        c->event.order = rec_acquired(c->node);
    }
    rec_leave(c, r);
    return r;
}

/* ---- in a profile ---- */

static int wait(void *m, const struct rec_limit *limit) {
    (void)limit;
    return sbt_pthread_mutex_lock(m);
}

static int wait_timed(void *m, const struct rec_limit *limit) {
    return sbt_pthread_mutex_timedlock(m, limit->at);
}

static int wait_clock(void *m, const struct rec_limit *limit) {
    return sbt_pthread_mutex_clocklock(m, limit->clock, limit->at);
}

static int unlock(void *m) {
    return sbt_pthread_mutex_unlock(m);
}

/*
 * A lock. Trylock says whether it has to wait, and takes the mutex from waiters as a lock would. Not of a robust mutex:
 * glibc's trylock leaves one that is not recoverable locked.
 */
static inline int profile_lock(pthread_mutex_t *m, int (*slowly)(void *, const struct rec_limit *),
                               const struct rec_limit *limit, const void *site) {
    struct rec_key key = {(uintptr_t)m, (uintptr_t)site, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, false, 0};
    rec_profile_expect(&key);
    bool robust = (sbt_mutex_kind(m) & SBT_KIND_ROBUST) != 0;
    int r = SBT_UNLIKELY(robust || rec_is_refusable(limit)) ? EBUSY : sbt_pthread_mutex_trylock(m);
    if (SBT_UNLIKELY(r != 0 && r != EOWNERDEAD))
        return rec_profile_wait(&key, slowly, limit);
    if (held_once(m))
        rec_profile_acquired(&key);
    return r;
}

static int profile_trylock(pthread_mutex_t *m, const void *site) {
    int r = sbt_pthread_mutex_trylock(m);
    bool failed = r != 0 && r != EOWNERDEAD;
    struct rec_key key = {(uintptr_t)m, (uintptr_t)site, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, failed, 0};
    if (failed)
        rec_profile_count(&key);
    else if (held_once(m))
        rec_profile_acquired(&key);
    return r;
}

static inline int profile_unlock(pthread_mutex_t *m, const void *site) {
    struct rec_key key = {(uintptr_t)m, (uintptr_t)site, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, false, 0};
    bool last = held_once(m);
    uint64_t since_ns = last ? rec_profile_releasing(m) : 0;
    bool keeps = last && rec_is_waited_for(m) && rec_hint_keeps(m, since_ns);
    return keeps ? rec_profile_release(&key, unlock) : sbt_pthread_mutex_unlock(m);
}

/* ---- the functions ---- */

SBT_EXPORT int pthread_mutex_lock(pthread_mutex_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(m, wait, NULL, REC_SITE_HERE);
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked(&c, m, sbt_pthread_mutex_lock(m));
}

SBT_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return profile_trylock(m, REC_SITE_HERE);
    rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked(&c, m, sbt_pthread_mutex_trylock(m));
}

SBT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(m, wait_timed, &(struct rec_limit){.at = at}, REC_SITE_HERE);
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked(&c, m, sbt_pthread_mutex_timedlock(m, at));
}

SBT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(m, wait_clock, &(struct rec_limit){clock, at}, REC_SITE_HERE);
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked(&c, m, sbt_pthread_mutex_clocklock(m, clock, at));
}

SBT_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return profile_unlock(m, REC_SITE_HERE);
    if (!held_once(m) || !rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return sbt_pthread_mutex_unlock(m);
    int r = sbt_pthread_mutex_unlock(m);
    rec_leave(&c, r);
    return r;
}

SBT_EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr) {
    int r = sbt_pthread_mutex_init(m, attr);
    if (r == 0)
        rec_init(SBT_TRACE_MUTEX, m, 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int pthread_mutex_destroy(pthread_mutex_t *m) {
    struct rec_call call;
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_MUTEX, m, REC_SITE_HERE, sbt_pthread_mutex_destroy(m));
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_mutex_destroy(m));
}

SBT_ALIAS(__pthread_mutex_init, pthread_mutex_init);
SBT_ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
SBT_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
SBT_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
SBT_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* C11's functions have results of their own; the trace has them as errno values. */
SBT_EXPORT int mtx_init(mtx_t *m, int type) {
    int r = sbt_mtx_init(m, type);
    if (r == thrd_success)
        rec_init(SBT_TRACE_MUTEX, m, 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT void mtx_destroy(mtx_t *m) {
    struct rec_call c;
    if (rec_profiles()) {
        sbt_mtx_destroy(m);
        rec_profile_destroyed(SBT_TRACE_MUTEX, m, REC_SITE_HERE, 0);
        return;
    }
    rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    sbt_mtx_destroy(m);
    rec_destroyed(&c, 0);
}

/* C11's mutexes are POSIX ones with other results; the engines serve them alike (abi/c11.c). */
static int c11_of_errno(int r) {
    return r == 0           ? thrd_success
           : r == EBUSY     ? thrd_busy
           : r == ETIMEDOUT ? thrd_timedout
           : r == ENOMEM    ? thrd_nomem
                            : thrd_error;
}

static int locked_c11(struct rec_call *c, const mtx_t *m, int r) {
    locked(c, (const pthread_mutex_t *)m, rec_errno_of_c11(r));
    return r;
}

SBT_EXPORT int mtx_lock(mtx_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return c11_of_errno(profile_lock((pthread_mutex_t *)m, wait, NULL, REC_SITE_HERE));
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked_c11(&c, m, sbt_mtx_lock(m));
}

SBT_EXPORT int mtx_trylock(mtx_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return c11_of_errno(profile_trylock((pthread_mutex_t *)m, REC_SITE_HERE));
    rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked_c11(&c, m, sbt_mtx_trylock(m));
}

SBT_EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return c11_of_errno(
            profile_lock((pthread_mutex_t *)m, wait_timed, &(struct rec_limit){.at = at}, REC_SITE_HERE));
    rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    return locked_c11(&c, m, sbt_mtx_timedlock(m, at));
}

SBT_EXPORT int mtx_unlock(mtx_t *m) {
    struct rec_call c;
    if (rec_profiles())
        return c11_of_errno(profile_unlock((pthread_mutex_t *)m, REC_SITE_HERE));
    if (!held_once((const pthread_mutex_t *)m) ||
        !rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return sbt_mtx_unlock(m);
    int r = sbt_mtx_unlock(m);
    rec_leave(&c, rec_errno_of_c11(r));
    return r;
}
