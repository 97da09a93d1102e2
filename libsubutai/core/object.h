/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layout of our objects inside glibc's, and which objects are glibc's.
 *
 * Two things in glibc's layout are left where they are:
 *  - the kind of a mutex (offset 16) and of a read-write lock (offset 48): static initialisers write them;
 *  - the word in which glibc marks a process-shared condition, barrier, read-write lock or semaphore: it tells an
 *    object of glibc's from one of ours.
 *
 * The place of that word is learnt at start-up (sbt_layout), because glibc 2.41 moved it. Our fields keep clear of
 * every place that it has had. All-zero, apart from the kinds, is a valid object that has not been used.
 */
#ifndef SBT_CORE_OBJECT_H
#define SBT_CORE_OBJECT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/arch.h"

#define SBT_OVERLAY __attribute__((may_alias))

/*
 * What an object remembers of its last waits (wait/adapt.h). Racy by design: a lost update costs a decision and never
 * correctness, so everything is relaxed.
 *  - mean_64ns: moving mean of the lengths of the waits, in units of 64 ns, saturating.
 *  - mean_switches: moving mean of the yields of a wait that gave the core to another thread, in sixteenths,
 *    saturating.
 *  - probe: counts waits. If the object's waits park at once, every few waits one is active all the same and finds out
 *    whether times have changed.
 */
struct sbt_adapt {
    uint16_t mean_64ns;
    uint8_t mean_switches;
    uint8_t probe;
};

struct SBT_OVERLAY sbt_mutex {
    uint32_t state;     /* the engine's word */
    uint32_t count;     /* recursive: depth - 1; the owner's */
    uint32_t owner;     /* recursive and error-checking: kernel thread id or 0; atomic, written by the owner only */
    uint32_t handed_us; /* direct: time of the last hand-over, low bits of the monotonic clock */
    int32_t kind;       /* glibc's kind, and a count of condition waits (SBT_KIND_WAIT); atomic, written by the owner */
    struct sbt_adapt adapt;
    uint16_t spins_failed; /* direct: spins that failed in a row, and spins left out because of that; atomic, a hint */
    uint8_t spun_credit;   /* direct: unlocks that still give the core away; atomic, a hint */
    uint8_t dense;         /* direct: how fast spinning threads take it from each other; atomic, a hint */
    uint32_t contended_ns; /* direct: when a spinning thread last took it, low bits of the clock; the owner's */
    union {
        uint32_t hw_id;     /* ni: the primitive's ID, 0: not allocated; atomic */
        uint32_t delegated; /* direct: engine/direct/delegate.h, 0: not asked yet; atomic */
    };
    union {
        uint32_t hw_tile; /* ni: the tile of its last owner; atomic */
        uint32_t lost;    /* direct: races lost by notified waiters; under the bucket lock */
    };
};

/*
 * glibc's bits of `kind`. The low two bits are the type. Robust, priority-inheritance, priority-protect and
 * process-shared mutexes are glibc's.
 */
#define SBT_KIND_TYPE 3
#define SBT_KIND_RECURSIVE 1
#define SBT_KIND_ERRORCHECK 2
#define SBT_KIND_THEIRS 0xF0
#define SBT_KIND_ROBUST 0x10
#define SBT_KIND_SHARED 0x80
#define SBT_KIND_PRIORITY 0x60 /* inheritance, protection: the kernel knows the owner by its kernel thread */
#define SBT_KIND_DESTROYED (-1)
/*
 * Above glibc's bits a mutex of ours counts the condition waits that use it, as glibc's __nusers does. While there are
 * some, pthread_mutex_destroy refuses the mutex. A waiter adds itself before it gives the mutex up, and takes itself
 * off after it has the mutex again: both while it owns the mutex. In a forked child the waits of the parent's threads
 * stay counted, as they do in glibc. 65,536 waits at a time would count as none.
 */
#define SBT_KIND_WAIT ((uint32_t)1 << 16)

struct SBT_OVERLAY sbt_cond {
    uint32_t state; /* the engine's word; 0: no thread waits */
    uint32_t clock; /* clockid_t of pthread_cond_timedwait: CLOCK_REALTIME is 0 */
    struct sbt_adapt adapt;
    uint32_t hw_id; /* ni: as in a mutex */
    /* the rest is glibc's in an object of glibc's: the word at 28 or 36 holds the mark */
};

struct SBT_OVERLAY sbt_barrier {
    uint64_t rounds; /* the engine's; direct: arrivals in the low half, rounds completed and flags in the high half */
    uint32_t count;
    uint32_t glibc_mark;
    uint32_t left; /* threads that have left, over all rounds */
    struct sbt_adapt adapt;
    uint32_t hw_id;        /* ni: as in a mutex */
    uint32_t waiter_stack; /* direct: fibers that wait (switch/switch.h) */
};

struct SBT_OVERLAY sbt_rwlock {
    uint32_t state;
    uint32_t writer; /* kernel thread id of the writer, 0 if none; atomic */
    struct sbt_adapt adapt;
    uint32_t looked_us;   /* direct: when an unlock last looked after the queue, low bits of the clock; a hint */
    uint32_t passed_over; /* direct: unlocks since then that did not look; a hint */
    uint32_t handed_us;   /* direct: time of the last hand-over, low bits of the clock; a hint */
    uint32_t unused;
    uint32_t glibc_mark; /* offset 28 */
    uint32_t glibc_pad[4];
    uint32_t kind; /* offset 48, glibc's: PTHREAD_RWLOCK_PREFER_... */
};

struct SBT_OVERLAY sbt_sem {
    uint64_t value_and_waiters; /* low half: the value; high half: the number of sleepers; as in glibc */
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

/* Relaxed: the type does not change while other threads use the mutex, and the count of waits is the owner's. */
static inline uint32_t sbt_mutex_kind(const pthread_mutex_t *m) {
    return (uint32_t)__atomic_load_n(&((const struct sbt_mutex *)m)->kind, __ATOMIC_RELAXED);
}

/* A condition wait begins (1) or ends (-1). The caller owns the mutex. */
static inline void sbt_mutex_count_wait(struct sbt_mutex *mx, int n) {
    uint32_t kind = (uint32_t)__atomic_load_n(&mx->kind, __ATOMIC_RELAXED);
    __atomic_store_n(&mx->kind, (int32_t)(kind + (uint32_t)n * SBT_KIND_WAIT), __ATOMIC_RELAXED);
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

/*
 * Where glibc marks a process-shared object: any bit of `mask` is set in the word at `offset`. Mask 0: not learnt yet.
 */
struct sbt_mark {
    uint32_t offset, mask;
};

struct sbt_layout {
    struct sbt_mark cond, barrier, rwlock, sem;
    int spin_unlocked; /* the value of a free spinlock: 1 on x86-64, 0 on aarch64 */
};

extern struct sbt_layout sbt_layout SBT_HIDDEN;

/*
 * Fill sbt_layout, by glibc's own functions, once at start-up. NULL, or the object type that cannot be served: with
 * this C library its shared and private objects look alike. Needs sbt_real. Does not block.
 */
const char *sbt_layout_learn(void);

/*
 * Every object is glibc's: the engine is glibc, or the library has stepped aside. As a bit of a mutex's kind: one test
 * covers both.
 */
extern uint32_t sbt_all_theirs SBT_HIDDEN;

static inline bool sbt_marked(const void *object, const struct sbt_mark *mark) {
    typedef uint32_t SBT_OVERLAY word;
    return sbt_all_theirs != 0 || (*(const word *)((const char *)object + mark->offset) & mark->mask) != 0;
}

#endif
