/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal masks are the kernel thread's and have to go with the context. A carrier has the mask of the context that it
 * runs, and knows it (`mask`); a system call is made only where two that follow each other differ. Between them it
 * has both masks together: no handler of a signal that one of them blocks runs on that one's stack.
 *
 * A context's mask is read, not computed, when it leaves the place where it may have changed it: in between it may have
 * been changed in a signal handler that has returned since, which the kernel undoes without a word.
 *
 * Who accepts signals that are sent to the process? The main thread, which stays at home in programs that import any
 * function of this kind; idle carriers, which have the mask with which the first thread was created (base_mask); and
 * contexts that accept one that idle carriers block: they wait at home.
 */
#include "switch/inner.h"

bool sbt_switch_mask_jumps;

uint64_t sbt_mask_set(const uint64_t *mask) {
    uint64_t old;
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK, the same everywhere */, (long)mask, (long)&old, sizeof old, 0,
                 0);
    return old;
}

void sbt_mask_read(struct sbt_context *c) {
    c->mask_unsure = sbt_switch_mask_jumps; /* before it is read: a handler's doubts are not lost */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t mask = sbt_mask_set(NULL);
    if (c->carrier != NULL)
        c->carrier->mask = mask; /* with our own handler's signal, if that is how the context leaves it */
    c->mask = mask & ~sbt_kick_bits;
    c->receives = (SBT_SWITCH->base_mask & ~c->mask & ~SBT_MASK_RESERVED) != 0;
}

void sbt_mask_carry(struct sbt_carrier *x, uint64_t mask) {
    x->mask = mask;
    sbt_mask_set(&mask);
}

void sbt_switch_mask_changed(void) {
    if (sbt_self.context != NULL)
        sbt_self.context->mask_unsure = 1;
}
