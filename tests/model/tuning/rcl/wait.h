/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For rcl-walk, in place of rcl/wait.h: a wait is the scheduler's. */
#ifndef RCL_WAIT_H
#define RCL_WAIT_H

#include <time.h>

#include "code_sched.h"

static inline void rcl_look_again(uint32_t n, uint32_t before_yield) {
    (void)n, (void)before_yield;
    code_relax();
}

static inline void rcl_sleep(uint32_t *word, uint32_t expected, const struct timespec *most) {
    (void)most;
    code_wait(word, expected);
}

static inline void rcl_wake(uint32_t *word, int n) {
    code_wake(word, (uint32_t)n);
}

#endif
