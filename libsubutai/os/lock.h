/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internal lock, for the library's own queues and lists.
 *
 * A section under it is short, but the kernel may preempt the owner inside. So a thread that finds the lock held for
 * longer than a moment sleeps until the owner wakes it: to spin or to yield against the owner would hang under
 * SCHED_FIFO. All-zero is a free lock. The lock's memory must outlive its users, because the owner looks at `sleepers`
 * after it has released the lock.
 */
#ifndef SBT_OS_LOCK_H
#define SBT_OS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "os/arch.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/futex.h"

struct sbt_lock {
    uint32_t word;     /* 1: held; acquire when taken, release when dropped; also the kernel's futex word */
    uint32_t sleepers; /* threads that sleep until `word` is 0, or are about to; atomic */
};

#define SBT_UNFENCED_SLEEP_NS 1000000 /* 1 ms */

/*
 * Sleep while *word == expected. The caller has made a heavy fence. If that failed (`fenced` is false), a wake-up may
 * be missed, and the sleep ends after 1 ms.
 */
static inline void sbt_sleep_fenced(uint32_t *word, uint32_t expected, bool fenced) {
    if (SBT_LIKELY(fenced)) {
        sbt_futex_wait(word, expected, NULL);
    } else {
        struct sbt_deadline soon = sbt_deadline_in(SBT_UNFENCED_SLEEP_NS);
        sbt_futex_wait(word, expected, &soon);
    }
}

void sbt_lock_take_slow(struct sbt_lock *g);
void sbt_lock_wake(struct sbt_lock *g);

/* May block for as long as other threads are in the section. */
static inline void sbt_lock_take(struct sbt_lock *g) {
    uint32_t seen = 0;
    if (SBT_UNLIKELY(!__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        sbt_lock_take_slow(g);
}

/* False: it is held. */
static inline bool sbt_lock_try(struct sbt_lock *g) {
    uint32_t seen = 0;
    return __atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void sbt_lock_drop(struct sbt_lock *g) {
    __atomic_store_n(&g->word, 0, __ATOMIC_RELEASE);
    sbt_fence_light(); /* pairs with the heavy fence of a thread that is about to sleep; so the load is relaxed */
    if (SBT_UNLIKELY(__atomic_load_n(&g->sleepers, __ATOMIC_RELAXED) != 0))
        sbt_lock_wake(g);
}

#endif
