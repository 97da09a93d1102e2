/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's signal handlers are put off while the thread that they interrupt holds a lock of the library's own.
 *
 * A handler may last and wait for other threads: that of a collector that stops the world does. Should its thread hold
 * a bucket of the lot, or a queue of ready contexts, all others that come there would wait for the handler, and so
 * might whoever it waits for. Such a section takes a fraction of a microsecond; so the handler returns at once, with
 * all signals blocked, and runs when the section ends.
 *
 * Only handlers that were installed through abi/signal.c. Not put off are those that run once (SA_RESETHAND: by the
 * time they are called the kernel has forgotten them) and those of faults.
 */
#ifndef SBT_CORE_HANDLERS_H
#define SBT_CORE_HANDLERS_H

#include <signal.h>
#include <stdbool.h>

#include "core/arch.h"
#include "core/thread.h"

/* Around a section; they nest. sbt_self.in_lot does the same. The order matters to a handler on the same thread only.
 */
static inline void sbt_handlers_hold(void) {
    sbt_self.handlers_held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Run what was put off, if nothing is held any more. May last as long as handlers do. */
void sbt_handlers_catch_up(void);

static inline void sbt_handlers_release(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.handlers_held--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_self.handlers_put_off != 0))
        sbt_handlers_catch_up();
}

/* Once, and in each forked child: handlers that are installed elsewhere are not put off. */
void sbt_handlers_start(void);

/*
 * sigaction, errors and all, but that what the kernel is given in place of the program's handler puts that off. Needs
 * sbt_real. Two threads that install two handlers of one signal at once may leave the one with the other's flags.
 */
int sbt_handlers_set(int signal, const struct sigaction *action, struct sigaction *old);

/* Called when one has returned, NULL: nothing is. Set once, before there are threads. */
extern void (*sbt_handlers_returned)(void);

/*
 * Signals that no handler blocks while it runs, whatever its mask; that of one that can be put off is read back as it
 * was set. Set once, likewise.
 */
extern uint64_t sbt_handlers_spared;

/* Is it a handler that can be put off? */
bool sbt_handlers_can(int signal, const struct sigaction *action);

#endif
