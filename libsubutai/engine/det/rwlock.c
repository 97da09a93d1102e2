/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read-write locks. `state` counts the readers that hold it; `writer` is the writer's id, or 0. */
#include <errno.h>

#include "core/object.h"
#include "engine/det/kept.h"

enum { READER = 1, WRITER = 2 }; /* bits of a wait, for turn_wake_bits, and its tag */

static inline void take(enum det_op op, struct sbt_rwlock *lx) {
    det_take_object(op, &lx->unused);
}

int det_rwlock_destroy(pthread_rwlock_t *l) {
    (void)l;
    return 0;
}

/* Only the kind that must not be read-locked twice by a thread lets waiting writers go first, as in glibc. */
static bool may_read(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    return lx->writer == 0 && (lx->kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP || det_waiting(l, WRITER) == 0);
}

static bool may_write(pthread_rwlock_t *l) {
    return sbt_rwlock_of(l)->writer == 0 && sbt_rwlock_of(l)->state == 0;
}

/* How many, without those that a handler keeps: these may come for the lock much later. */
static uint32_t wake_kind(pthread_rwlock_t *l, uint32_t n, uint32_t kind) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    n = turn_wake_bits(&r->turn, (uintptr_t)l, n, kind);
    sbt_lock_drop(&r->lock);
    return n;
}

/* The first that waits is a writer, or writers go first. */
static bool is_writers_turn(pthread_rwlock_t *l) {
    struct det_round *r = det_round;
    if (sbt_rwlock_of(l)->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        return det_waiting(l, WRITER) != 0;
    sbt_lock_take(&r->lock);
    uint32_t first = turn_first(&r->turn, (uintptr_t)l);
    sbt_lock_drop(&r->lock);
    return first != TURN_NO_THREAD && r->turn.thread[first].tag == WRITER;
}

/*
 * Those that may have the lock are woken: one writer, or all readers. If all writers were, each unlock would cost a
 * turn of each. So a thread that is woken and does not get the lock, or shares it, looks again for those that were not:
 *  1. A writer is woken, and a reader that has not waited takes the lock.
 *  2. The readers that wait may have it too, and that reader may need one of them.
 * Where handlers keep all writers that are woken, the readers go on; and where they keep all readers, a writer does.
 */
static void wake_next(pthread_rwlock_t *l) {
    if (det_nobody_waits(l) || sbt_rwlock_of(l)->writer != 0)
        return;
    if (may_write(l) && is_writers_turn(l) && wake_kind(l, 1, WRITER) != 0)
        return;
    if (may_read(l) && wake_kind(l, UINT32_MAX, READER) != 0)
        return;
    if (may_write(l))
        wake_kind(l, 1, WRITER);
}

static int wait_until(pthread_rwlock_t *l, bool (*may)(pthread_rwlock_t *), uint8_t kind,
                      const struct sbt_deadline *deadline) {
    bool has_waited = false;
    while (!may(l)) {
        if (sbt_rwlock_of(l)->writer == sbt_thread_owner())
            return EDEADLK;
        enum turn_reason reason = det_block(l, &(struct det_wait){.deadline = deadline,
                                                                  .tag = kind,
                                                                  .op = kind == READER ? DET_READ_LOCK : DET_WRITE_LOCK,
                                                                  .bits = kind});
        has_waited = true;
        if (may(l))
            break;
        wake_next(l); /* readers may have waited for this writer only */
        if (reason == TURN_TIMED_OUT)
            return ETIMEDOUT;
    }
    if (kind == READER) {
        sbt_rwlock_of(l)->state++;
        if (has_waited)
            wake_next(l);
    } else {
        __atomic_store_n(&sbt_rwlock_of(l)->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    }
    return 0;
}

static SBT_NOINLINE int rdlock_slow(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    take(DET_READ_LOCK, lx);
    int r = lx->state == UINT32_MAX ? EAGAIN : wait_until(l, may_read, READER, deadline);
    det_pass();
    return r;
}

int det_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    uint32_t held;
    if (SBT_UNLIKELY(!det_begin_kept(&lx->unused, &held)))
        return rdlock_slow(l, deadline);
    if (SBT_UNLIKELY(lx->writer != 0 || lx->state == UINT32_MAX ||
                     lx->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)) {
        det_leave_kept(held);
        return rdlock_slow(l, deadline);
    }
    lx->state++;
    det_end_kept(DET_READ_LOCK, lx->unused, held);
    return 0;
}

int det_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    take(DET_READ_TRYLOCK, lx);
    int r = lx->state == UINT32_MAX ? EAGAIN : may_read(l) ? 0 : EBUSY;
    if (r == 0)
        lx->state++;
    det_pass();
    return r;
}

static SBT_NOINLINE int wrlock_slow(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    take(DET_WRITE_LOCK, sbt_rwlock_of(l));
    int r = wait_until(l, may_write, WRITER, deadline);
    det_pass();
    return r;
}

int det_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    uint32_t held;
    if (SBT_UNLIKELY(!det_begin_kept(&lx->unused, &held)))
        return wrlock_slow(l, deadline);
    if (SBT_UNLIKELY(lx->writer != 0 || lx->state != 0)) {
        det_leave_kept(held);
        return wrlock_slow(l, deadline);
    }
    __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    det_end_kept(DET_WRITE_LOCK, lx->unused, held);
    return 0;
}

int det_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    take(DET_WRITE_TRYLOCK, lx);
    int r = may_write(l) ? 0 : EBUSY;
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    det_pass();
    return r;
}

static SBT_NOINLINE int unlock_slow(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    take(DET_RWLOCK_UNLOCK, lx);
    if (lx->writer != 0)
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
    else if (lx->state > 0)
        lx->state--;
    if (lx->state == 0)
        wake_next(l);
    det_pass();
    return 0;
}

int det_rwlock_unlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    uint32_t held;
    if (SBT_UNLIKELY(!det_begin_kept(&lx->unused, &held)))
        return unlock_slow(l);
    if (SBT_UNLIKELY(!det_nobody_waits(l))) {
        det_leave_kept(held);
        return unlock_slow(l);
    }
    if (lx->writer != 0)
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
    else if (lx->state > 0)
        lx->state--;
    det_end_kept(DET_RWLOCK_UNLOCK, lx->unused, held);
    return 0;
}
