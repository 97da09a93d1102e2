/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call stacks of long waits, and of what ended them.
 *
 * They are unwound by libgcc's _Unwind_Backtrace, on .eh_frame: the library that every program of threads has in it for
 * cancellation, and exceptions use. Since glibc 2.35 it finds a frame's tables by _dl_find_object, without a lock and
 * without allocation, so it may be called while the program holds any of its locks, the dynamic linker's or malloc's
 * too. (libunwind and elfutils would take the linker's lock for that, or read files.) Without _dl_find_object there are
 * no stacks.
 *
 * A frame takes some hundred nanoseconds. So a thread remembers its last stacks, with the places of the return
 * addresses in memory. If the same call site comes at the same depth, and all these places still hold the same
 * addresses (compared by their hash, which is also the stack's name), it is the same stack. Stacks of coroutines, and
 * of handlers that have their own, are unwound each time: they may be unmapped, and then their places must not be read.
 *
 * One limit: a function may take memory of its stack by alloca and leave it unfilled, with return addresses of earlier
 * calls in it. If two ways lead to it that end at the same place of the stack, because alloca took different sizes, and
 * the old addresses are those of the other way, the stack is taken for the other one. The frame pointer would tell some
 * of these apart, where no function in between uses that register otherwise; each recorded call would have to hand it
 * down.
 */
#ifndef SBT_OBSERVE_STACK_H
#define SBT_OBSERVE_STACK_H

#include "observe/record.h"

enum { STACK_MIN_NS = 20000 };

/* Before the first stack: if there can be any, events have them from now on; otherwise one line says why not. */
void rec_stack_start(void);
/*
 * The number of the calling thread's stack from the call at `site` outwards; 0: there is no memory. The thread is busy.
 * `at`: a word of the caller's. If that is on its frame, it is at the same place whenever a call comes by the same way.
 * A stack is remembered by it if it is, and unwound each time if it is elsewhere, as thread-local.
 */
uint32_t rec_stack_take(struct rec_thread *t, const void *at, const void *site);
/* The same; 0 also if it is not one of the thread's last stacks. */
uint32_t rec_stack_known(const struct rec_thread *t, const void *at, const void *site);
/* The record becomes another thread's. */
void rec_stack_forget(struct rec_thread *t);

#endif
