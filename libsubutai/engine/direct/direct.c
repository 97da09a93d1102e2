/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The software engine, put together. Its state is in the objects and in the parking lot. */
#include "engine/direct/direct.h"
#include "engine/direct/self.h"

#include "wait/adapt.h"

_Thread_local struct direct_self direct_self __attribute__((tls_model("initial-exec")));

static int start(const struct sbt_options *options) {
    sbt_adapt_start((uint32_t)options->value[SBT_OPT_SPIN_NS].u, (uint32_t)options->value[SBT_OPT_YIELDS].u);
    return 0;
}

static void nothing(void) {}

const struct sbt_engine sbt_engine_direct = {
    .name = "direct",
    .start = start,
    .thread_enter = nothing,
    .thread_exit = nothing,
    .fork_child = nothing,
    .mutex_destroy = direct_mutex_destroy,
    .mutex_lock = direct_mutex_lock,
    .mutex_trylock = direct_mutex_trylock,
    .mutex_timedlock = direct_mutex_timedlock,
    .mutex_unlock = direct_mutex_unlock,
    .cond_destroy = direct_cond_destroy,
    .cond_wait = direct_cond_wait,
    .cond_signal = direct_cond_signal,
    .cond_broadcast = direct_cond_broadcast,
    .barrier_init = direct_barrier_init,
    .barrier_destroy = direct_barrier_destroy,
    .barrier_wait = direct_barrier_wait,
    .rwlock_destroy = direct_rwlock_destroy,
    .rwlock_rdlock = direct_rwlock_rdlock,
    .rwlock_tryrdlock = direct_rwlock_tryrdlock,
    .rwlock_wrlock = direct_rwlock_wrlock,
    .rwlock_trywrlock = direct_rwlock_trywrlock,
    .rwlock_unlock = direct_rwlock_unlock,
    .sem_init = direct_sem_init,
    .sem_destroy = direct_sem_destroy,
    .sem_wait = direct_sem_wait,
    .sem_trywait = direct_sem_trywait,
    .sem_post = direct_sem_post,
    .sem_getvalue = direct_sem_getvalue,
    .futex_wait = direct_futex_wait,
    .futex_wake = direct_futex_wake,
    .futex_requeue = direct_futex_requeue,
    .spin_lock = direct_spin_lock,
    .spin_trylock = direct_spin_trylock,
    .spin_unlock = direct_spin_unlock,
};
