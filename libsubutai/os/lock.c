/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/lock.h"

#include "os/fork.h"

#define SPINS 40 /* looks: about a microsecond, longer than a section lasts while its owner runs */

SBT_NOINLINE void sbt_lock_take_slow(struct sbt_lock *g) {
    uint32_t generation = sbt_fork_generation(), seen;
    for (int i = 0; i < SPINS; i++) {
        sbt_cpu_relax();
        seen = 0;
        if (__atomic_load_n(&g->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
    __atomic_fetch_add(&g->sleepers, 1, __ATOMIC_RELAXED);
    /* From here on the owner sees a sleeper when it releases the lock, or has released it already. */
    bool fenced = sbt_fence_heavy();
    for (;;) {
        seen = 0;
        if (__atomic_compare_exchange_n(&g->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
        sbt_sleep_fenced(&g->word, 1, fenced);
    }
    /*
     * If the generation differs, a handler has forked, and this is the child, in which no thread sleeps. The count
     * stays too high if a handler forks just before this line or just before the addition, or if the thread ends during
     * the wait. Each release then makes a system call that wakes no thread.
     */
    if (SBT_LIKELY(generation == sbt_fork_generation()))
        __atomic_fetch_sub(&g->sleepers, 1, __ATOMIC_RELAXED);
}

SBT_NOINLINE void sbt_lock_wake(struct sbt_lock *g) {
    sbt_futex_wake(&g->word, 1);
}
