/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Registers of a thread of execution that is not running, and the switch from one to another.
 *
 * What a function call preserves is saved on the stack that is left: callee-saved registers, the floating-point control
 * words, and the floating-point exception flags, which are a thread's own. The thread-local storage base changes hands
 * with the stack, so errno, thread_local, pthread_self and the stack guard belong to whoever runs. Everything that
 * belongs to the kernel's thread stays: signal mask, tid, affinity.
 */
#ifndef SBT_SWITCH_CONTEXT_H
#define SBT_SWITCH_CONTEXT_H

#include <stddef.h>

/* Offsets are known to the assembly. */
struct sbt_regs {
    void *sp;  /* of the frame that sbt_regs_switch has pushed */
    void *tls; /* thread pointer: FS base, TPIDR_EL0 */
};

/*
 * Leave the caller's registers in `from`, go on where `to` was left; the call there returns `value`. Between the
 * change of the TLS base and that of the stack a signal handler may run on the old stack with the new base: neither is
 * in anybody else's hands then. `from` may be resumed by another kernel thread once this one runs on `to`'s stack,
 * which only code there can tell.
 */
void *sbt_regs_switch(struct sbt_regs *from, const struct sbt_regs *to, void *value);

/* A new one: the first switch to it calls entry(value) on that stack, with that TLS base. `entry` never returns. */
void sbt_regs_make(struct sbt_regs *regs, void *stack, size_t bytes, void (*entry)(void *value), void *tls);

/* NULL, or why this machine or process cannot switch: needs no system call. */
const char *sbt_regs_unusable(void);

static inline void *sbt_tls_base(void) {
    return __builtin_thread_pointer();
}

#endif
