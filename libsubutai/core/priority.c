/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/priority.h"

#include <sched.h>
#include <sys/syscall.h>

bool sbt_priority_known;

/*
 * A policy is real-time unless it is one of the three by which threads share the processor. Linux gives SCHED_DEADLINE
 * no priority.
 */
static bool is_real_time(int policy) {
    return policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

void sbt_priority_note(int policy) {
    if (is_real_time(policy & ~SCHED_RESET_ON_FORK))
        __atomic_store_n(&sbt_priority_known, true, __ATOMIC_RELAXED);
}

void sbt_priority_start(void) {
    long policy = sbt_syscall3(SYS_sched_getscheduler, 0, 0, 0);
    if (policy >= 0)
        sbt_priority_note((int)policy);
}

uint8_t sbt_priority_read(void) {
    struct sched_param parameters = {0};
    if (sbt_syscall3(SYS_sched_getparam, 0, &parameters, 0) < 0)
        return 0;
    return parameters.sched_priority > 0 ? (uint8_t)parameters.sched_priority : 0;
}
