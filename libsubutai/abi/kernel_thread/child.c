/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes and threads that are made past fork and pthread_create: by _Fork and clone. vfork is in load.c.
 *
 * | flags of clone       | the child is                                    | its creator                  |
 * |----------------------|-------------------------------------------------|------------------------------|
 * | neither of these     | a process with a copy of the memory, as by fork | makes the call at home       |
 * | CLONE_VM             | a process in the same memory                    | is pinned, as for vfork      |
 * | CLONE_THREAD         | a thread that the C library does not know       | is pinned; switching ends    |
 *
 * A child in the same memory may have its creator's thread-local storage, and with it the fiber. A pinned fiber waits
 * as a thread without a fiber: in the kernel, on words of the wait's own. So both may wait at once.
 */
#include "abi/kernel_thread/child.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include "abi/abi.h"
#include "core/handlers.h"
#include "switch/switch.h"

void abi_child_begins(uint64_t flags) {
    if ((flags & CLONE_THREAD) != 0)
        sbt_switch_refuse("clone with CLONE_THREAD",
                          "starts a thread without the C library's help, and Subutai cannot look after it");
    sbt_pin_self((flags & CLONE_VM) == 0);
}

/* In a child with a copy of the memory, after sbt_pin_hold in its creator: no handler of fork runs. */
static void be_child(void) {
    sbt_handlers_start();
    sbt_switch_fork_child();
}

SBT_EXPORT pid_t _Fork(void) {
    sbt_init();
    if (sbt_real._Fork == NULL) {
        errno = ENOSYS;
        return -1;
    }
    sbt_pin_hold(); /* the child gets the forking kernel thread and no other */
    pid_t child = sbt_real._Fork();
    if (child == 0)
        be_child();
    else
        sbt_pin_release();
    return child;
}

/* What the child runs: in the creator's frame, of which it has a copy. */
struct child {
    int (*routine)(void *);
    void *argument;
};

/* The C library's clone ends the kernel thread then, not the process: the library's own threads would keep that alive.
 */
static int begin(void *argument) {
    const struct child *child = argument;
    be_child();
    int result = child->routine(child->argument);
    sbt_thread_ended(NULL);
    return result;
}

static int clone_at_home(const struct child *child, void *stack, int flags, pid_t *parent_tid, void *tls,
                         pid_t *child_tid) {
    sbt_pin_hold();
    int r = sbt_real.clone(begin, stack, flags, (void *)(uintptr_t)child, parent_tid, tls, child_tid);
    sbt_pin_release();
    return r;
}

SBT_EXPORT int clone(int (*routine)(void *), void *stack, int flags, void *argument, ...) {
    va_list more; /* what was not given is not used: the flags say so */
    va_start(more, argument);
    pid_t *parent_tid = va_arg(more, pid_t *);
    void *tls = va_arg(more, void *);
    pid_t *child_tid = va_arg(more, pid_t *);
    va_end(more);
    sbt_init();
    /* A child with storage of its own may not have ours in it. */
    if ((flags & (CLONE_VM | CLONE_SETTLS)) == 0 && routine != NULL)
        return clone_at_home(&(struct child){routine, argument}, stack, flags, parent_tid, tls, child_tid);
    abi_child_begins((uint32_t)flags);
    return sbt_real.clone(routine, stack, flags, argument, parent_tid, tls, child_tid);
}
SBT_ALIAS_AS("", __clone, clone);
