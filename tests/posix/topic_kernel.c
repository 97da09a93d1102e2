/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of topic.h asks the kernel directly, apart: the library steps aside for programs that do, and most topics do
 * not.
 */
#include "topic.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

bool no_robust_list(void) {
    void *head = NULL;
    size_t length = 0;
    return syscall(SYS_get_robust_list, 0, &head, &length) != 0 || head == NULL;
}

bool no_priority_inherit(void) {
    unsigned word = 0;
    return syscall(SYS_futex, &word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == -1 && errno == ENOSYS;
}

bool no_realtime(void) {
    int policy = sched_getscheduler(0);
    struct sched_param old, fifo = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    if (policy == -1 || sched_getparam(0, &old) != 0 || sched_setscheduler(0, SCHED_FIFO, &fifo) != 0)
        return true;
    SYS(sched_setscheduler(0, policy, &old));
    return false;
}
