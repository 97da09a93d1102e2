/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What rwlock.c and rwlock_queue.c need of each other. */
#ifndef SBT_ENGINE_DIRECT_RWLOCK_QUEUE_H
#define SBT_ENGINE_DIRECT_RWLOCK_QUEUE_H

#include <errno.h>

#include "core/object.h"
#include "engine/direct/rwlock.h"
#include "os/arch.h"
#include "wait/parking_lot.h"

/* A lock's key in the parking lot: not that of a mutex or condition that may lie there when an unlock ends. */
static inline const void *direct_rwlock_key(const struct sbt_rwlock *lx) {
    return (const char *)lx + 2;
}

static inline struct sbt_rwlock *direct_rwlock_of(const void *key) {
    return (struct sbt_rwlock *)((uintptr_t)key - 2);
}

static inline bool direct_rwlock_prefers_writers(const struct sbt_rwlock *lx) {
    return lx->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

/* How waiters wait. ASYNCHRONOUSLY is added where a waiter can be cancelled. */
enum { DIRECT_READS = 0, DIRECT_WRITES = 1, DIRECT_ASYNCHRONOUSLY = 2, DIRECT_RWLOCK_ROLES = 4 };
extern const struct sbt_lot_role direct_rwlock_waits[DIRECT_RWLOCK_ROLES] SBT_HIDDEN;

static inline bool direct_rwlock_is_writing(const struct sbt_lot_role *role) {
    return ((role - direct_rwlock_waits) & DIRECT_WRITES) != 0;
}

/* 0 or EBUSY. Acquire pairs with the release of the unlocks. */
static inline int direct_rwlock_take_write(struct sbt_rwlock *lx) {
    uint32_t seen = __atomic_load_n(&lx->state, __ATOMIC_RELAXED);
    while ((seen & (RW_WRITER | RW_READERS)) == 0)
        if (__atomic_compare_exchange_n(&lx->state, &seen, (seen | RW_WRITER) & ~(uint32_t)RW_ACTIVE, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
    return EBUSY;
}

/* What the parking lot asks: its roles say what the functions are for. The bucket is locked. */
int direct_rwlock_validate(struct sbt_lot_queue *q, struct sbt_waiter *w);
struct sbt_waiter *direct_rwlock_successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result);
struct sbt_waiter *direct_rwlock_held_up(struct sbt_lot_queue *q, struct sbt_waiter *w);

/*
 * The waiters that can go in now are let in: after the writer that calls has given the lock up here; after the lock was
 * given up; when a writer that was notified does not sleep. The result is the writer to notify.
 */
sbt_lot_choose direct_rwlock_after_writer, direct_rwlock_next_in, direct_rwlock_not_asleep;

/* In a forked child: has it cleared what was meant for waiters that are not there? */
bool direct_rwlock_mend(const struct sbt_lot_queue *q);

#endif
