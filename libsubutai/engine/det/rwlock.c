/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read-write locks. `state` counts the readers that hold it; `writer` is the writer's id, or 0. */
#include <errno.h>

#include "core/object.h"
#include "engine/det/det.h"

enum { READER, WRITER };

static void object(struct sbt_rwlock *lx) {
    det_object(&lx->unused);
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

static int wait_until(pthread_rwlock_t *l, bool (*may)(pthread_rwlock_t *), uint8_t tag,
                      const struct sbt_deadline *deadline) {
    while (!may(l)) {
        if (sbt_rwlock_of(l)->writer == sbt_thread_owner())
            return EDEADLK;
        enum turn_reason reason = det_block(l, &(struct det_wait){.deadline = deadline, .tag = tag});
        if (reason == TURN_TIMED_OUT && !may(l)) {
            det_wake(l, UINT32_MAX); /* readers may have waited for this writer only */
            return ETIMEDOUT;
        }
    }
    return 0;
}

int det_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    det_take(DET_READ_LOCK);
    object(lx);
    int r = lx->state == UINT32_MAX ? EAGAIN : wait_until(l, may_read, READER, deadline);
    if (r == 0)
        lx->state++;
    det_pass();
    return r;
}

int det_rwlock_tryrdlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    det_take(DET_READ_TRYLOCK);
    object(lx);
    int r = lx->state == UINT32_MAX ? EAGAIN : may_read(l) ? 0 : EBUSY;
    if (r == 0)
        lx->state++;
    det_pass();
    return r;
}

int det_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    det_take(DET_WRITE_LOCK);
    object(lx);
    int r = wait_until(l, may_write, WRITER, deadline);
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    det_pass();
    return r;
}

int det_rwlock_trywrlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    det_take(DET_WRITE_TRYLOCK);
    object(lx);
    int r = may_write(l) ? 0 : EBUSY;
    if (r == 0)
        __atomic_store_n(&lx->writer, sbt_thread_owner(), __ATOMIC_RELAXED);
    det_pass();
    return r;
}

int det_rwlock_unlock(pthread_rwlock_t *l) {
    struct sbt_rwlock *lx = sbt_rwlock_of(l);
    det_take(DET_RWLOCK_UNLOCK);
    object(lx);
    if (lx->writer != 0)
        __atomic_store_n(&lx->writer, 0, __ATOMIC_RELAXED);
    else if (lx->state > 0)
        lx->state--;
    if (lx->state == 0)
        det_wake(l, UINT32_MAX);
    det_pass();
    return 0;
}
