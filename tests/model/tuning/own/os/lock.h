/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For own-lock-walk, in place of libsubutai/os/lock.h: the internal lock and the fences under the walk's scheduler.
 *
 * Each thread has a store buffer of one place, as processors have: a relaxed store stays there until a later store, an
 * operation that orders, a wait, or a heavy fence of any thread, takes it out; or until the walk chooses so. Without
 * the heavy fence a visitor then misses an owner that has entered.
 */
#ifndef OWN_WALK_LOCK_H
#define OWN_WALK_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "code_sched.h"
#include "os/arch.h"

/* Into the caller's store buffer; and out of it. */
void own_walk_store(void *at, size_t bytes, uint64_t value);
void own_walk_drain(void);
/* It may come out now. */
void own_walk_may_drain(void);
/* What all threads' buffers hold comes out. */
void own_walk_fence(void);

#ifndef CODE_SCHED_ITSELF
#undef __atomic_load_n
#define __atomic_load_n(p, order) (own_walk_may_drain(), code_point(p, CODE_READ), __atomic_load_n(p, order))
#undef __atomic_store_n
#define __atomic_store_n(p, value, order)                                                                              \
    ((order) == __ATOMIC_RELAXED                                                                                       \
         ? own_walk_store(p, sizeof *(p), (uint64_t)(value))                                                           \
         : (own_walk_drain(), (void)CODE_CHANGES(p, CODE_WRITE, (__atomic_store_n(p, value, order), 0))))
#endif

struct sbt_lock {
    uint32_t word;
};

static inline void sbt_lock_take(struct sbt_lock *g) {
    uint32_t seen = 0;
    own_walk_drain();
    while (!__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        seen = 0;
        code_relax();
    }
}

static inline void sbt_lock_drop(struct sbt_lock *g) {
    __atomic_store_n(&g->word, 0, __ATOMIC_RELEASE);
}

#define SBT_UNFENCED_SLEEP_NS 0
#define sbt_fence_asymmetric true
#define sbt_cpu_relax() code_relax()

static inline uint64_t sbt_now_ns(void) {
    return 0;
}

static inline bool sbt_futex_pause_ns(uint64_t ns) {
    (void)ns;
    own_walk_drain();
    code_relax();
    return true;
}

static inline bool sbt_fence_heavy(void) {
    own_walk_fence();
    return true;
}

#endif
