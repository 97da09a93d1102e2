/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal masks. The kernel keeps one for each kernel thread, and it has to go with the fiber.
 *
 * A carrier has the mask of the fiber that it runs, and remembers it (`mask`). It makes a system call only if the next
 * fiber's mask differs. Between two fibers it has both masks together, so no handler of a signal that a fiber blocks
 * runs on that fiber's stack.
 *
 * A fiber's mask is read, not computed, when the fiber leaves the place where the mask may have changed. A signal
 * handler may have changed the mask and returned since, and the kernel undoes that change silently.
 *
 * An idle carrier blocks all signals as soon as that matters (receive.c).
 */
#include "switch/mask.h"

#include "switch/recall.h"
#include "switch/state.h"

bool sbt_mask_jumps;

uint64_t sbt_mask_set(const uint64_t *mask) {
    uint64_t old;
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK, the same everywhere */, (long)mask, (long)&old, sizeof old, 0,
                 0);
    return old;
}

void sbt_mask_read(struct sbt_fiber *f) {
    f->mask_unsure = sbt_mask_jumps; /* before the mask is read, so that no change in a handler is lost */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t mask = sbt_mask_set(NULL);
    if (f->carrier != NULL)
        f->carrier->mask = mask; /* it includes the recall's signal if the fiber leaves from that signal's handler */
    /* atomic: receive.c reads other fibers' masks */
    __atomic_store_n(&f->mask, mask & ~sbt_recall_signals, __ATOMIC_RELAXED);
}

void sbt_mask_carry(struct sbt_carrier *x, uint64_t mask) {
    sbt_mask_set(&mask);
    __atomic_store_n(&x->mask, mask, __ATOMIC_RELEASE); /* pairs with sbt_receive_begin, which waits for it */
}

void sbt_switch_mask_changed(void) {
    if (sbt_self.fiber != NULL)
        sbt_self.fiber->mask_unsure = 1;
}
