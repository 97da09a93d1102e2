/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spinlocks, in glibc's encoding: nothing in the four bytes says whether another process shares them. A free lock holds
 * sbt_layout.spin_unlocked; glibc's x86-64 code counts a held one down below 0, so only the free value is a sure sign.
 * With more threads than cores the holder may not be running: after a while each look gives the core away.
 */
#include <errno.h>

#include "core/object.h"
#include "core/thread.h"
#include "engine/direct/direct.h"
#include "os/arch.h"
#include "wait/park.h"

#define LOOKS_BEFORE_YIELD 100

int direct_spin_trylock(pthread_spinlock_t *s) {
    int seen = sbt_layout.spin_unlocked;
    return __atomic_compare_exchange_n(s, &seen, !sbt_layout.spin_unlocked, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
               ? 0
               : EBUSY;
}

int direct_spin_lock(pthread_spinlock_t *s) {
    for (unsigned looks = 0; direct_spin_trylock(s) != 0;) {
        while (__atomic_load_n(s, __ATOMIC_RELAXED) != sbt_layout.spin_unlocked) {
            if (++looks % LOOKS_BEFORE_YIELD == 0)
                sbt_wait_yield(false);
            else
                sbt_cpu_relax();
        }
    }
    return 0;
}

int direct_spin_unlock(pthread_spinlock_t *s) {
    __atomic_store_n(s, sbt_layout.spin_unlocked, __ATOMIC_RELEASE);
    return 0;
}
