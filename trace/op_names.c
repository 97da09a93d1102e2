/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace.h"

const char *sbt_trace_op_name(unsigned op) {
    static const char *const names[SBT_TRACE_N_OPS] = {
        "thread_create", "thread_join",      "thread_end",     "init",
        "destroy",       "mutex_lock",       "mutex_trylock",  "mutex_unlock",
        "cond_wait",     "cond_signal",      "cond_broadcast", "barrier_wait",
        "rwlock_rdlock", "rwlock_tryrdlock", "rwlock_wrlock",  "rwlock_trywrlock",
        "rwlock_unlock", "sem_wait",         "sem_trywait",    "sem_post",
        "spin_lock",     "spin_trylock",     "spin_unlock",    "futex_wait",
        "futex_wake",    "outside_wait",
    };
    return op < SBT_TRACE_N_OPS ? names[op] : NULL;
}

const char *sbt_trace_type_name(unsigned type) {
    static const char *const names[SBT_TRACE_N_TYPES] = {"none",   "mutex", "cond", "barrier",
                                                         "rwlock", "sem",   "spin", "futex"};
    return type < SBT_TRACE_N_TYPES ? names[type] : NULL;
}
