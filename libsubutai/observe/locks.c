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

/* ---- in a profile: as in mutex.c ---- */

static int take_read(void *l) {
    return sbt_pthread_rwlock_tryrdlock(l);
}

static int take_written(void *l) {
    return sbt_pthread_rwlock_trywrlock(l);
}

static int take_spin(void *s) {
    return sbt_pthread_spin_trylock(s);
}

static int wait_read(void *l, const struct rec_limit *limit) {
    (void)limit;
    return sbt_pthread_rwlock_rdlock(l);
}

static int wait_read_timed(void *l, const struct rec_limit *limit) {
    return sbt_pthread_rwlock_timedrdlock(l, limit->at);
}

static int wait_read_clock(void *l, const struct rec_limit *limit) {
    return sbt_pthread_rwlock_clockrdlock(l, limit->clock, limit->at);
}

static int wait_written(void *l, const struct rec_limit *limit) {
    (void)limit;
    return sbt_pthread_rwlock_wrlock(l);
}

static int wait_written_timed(void *l, const struct rec_limit *limit) {
    return sbt_pthread_rwlock_timedwrlock(l, limit->at);
}

static int wait_written_clock(void *l, const struct rec_limit *limit) {
    return sbt_pthread_rwlock_clockwrlock(l, limit->clock, limit->at);
}

static int wait_spin(void *s, const struct rec_limit *limit) {
    (void)limit;
    return sbt_pthread_spin_lock(s);
}

static int unlock(void *l) {
    return sbt_pthread_rwlock_unlock(l);
}

static int unlock_spin(void *s) {
    return sbt_pthread_spin_unlock(s);
}

/* A lock, by `take` at once or else by `slowly`. */
static inline int profile_lock(const struct rec_key *key, int (*take)(void *),
                               int (*slowly)(void *, const struct rec_limit *), const struct rec_limit *limit) {
    rec_profile_expect(key);
    if (SBT_UNLIKELY(rec_is_refusable(limit) || take((void *)key->object) != 0))
        return rec_profile_wait(key, slowly, limit);
    rec_profile_acquired(key);
    return 0;
}

static int profile_try(const struct rec_key *key, int (*take)(void *)) {
    int r = take((void *)key->object);
    struct rec_key failed = {key->object, key->site, key->op, key->type, true, 0};
    if (r == 0)
        rec_profile_acquired(key);
    else
        rec_profile_count(&failed);
    return r;
}

static inline int profile_unlock(const struct rec_key *key, int (*release)(void *)) {
    const void *object = (const void *)key->object;
    rec_profile_releasing(object);
    return rec_is_waited_for(object) ? rec_profile_release(key, release) : release((void *)key->object);
}

#define KEY(object, op, type)                                                                                          \
    (&(const struct rec_key){(uintptr_t)(object), (uintptr_t)REC_SITE_HERE, SBT_TRACE_##op, SBT_TRACE_##type, false, 0})

/* ---- the functions ---- */

SBT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_RDLOCK, RWLOCK), take_read, wait_read, NULL);
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_rdlock(l));
}

SBT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct rec_call c;
    if (rec_profiles())
        return profile_try(KEY(l, RWLOCK_TRYRDLOCK, RWLOCK), take_read);
    rec_enter(&c, SBT_TRACE_RWLOCK_TRYRDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_tryrdlock(l));
}

SBT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_RDLOCK, RWLOCK), take_read, wait_read_timed, &(struct rec_limit){.at = at});
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_timedrdlock(l, at));
}

SBT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_RDLOCK, RWLOCK), take_read, wait_read_clock, &(struct rec_limit){clock, at});
    rec_enter(&c, SBT_TRACE_RWLOCK_RDLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_read(&c, sbt_pthread_rwlock_clockrdlock(l, clock, at));
}

SBT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_WRLOCK, RWLOCK), take_written, wait_written, NULL);
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_wrlock(l));
}

SBT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct rec_call c;
    if (rec_profiles())
        return profile_try(KEY(l, RWLOCK_TRYWRLOCK, RWLOCK), take_written);
    rec_enter(&c, SBT_TRACE_RWLOCK_TRYWRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_trywrlock(l));
}

SBT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_WRLOCK, RWLOCK), take_written, wait_written_timed,
                            &(struct rec_limit){.at = at});
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_timedwrlock(l, at));
}

SBT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) {
    struct rec_call c;
    if (rec_profiles())
        return profile_lock(KEY(l, RWLOCK_WRLOCK, RWLOCK), take_written, wait_written_clock,
                            &(struct rec_limit){clock, at});
    rec_enter(&c, SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK, l, REC_SITE_HERE);
    return record_written(&c, sbt_pthread_rwlock_clockwrlock(l, clock, at));
}

SBT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l) {
    struct rec_call c;
    if (rec_profiles())
        return profile_unlock(KEY(l, RWLOCK_UNLOCK, RWLOCK), unlock);
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
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_RWLOCK, l, REC_SITE_HERE, sbt_pthread_rwlock_destroy(l));
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
    if (rec_profiles())
        return profile_lock(KEY(s, SPIN_LOCK, SPIN), take_spin, wait_spin, NULL);
    rec_enter(&c, SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return record_written(&c, sbt_pthread_spin_lock(s));
}

SBT_EXPORT int pthread_spin_trylock(pthread_spinlock_t *s) {
    struct rec_call c;
    if (rec_profiles())
        return profile_try(KEY(s, SPIN_TRYLOCK, SPIN), take_spin);
    rec_enter(&c, SBT_TRACE_SPIN_TRYLOCK, SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE);
    return record_written(&c, sbt_pthread_spin_trylock(s));
}

SBT_EXPORT int pthread_spin_unlock(pthread_spinlock_t *s) {
    struct rec_call c;
    if (rec_profiles())
        return profile_unlock(KEY(s, SPIN_UNLOCK, SPIN), unlock_spin);
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
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_SPIN, OBJECT(s), REC_SITE_HERE, sbt_pthread_spin_destroy(s));
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
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_BARRIER, b, REC_SITE_HERE, sbt_pthread_barrier_destroy(b));
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_BARRIER, b, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_barrier_destroy(b));
}

SBT_EXPORT int pthread_barrier_wait(pthread_barrier_t *b) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, b, REC_SITE_HERE);
    uint32_t count = c.node != NULL ? rec_initial_of(c.node) : 0;
    if (count > 0) {
        c.event.order = (REC_COUNT(c.node->acquired) - 1) / count + 1;
        /* the first arrivals say the count too: the init may be in a block that is never written */
        if (c.event.order == 1)
            c.event.size = count;
    }
    int r = sbt_pthread_barrier_wait(b);
    rec_leave(&c, r == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : r);
    return r;
}
