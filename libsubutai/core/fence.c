/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

bool sbt_fence_asymmetric;

static bool membarrier(int command) {
    return sbt_syscall3(SYS_membarrier, command, 0, 0) == 0;
}

void sbt_fence_start(void) {
    sbt_fence_asymmetric =
        membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool sbt_fence_heavy(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !sbt_fence_asymmetric || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
