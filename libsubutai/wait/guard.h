/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks of our own queues. Short sections, entered by threads that the kernel may preempt there: whoever finds one held
 * for longer than a moment sleeps, and is woken; to spin or to yield against the holder would hang under SCHED_FIFO.
 * All-zero is a free one; the memory must outlive its users, for it is looked at after it has been released.
 */
#ifndef SBT_WAIT_GUARD_H
#define SBT_WAIT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arch.h"
#include "core/clock.h"
#include "core/fence.h"
#include "wait/futex.h"

struct sbt_guard {
    uint32_t word;     /* 1: held */
    uint32_t sleepers; /* who sleep until it is 0, or are about to; atomic */
};

/* Sleep while *word == expected, after a heavy fence: without one a wake-up may be missed, and after 1 ms this ends. */
static inline void sbt_sleep_fenced(uint32_t *word, uint32_t expected, bool fenced) {
    if (SBT_LIKELY(fenced)) {
        sbt_futex_wait(word, expected, NULL);
    } else {
        struct sbt_deadline soon = sbt_deadline_in(1000000);
        sbt_futex_wait(word, expected, &soon);
    }
}

void sbt_guard_take_slow(struct sbt_guard *g);
void sbt_guard_wake(struct sbt_guard *g);

/* May sleep, for as long as others are in the section. */
static inline void sbt_guard_take(struct sbt_guard *g) {
    uint32_t seen = 0;
    if (SBT_UNLIKELY(!__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        sbt_guard_take_slow(g);
}

static inline void sbt_guard_drop(struct sbt_guard *g) {
    __atomic_store_n(&g->word, 0, __ATOMIC_RELEASE);
    sbt_fence_light(); /* pairs with the heavy one of who is about to sleep */
    if (SBT_UNLIKELY(__atomic_load_n(&g->sleepers, __ATOMIC_RELAXED) != 0))
        sbt_guard_wake(g);
}

#endif
