/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For rcl-walk, in place of rcl/wait.h: a wait is the scheduler's. */
#ifndef RCL_WAIT_H
#define RCL_WAIT_H

#include <time.h>

#include "code_sched.h"

/* Of the scenario: whether a thread sleeps when it has looked twice, or never does. */
extern bool rcl_walk_sleeps;

static inline bool rcl_look_on(uint32_t *n) {
    if (rcl_walk_sleeps && *n != 0)
        return false;
    *n = 1;
    code_relax();
    return true;
}

static inline void rcl_sleep(uint32_t *word, uint32_t expected, const struct timespec *most) {
    (void)most;
    code_wait(word, expected);
}

static inline void rcl_wake(uint32_t *word, int n) {
    code_wake(word, (uint32_t)n);
}

#endif
