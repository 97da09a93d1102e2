/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads: the tile of each, and the bounds of an operation. During an operation a thread uses its record (record.h).
 *
 * thread.c, fork.c and mailbox.c are a group of files that use each other:
 *  - an operation ends with the requests that a handler has deferred (thread.c calls mailbox.c);
 *  - handing a request in goes inside the engine (mailbox.c calls thread.c);
 *  - the first operation in a forked child makes its machine anew (thread.c calls fork.c, which calls both).
 */
#ifndef SBT_ENGINE_NI_THREAD_H
#define SBT_ENGINE_NI_THREAD_H

#include "core/handlers.h"
#include "engine/ni/record.h"
#include "os/arch.h"

/*
 * The calling thread's record for one operation, from ni_enter to ni_leave. `may_wait`: the operation cannot be
 * deferred, and the result is never NULL. Otherwise NULL says that the caller is a signal handler that has interrupted
 * its thread inside the engine. It calls ni_defer, and the request is made as soon as the thread is out.
 */
struct ni_thread *ni_enter(bool may_wait);
void ni_leave(struct ni_thread *t);
void ni_abandon(struct ni_thread *t); /* as ni_leave, but an answer is outstanding: the record is never used again */
void ni_defer(enum hw_op op, uint32_t id);
void ni_deliver_deferred(struct ni_thread *t);

/*
 * Around a section that has a place in a mailbox, or holds an NI. The program's handlers are deferred, and a handler
 * that runs all the same must keep out.
 */
static inline void ni_go_inside(struct ni_thread *t) {
    sbt_handlers_hold();
    t->inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ni_leave_inside(struct ni_thread *t) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->inside = 0;
    if (SBT_UNLIKELY(t->deferred != 0))
        ni_deliver_deferred(t);
    sbt_handlers_release();
}

/*
 * For a carrier (switch/) that has nothing to run: serve what has been handed in anywhere. True: there was something.
 */
bool ni_thread_serve_idly(void);

/* Make the records. 0 or ENOMEM. */
int ni_thread_start(void);
void ni_thread_enter(void);
void ni_thread_exit(void);
void ni_thread_fork_child(void);

#endif
