/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Alternate signal stacks (sigaltstack(2)). The kernel keeps one for each kernel thread. A fiber's own is its home
 * thread's. A carrier has a signal stack too, if the program imports sigaltstack: there the handlers with SA_ONSTACK of
 * the fibers that it runs find their stack, above all a handler that is to survive a stack overflow. Rust's standard
 * library has such a handler in each of its threads.
 *
 *  - While a handler runs on a carrier's signal stack its fiber stays on that carrier (sbt_switch_is_fixed): the next
 *    handler of another fiber would begin at the top of that stack. A handler that leaves by a jump is off the stack.
 *  - The return from a handler gives the kernel thread the signal stack that the kernel has noted in the handler's
 *    context. The fiber may have moved meanwhile, and then it would be another kernel thread's. So the note is made
 *    one that the kernel refuses without a word, and the kernel thread keeps what it has (sbt_signal_stack_returned).
 */
#ifndef SBT_SWITCH_SIGNAL_STACK_H
#define SBT_SWITCH_SIGNAL_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "switch/carrier.h"

#define SBT_SIGNAL_STACK_BYTES ((size_t)128 << 10) /* address space; what no handler uses is no memory */

/* Before n carriers begin: get the stacks. False: there is no memory for them, and there can be no carriers. */
bool sbt_signal_stack_start(struct sbt_carrier *carriers, uint32_t n);

/* On the carrier, before its first fiber. */
void sbt_signal_stack_carry(const struct sbt_carrier *x);

/* A handler returns to `context` (ucontext_t). */
void sbt_signal_stack_returned(void *context);

/* Is the caller on its carrier's signal stack? f: the caller's fiber, or NULL. */
static inline bool sbt_signal_stack_is_here(const struct sbt_fiber *f) {
    const struct sbt_carrier *x = f != NULL ? f->carrier : NULL;
    return x != NULL && (uintptr_t)__builtin_frame_address(0) - x->signal_stack < SBT_SIGNAL_STACK_BYTES;
}

#endif
