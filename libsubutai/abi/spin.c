/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pthread_spin_*. A shared spinlock cannot be told from a private one, so every engine uses glibc's encoding. */
#include "abi/abi.h"

SBT_EXPORT int pthread_spin_init(pthread_spinlock_t *s, int shared) {
    return THEIRS(pthread_spin_init(s, shared));
}

SBT_EXPORT int pthread_spin_destroy(pthread_spinlock_t *s) {
    return THEIRS(pthread_spin_destroy(s));
}

SBT_EXPORT int pthread_spin_lock(pthread_spinlock_t *s) {
    return sbt_all_theirs != 0 ? THEIRS(pthread_spin_lock(s)) : sbt_engine.spin_lock(s);
}

SBT_EXPORT int pthread_spin_trylock(pthread_spinlock_t *s) {
    return sbt_all_theirs != 0 ? THEIRS(pthread_spin_trylock(s)) : sbt_engine.spin_trylock(s);
}

SBT_EXPORT int pthread_spin_unlock(pthread_spinlock_t *s) {
    return sbt_all_theirs != 0 ? THEIRS(pthread_spin_unlock(s)) : sbt_engine.spin_unlock(s);
}
