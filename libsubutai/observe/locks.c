/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_rwlock_*, pthread_spin_* and pthread_barrier_*, observed.
 *
 * The owner of a lock for writing counts its acquisition. A reader's number is the number of acquisitions for writing
 * before it, read relaxed because the lock orders it after them. A barrier's arrivals are counted as they come; a
 * generation is as many arrivals as the barrier's count.
 */
#include <errno.h>

#include "observe/observe.h"

static int record_written(struct rec_call *c, int r) {
    if (r == 0)
        c->event.order = rec_acquired(c->node);
    rec_leave(c, r);
    return r;
}

static int record_read(struct rec_call *c, int r) {
    if (r == 0 && c->node != NULL)
        c->event.order = __atomic_load_n(&c->node->acquired, __ATOMIC_RELAXED);
    rec_leave(c, r);
    return r;
}

static int record_unlocked(struct rec_call *c, int r) {
    rec_leave(c, r);
    return r;
}

SBT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_rdlock(l));
}

SBT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_TRYRDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_tryrdlock(l));
}

SBT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *at) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_timedrdlock(l, at));
}

SBT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_clockrdlock(l, clock, at));
}

SBT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_wrlock(l));
}

SBT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_TRYWRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_trywrlock(l));
}

SBT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *at) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_timedwrlock(l, at));
}

SBT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_clockwrlock(l, clock, at));
}

SBT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_RWLOCK_UNLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_unlocked(&c, sbt_pthread_rwlock_unlock(l));
}

SBT_EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attr) {
    int r = sbt_pthread_rwlock_init(l, attr);
    if (r == 0)
        rec_init(SBT_TRACE_RWLOCK, l, 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *l) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_rwlock_destroy(l));
}

SBT_ALIAS(__pthread_rwlock_init, pthread_rwlock_init);
SBT_ALIAS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
SBT_ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
SBT_ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
SBT_ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
SBT_ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
SBT_ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);

#define OBJECT(s) ((const void *)(uintptr_t)(s)) /* a spinlock is a volatile int */

SBT_EXPORT int pthread_spin_lock(pthread_spinlock_t *s) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return record_written(&c, sbt_pthread_spin_lock(s));
}

SBT_EXPORT int pthread_spin_trylock(pthread_spinlock_t *s) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_SPIN_TRYLOCK, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return record_written(&c, sbt_pthread_spin_trylock(s));
}

SBT_EXPORT int pthread_spin_unlock(pthread_spinlock_t *s) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_SPIN_UNLOCK, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return record_unlocked(&c, sbt_pthread_spin_unlock(s));
}

SBT_EXPORT int pthread_spin_init(pthread_spinlock_t *s, int shared) {
    int r = sbt_pthread_spin_init(s, shared);
    if (r == 0)
        rec_init(SBT_TRACE_SPIN, OBJECT(s), 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int pthread_spin_destroy(pthread_spinlock_t *s) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_spin_destroy(s));
}

SBT_EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned count) {
    int r = sbt_pthread_barrier_init(b, attr, count);
    if (r == 0)
        rec_init(SBT_TRACE_BARRIER, b, count, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int pthread_barrier_destroy(pthread_barrier_t *b) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_BARRIER, b, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_barrier_destroy(b));
}

SBT_EXPORT int pthread_barrier_wait(pthread_barrier_t *b) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, b, REC_SITE_HERE);
    if (c.node != NULL && c.node->initial > 0) {
        c.event.order = (REC_COUNT(c.node->acquired) - 1) / c.node->initial + 1;
        /* the first arrivals say the count too: the init may be in a block that is never written */
        if (c.event.order == 1)
            c.event.size = c.node->initial;
    }
    int r = sbt_pthread_barrier_wait(b);
    rec_leave(&c, r == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : r);
    return r;
}
