/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/guard.h"

#include "core/thread.h"

#define SPINS 40

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
    bool fenced = sbt_fence_heavy();
    for (;;) {
        seen = 0;
        if (__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
        sbt_sleep_fenced(&g->word, 1, fenced);
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
