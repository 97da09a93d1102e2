/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/guard.h"

#include "core/clock.h"
#include "core/thread.h"
#include "wait/futex.h"

#define SPINS 40
#define UNSURE_NS 1000000 /* without a heavy fence a wake-up may be missed: look again after that */

SBT_NOINLINE void sbt_guard_take_slow(struct sbt_guard *g) {
    uint32_t generation = sbt_thread_process_generation(), seen;
    for (int i = 0; i < SPINS; i++) {
        sbt_cpu_relax();
        seen = 0;
        if (__atomic_load_n(&g->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
    __atomic_fetch_add(&g->sleepers, 1, __ATOMIC_RELAXED);
    /* From here on who drops it sees a sleeper, or has dropped it already. */
    bool sure = sbt_fence_heavy();
    for (;;) {
        seen = 0;
        if (__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
        if (sure) {
            sbt_futex_wait(&g->word, 1, NULL);
        } else {
            struct sbt_deadline soon = sbt_deadline_in(UNSURE_NS);
            sbt_futex_wait(&g->word, 1, &soon);
        }
    }
    /*
     * Else a handler has forked, and nobody sleeps there. Should one fork just before this or before the addition, or
     * end the thread during the wait, the count is wrong from then on: each drop makes a system call that wakes nobody.
     */
    if (SBT_LIKELY(generation == sbt_thread_process_generation()))
        __atomic_fetch_sub(&g->sleepers, 1, __ATOMIC_RELAXED);
}

SBT_NOINLINE void sbt_guard_wake(struct sbt_guard *g) {
    sbt_futex_wake(&g->word, 1);
}
