/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What our objects look like inside glibc's.
 *
 * Two things in glibc's layout are left where they are. A mutex's kind (offset 16 on both architectures since 2.x) and
 * a rwlock's kind (offset 48), because static initialisers write them; and the word in which glibc marks a
 * process-shared condition, barrier, rwlock or semaphore, because it tells whose an object is. Where that word lies is
 * learnt at start-up (sbt_layout): it moved in glibc 2.41. Our own fields keep clear of every place it has had.
 * All-zero (but for the kinds) is a valid object that nobody has used.
 */
#ifndef SBT_CORE_OBJECT_H
#define SBT_CORE_OBJECT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wait/adapt.h"

#define SBT_OVERLAY __attribute__((may_alias))

struct SBT_OVERLAY sbt_mutex {
    uint32_t state;      /* the engine's word */
    uint32_t count;      /* recursive: depth - 1; the owner's */
    uint32_t owner;      /* recursive and error-checking: kernel thread id or 0; atomic, written by the owner only */
    uint32_t handoff_us; /* direct: when the lock was last handed over, low bits of the monotonic clock */
    int32_t kind;        /* glibc's */
    struct sbt_adapt adapt;
    uint16_t spins_failed; /* direct: of threads, in a row, and those left out because of that; atomic, a hint */
    uint8_t spun_credit;   /* direct: unlocks that still give the core away; atomic, a hint */
    uint8_t dense;         /* direct: how fast those that spin take it from each other; atomic, a hint */
    uint32_t contended_ns; /* direct: when one has last, low bits of the monotonic clock; the holder's */
    uint32_t hw_id;        /* ni: the primitive's ID, 0 unallocated; atomic */
    union {
        uint32_t hw_tile; /* ni: where its last owner sits; atomic */
        uint32_t lost;    /* direct: how often those that were told find it taken; under the bucket lock */
    };
};

/* glibc's bits of `kind`. The low two are the type; robust, PI, priority-protect and process-shared ones are glibc's
 * own objects. */
#define SBT_KIND_TYPE 3
#define SBT_KIND_RECURSIVE 1
#define SBT_KIND_ERRORCHECK 2
#define SBT_KIND_THEIRS 0xF0
#define SBT_KIND_SHARED 0x80
#define SBT_KIND_PRIORITY 0x60 /* inheritance, protection: the kernel knows the owner by its thread */
#define SBT_KIND_DESTROYED (-1)

struct SBT_OVERLAY sbt_cond {
    uint32_t state; /* the engine's word: 0 means nobody waits */
    uint32_t clock; /* clockid_t of pthread_cond_timedwait: CLOCK_REALTIME is 0 */
    struct sbt_adapt adapt;
    uint32_t hw_id; /* ni: as in a mutex */
    /* the rest is glibc's in the objects that are glibc's: 28 or 36 holds the mark */
};

struct SBT_OVERLAY sbt_barrier {
    uint64_t rounds; /* the engine's; direct: low half arrived, high half rounds completed and flags */
    uint32_t count;
    uint32_t glibc_mark;
    uint32_t left; /* waiters that have finished with the object, over all rounds */
    struct sbt_adapt adapt;
    uint32_t hw_id; /* ni: as in a mutex */
    uint32_t crowd; /* direct: contexts that wait (switch/switch.h) */
};

struct SBT_OVERLAY sbt_rwlock {
    uint32_t state;
    uint32_t writer; /* kernel thread id of the writer, 0 if none; atomic */
    struct sbt_adapt adapt;
    uint32_t settled_us;  /* direct: when an unlock last looked after the queue, low bits of the clock; a hint */
    uint32_t passed_over; /* direct: unlocks that did not, a hint */
    uint32_t handed_us;   /* direct: when it was last handed over, likewise */
    uint32_t unused;
    uint32_t glibc_mark; /* offset 28 */
    uint32_t glibc_pad[4];
    uint32_t kind; /* offset 48, glibc's: PTHREAD_RWLOCK_PREFER_... */
};

struct SBT_OVERLAY sbt_sem {
    uint64_t value_and_waiters; /* low half the value, high half how many sleep on it: glibc's own scheme */
    uint32_t glibc_mark;
    uint32_t unused;
    struct sbt_adapt adapt;
};

_Static_assert(sizeof(struct sbt_mutex) <= sizeof(pthread_mutex_t), "mutex overlay");
_Static_assert(offsetof(struct sbt_mutex, kind) == 16, "glibc's __kind");
_Static_assert(sizeof(struct sbt_cond) <= 28 && sizeof(pthread_cond_t) == 48, "condition overlay");
_Static_assert(sizeof(struct sbt_barrier) <= sizeof(pthread_barrier_t), "barrier overlay");
_Static_assert(offsetof(struct sbt_rwlock, kind) == 48 && sizeof(struct sbt_rwlock) <= sizeof(pthread_rwlock_t),
               "rwlock overlay");
_Static_assert(sizeof(struct sbt_sem) <= sizeof(sem_t), "semaphore overlay");

static inline struct sbt_mutex *sbt_mutex_of(pthread_mutex_t *m) {
    return (struct sbt_mutex *)m;
}
static inline struct sbt_cond *sbt_cond_of(pthread_cond_t *c) {
    return (struct sbt_cond *)c;
}
static inline struct sbt_barrier *sbt_barrier_of(pthread_barrier_t *b) {
    return (struct sbt_barrier *)b;
}
static inline struct sbt_rwlock *sbt_rwlock_of(pthread_rwlock_t *l) {
    return (struct sbt_rwlock *)l;
}
static inline struct sbt_sem *sbt_sem_of(sem_t *s) {
    return (struct sbt_sem *)s;
}

/* Where glibc marks a process-shared object: word at `offset`, any bit of `mask` set. Mask 0 until learnt. */
struct sbt_mark {
    uint32_t offset, mask;
};

struct sbt_layout {
    struct sbt_mark cond, barrier, rwlock, sem;
    int spin_unlocked; /* value of a free spinlock: 1 on x86-64, 0 on aarch64 */
};

extern struct sbt_layout sbt_layout;

/* Every object is glibc's: engine glibc, or the library has stepped aside. As a mutex kind bit: the two tests in one.
 */
extern uint32_t sbt_all_theirs;

static inline bool sbt_marked(const void *object, const struct sbt_mark *mark) {
    typedef uint32_t SBT_OVERLAY word;
    return sbt_all_theirs != 0 || (*(const word *)((const char *)object + mark->offset) & mark->mask) != 0;
}

#endif
