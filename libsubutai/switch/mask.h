/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signal masks: the kernel keeps them for kernel threads, and they have to go with the fiber (mask.c). */
#ifndef SBT_SWITCH_MASK_H
#define SBT_SWITCH_MASK_H

#include "os/arch.h"
#include "switch/carrier.h"

/* The C library's own signals, which no program blocks: for cancellation, and to set credentials in all threads. */
#define SBT_MASK_RESERVED ((uint64_t)3 << 31)

/* Set the kernel thread's signal mask; NULL: leave it. The result is the mask from before. */
uint64_t sbt_mask_set(const uint64_t *mask);

/* Read what the mask of the caller's fiber is now. */
void sbt_mask_read(struct sbt_fiber *f);

/* Give the caller's carrier that mask. */
void sbt_mask_carry(struct sbt_carrier *x, uint64_t mask);

/* The program can change masks unseen, so a mask is read whenever a fiber leaves. Set at the start. */
extern bool sbt_mask_jumps;

/*
 * Before the carrier switches to another stack: block also what that stack's fiber blocks, so that no such signal is
 * handled there.
 */
static inline void sbt_mask_block_for(struct sbt_carrier *x, uint64_t mask) {
    if (SBT_UNLIKELY((mask & ~x->mask) != 0))
        sbt_mask_carry(x, x->mask | mask);
}

#endif
