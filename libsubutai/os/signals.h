/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Block all signals, SIGXFSZ and the signal of cancellation too, around what other threads wait for: a look at the
 * loaded objects, or making and writing a file. Otherwise a handler might end the process, fork, or call a function for
 * the first time, and wait on top of the thread that it has interrupted. The mask is the kernel thread's: the caller
 * must not be switched between the two calls.
 */
#ifndef SBT_OS_SIGNALS_H
#define SBT_OS_SIGNALS_H

#include <stdint.h>
#include <sys/syscall.h>

#include "os/arch.h"

/* The mask before, for sbt_signals_restore. */
static inline uint64_t sbt_signals_block(void) {
    uint64_t all = ~UINT64_C(0), before = 0;
    sbt_syscall6(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&all, (long)&before, sizeof all, 0, 0);
    return before;
}

static inline void sbt_signals_restore(uint64_t before) {
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, sizeof before, 0, 0);
}

#endif
