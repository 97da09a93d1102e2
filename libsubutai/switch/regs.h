/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registers of a fiber that does not run, and the switch from one fiber to another.
 *
 * A switch saves, on the stack that is left, what a function call preserves: the callee-saved registers, the
 * floating-point control words, and also the floating-point exception flags, which belong to a thread. The base of
 * thread-local storage changes with the stack. So errno, thread_local, pthread_self and the stack guard are those of
 * the fiber that runs. What belongs to the kernel thread stays: signal mask, tid, affinity.
 */
#ifndef SBT_SWITCH_REGS_H
#define SBT_SWITCH_REGS_H

#include <stddef.h>

/* The assembly knows the offsets. */
struct sbt_regs {
    void *sp;  /* of the frame that sbt_regs_switch has pushed */
    void *tls; /* thread pointer: FS base, TPIDR_EL0 */
};

/*
 * Save the caller's registers in `from`, and go on where `to` was left: the call there returns `value`.
 *
 * Between the change of the TLS base and the change of the stack a signal handler may run on the old stack with the new
 * base. No other kernel thread uses either of them then. Once this kernel thread runs on `to`'s stack, another one may
 * resume `from`. Only code on `to`'s stack can announce that.
 */
void *sbt_regs_switch(struct sbt_regs *from, const struct sbt_regs *to, void *value);

/*
 * Make new registers: the first switch to them calls entry(value) on that stack, with that TLS base. `entry` never
 * returns.
 */
void sbt_regs_make(struct sbt_regs *regs, void *stack, size_t bytes, void (*entry)(void *value), void *tls);

/* NULL, or why this machine or process cannot switch. Makes no system call. */
const char *sbt_regs_unusable(void);

static inline void *sbt_tls_base(void) {
    return __builtin_thread_pointer();
}

#endif
