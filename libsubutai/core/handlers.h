/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deferred signal handlers: a handler of the program does not run while its thread holds a lock of the library's.
 *
 * A handler may last, and it may wait for other threads, as the handler of a collector does that stops the world. If
 * its thread held a bucket of the parking lot, or a run queue, other threads would wait for that lock until the handler
 * ends. The handler might wait for those very threads. A section under a lock takes a fraction of a microsecond. So the
 * handler returns at once, with all signals blocked, and runs when the section ends.
 *
 * Only handlers that were installed through abi/kernel_thread/signal.c can be deferred. Three kinds cannot be:
 *  - handlers of faults;
 *  - handlers with both SA_RESETHAND and SA_ONSTACK: the one signal that they are for has gone with its stack;
 *  - handlers that were installed by a system call without the C library.
 *
 * A handler with SA_RESETHAND is deferred as others are, although the kernel has forgotten it by then: it is written
 * down which one it was.
 *
 * A handler of these kinds may find its thread anywhere. So each folder has a mark of its own, and a handler that does
 * run looks there whether it has interrupted that folder:
 *
 * | mark                       | the thread ...                  | a handler that comes there ...          |
 * |----------------------------|---------------------------------|-----------------------------------------|
 * | handlers_held (here)       | is in a section                 | is deferred, if it can be               |
 * | in_lot (wait/parking_lot)  | holds a bucket                  | is deferred; or polls, owes wake-ups    |
 * | in_switch (switch/state.h) | is inside switch/               | polls, may set `deferred`; comes again  |
 * | ni_thread.busy             | has a request under way         | gets a record of its own, and may wait  |
 * | ni_thread.inside           | holds a lock of the emulation   | leaves its request, or is refused       |
 * | rec_thread.busy            | writes an event of its trace    | leaves its event among the pending ones |
 *
 * docs/architecture.md, "Marks that signal handlers find", says why these are not one counter.
 */
#ifndef SBT_CORE_HANDLERS_H
#define SBT_CORE_HANDLERS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "core/thread.h"
#include "os/arch.h"

/*
 * How often a handler looks again if it waits, cannot be deferred, and has interrupted its thread where it must not
 * queue. Every 0.2 ms costs little CPU time, and these handlers are too rare for their latency to matter.
 */
#define SBT_HANDLER_POLL_NS 200000

/* Handlers of one thread that are deferred at once, stacked by the kernel. Further handlers run at once. */
#define SBT_HANDLERS_DEFERRED_MOST 4

/*
 * Around a section. Sections nest. The order matters only to a handler on the same thread, so compiler fences suffice.
 */
static inline void sbt_handlers_hold(void) {
    sbt_self.handlers_held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Run the deferred handlers, unless the thread is still in a section. May last as long as the handlers do. */
void sbt_handlers_deliver(void);

static inline void sbt_handlers_release(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.handlers_held--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_self.handlers_deferred != 0))
        sbt_handlers_deliver();
}

/* Once, and in each forked child. A child of vfork does not call it, and its handlers are not deferred. */
void sbt_handlers_start(void);

/*
 * sigaction, errors included. The kernel is given a handler of the library's, which calls or defers the program's.
 * Needs sbt_real. If two threads install handlers of one signal at once, one handler may get the flags of the other. If
 * a thread receives the signal while another one installs a handler, the new one may be called in place of the old one.
 */
int sbt_handlers_set(int signal, const struct sigaction *action, struct sigaction *old);

/*
 * Called before a handler that could be deferred runs on a thread that others may rely on (sbt_self.waiter), with that
 * waiter and the signal. The handler may last: they do not rely on it any more. Set once, before there are threads.
 */
extern void (*sbt_handlers_interrupt)(struct sbt_waiter *waiter, int signal);

/*
 * Called before a handler runs that has interrupted no section, with the kernel's arguments. True: it is not to run,
 * the signal comes again. Not of faults, nor of signals that stop or continue the process: to send those takes others
 * back. NULL: no function is called. Set once, before there are threads.
 */
extern bool (*sbt_handlers_put_back)(int signal, siginfo_t *info, ucontext_t *context);

/*
 * Called before a handler runs, with the mask that the kernel has set for it. NULL: no function is called. Set once,
 * before there are threads.
 */
extern void (*sbt_handlers_entered)(void);

/*
 * Called when a handler has returned, with the context that it returns to. Then handlers of faults are called through
 * the library's too. NULL: no function is called. Set once, before there are threads.
 */
extern void (*sbt_handlers_returned)(void *context);

/*
 * Signals that no handler blocks while it runs, whatever its mask says. The program reads the mask of a deferrable
 * handler back as it set it. Set once, before there are threads.
 */
extern uint64_t sbt_handlers_spared;

/*
 * From now on the signal by which the C library cancels a thread asynchronously is deferred as handlers are: a thread
 * does not end in a section. Not by two threads at once. sbt_handlers_find_cancellation is called before: where the C
 * library has not installed its handler yet it makes and joins a thread, which may allocate memory and so wait for a
 * lock of the program's. Both need sbt_real.
 */
void sbt_handlers_find_cancellation(void);
void sbt_handlers_defer_cancellation(void);

/* Is the handler called through the library's, and deferred unless it is a fault's? */
bool sbt_handlers_can(int signal, const struct sigaction *action);

#endif
