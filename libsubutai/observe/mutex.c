/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_mutex_*, observed. Acquisitions are counted while the mutex is held, so that their numbers are the order in
 * which it was had. Of a recursive mutex the outermost lock and unlock are events, what is between them is not.
 */
#include <errno.h>

#include "observe/observe.h"

/* The caller holds it. Once? Ours count from 0, glibc's from 1, in the same place. */
static bool held_once(const pthread_mutex_t *m) {
    const struct sbt_mutex *mx = (const struct sbt_mutex *)m;
    uint32_t kind = (uint32_t)mx->kind | sbt_all_theirs;
    return (kind & SBT_KIND_TYPE) != SBT_KIND_RECURSIVE || mx->count == ((kind & SBT_KIND_THEIRS) != 0 ? 1 : 0);
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

OBSERVED(int, pthread_mutex_lock, (pthread_mutex_t * m)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(pthread_mutex_lock)(m);
    return locked(&c, m, ABI(pthread_mutex_lock)(m));
}

OBSERVED(int, pthread_mutex_trylock, (pthread_mutex_t * m)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(pthread_mutex_trylock)(m);
    return locked(&c, m, ABI(pthread_mutex_trylock)(m));
}

OBSERVED(int, pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *at)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(pthread_mutex_timedlock)(m, at);
    return locked(&c, m, ABI(pthread_mutex_timedlock)(m, at));
}

OBSERVED(int, pthread_mutex_clocklock, (pthread_mutex_t * m, clockid_t clock, const struct timespec *at)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(pthread_mutex_clocklock)(m, clock, at);
    return locked(&c, m, ABI(pthread_mutex_clocklock)(m, clock, at));
}

OBSERVED(int, pthread_mutex_unlock, (pthread_mutex_t * m)) {
    struct rec_call c;
    if (!held_once(m) || !rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(pthread_mutex_unlock)(m);
    int r = ABI(pthread_mutex_unlock)(m);
    rec_leave(&c, r);
    return r;
}

OBSERVED(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *attr)) {
    int r = ABI(pthread_mutex_init)(m, attr);
    if (r == 0)
        rec_init(SBT_TRACE_MUTEX, m, 0, REC_SITE_HERE);
    return r;
}

OBSERVED(int, pthread_mutex_destroy, (pthread_mutex_t * m)) {
    OBSERVE_DESTROY(SBT_TRACE_MUTEX, m, ABI(pthread_mutex_destroy)(m));
}

SBT_ALIAS(__pthread_mutex_init, pthread_mutex_init);
SBT_ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
SBT_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
SBT_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
SBT_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* C11's, with results of their own, which the trace has as errno values. */
OBSERVED(int, mtx_init, (mtx_t * m, int type)) {
    int r = ABI(mtx_init)(m, type);
    if (r == thrd_success)
        rec_init(SBT_TRACE_MUTEX, m, 0, REC_SITE_HERE);
    return r;
}

OBSERVED(void, mtx_destroy, (mtx_t * m)) {
    struct rec_call c;
    bool on = rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_MUTEX, m, REC_SITE_HERE);
    ABI(mtx_destroy)(m);
    if (on)
        rec_destroyed(&c, 0);
}

static int locked_c11(struct rec_call *c, const mtx_t *m, int r) {
    locked(c, (const pthread_mutex_t *)m, rec_errno_of_c11(r));
    return r;
}

OBSERVED(int, mtx_lock, (mtx_t * m)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(mtx_lock)(m);
    return locked_c11(&c, m, ABI(mtx_lock)(m));
}

OBSERVED(int, mtx_trylock, (mtx_t * m)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(mtx_trylock)(m);
    return locked_c11(&c, m, ABI(mtx_trylock)(m));
}

OBSERVED(int, mtx_timedlock, (mtx_t * m, const struct timespec *at)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(mtx_timedlock)(m, at);
    return locked_c11(&c, m, ABI(mtx_timedlock)(m, at));
}

OBSERVED(int, mtx_unlock, (mtx_t * m)) {
    struct rec_call c;
    if (!held_once((const pthread_mutex_t *)m) ||
        !rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, m, REC_SITE_HERE))
        return ABI(mtx_unlock)(m);
    int r = ABI(mtx_unlock)(m);
    rec_leave(&c, rec_errno_of_c11(r));
    return r;
}
