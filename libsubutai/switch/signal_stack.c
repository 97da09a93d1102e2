/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "switch/signal_stack.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "os/memory.h"
#include "switch/state.h"

#define GUARD_BYTES SBT_PAGE_MAX
#define EACH (GUARD_BYTES + SBT_SIGNAL_STACK_BYTES)
#define DISARMS ((unsigned)1 << 31) /* SS_AUTODISARM, which older headers lack */
#define NO_FLAGS 0x7fff             /* flags that the kernel does not know: it leaves the signal stack as it is */

static char *stacks; /* with a guard below each; kept for ever, also in forked children */
static size_t bytes; /* of all */

bool sbt_signal_stack_start(struct sbt_carrier *carriers, uint32_t n) {
    if (stacks == NULL) {
        stacks = sbt_memory_map(n * EACH);
        bytes = n * EACH;
    }
    if (bytes < n * EACH)
        return false;
    for (uint32_t i = 0; i < n && stacks != NULL; i++) {
        char *guard = stacks + i * EACH;
        sbt_syscall3(SYS_mprotect, (long)guard, GUARD_BYTES, PROT_NONE);
        carriers[i].signal_stack = (uintptr_t)guard + GUARD_BYTES;
    }
    return stacks != NULL;
}

void sbt_signal_stack_carry(const struct sbt_carrier *x) {
    stack_t stack = {.ss_sp = (void *)x->signal_stack, .ss_size = SBT_SIGNAL_STACK_BYTES};
    if (x->signal_stack != 0)
        sbt_syscall3(SYS_sigaltstack, (long)&stack, 0, 0);
}

void sbt_signal_stack_returned(void *context) {
    stack_t *noted = &((ucontext_t *)context)->uc_stack;
    const struct sbt_fiber *f = sbt_self.fiber;
    bool carried = f != NULL && f->carrier != NULL, was_carried = (uintptr_t)noted->ss_sp - (uintptr_t)stacks < bytes;
    if (stacks != NULL && (carried || was_carried))
        noted->ss_flags = NO_FLAGS;
}

/* Before the program is judged: what it imports decides whether carriers will have signal stacks. */
bool sbt_switch_bears_signal_stack(int flags, size_t size) {
    if (__atomic_load_n(&SBT_SWITCH->judged, __ATOMIC_ACQUIRE) != 0 && SBT_SWITCH->signal_stacks == 0)
        return false;
    return flags == SS_DISABLE || (((unsigned)flags & ~(unsigned)SS_ONSTACK) == 0 && size <= SBT_SIGNAL_STACK_BYTES);
}
