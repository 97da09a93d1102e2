/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/fence.h"

#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

bool sbt_fence_asymmetric;
static bool forbidden; /* atomic; relaxed: set by the thread that installs the filter, before it does so */

static bool membarrier(int command) {
    return sbt_syscall3(SYS_membarrier, command, 0, 0) == 0;
}

/*
 * Not under a seccomp filter: that may do anything at a system call that its author did not expect, and end the process
 * too.
 */
void sbt_fence_start(void) {
    sbt_fence_asymmetric = sbt_syscall3(SYS_prctl, PR_GET_SECCOMP, 0, 0) <= 0 &&
                           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                           membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void sbt_fence_forbid(void) {
    __atomic_store_n(&forbidden, true, __ATOMIC_RELAXED);
}

bool sbt_fence_is_forbidden(void) {
    return __atomic_load_n(&forbidden, __ATOMIC_RELAXED);
}

bool sbt_fence_heavy(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!sbt_fence_asymmetric)
        return true;
    return !sbt_fence_is_forbidden() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
