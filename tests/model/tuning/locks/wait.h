/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For locks-walk, in place of bench/locks/wait.h: a wait is the scheduler's, and time is a choice. */
#ifndef LOCKS_WAIT_H
#define LOCKS_WAIT_H

#include "code_sched.h"

static inline void lock_relax(void) {
    code_relax();
}

/* Which thread runs is the walk's choice in any case. */
static inline void lock_give_way_after(uint64_t since, uint64_t ns) {
    (void)since, (void)ns;
}

static inline uint64_t lock_now_ns(void) {
    return 0;
}

static inline bool lock_has_passed(uint64_t since, uint64_t ns) {
    (void)since, (void)ns;
    return code_time_passes();
}

#endif
