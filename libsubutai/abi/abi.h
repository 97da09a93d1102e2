/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the exported functions share. Each decides whether the object is served or glibc's, and passes the call on. What
 * POSIX asks for above any engine is done in abi/ too: recursion, error checking, pthread_once, the clock of a
 * deadline.
 */
#ifndef SBT_ABI_ABI_H
#define SBT_ABI_ABI_H

#include "abi/export.h"
#include "abi/futex.h"
#include "abi/names.h"
#include "core/object.h"
#include "core/thread.h"
#include "engine/engine.h"
#include "os/arch.h"
#include "os/real.h"
#include "start/init.h"

#if SBT_RENAMED
#define SBT_SYMBOL_PREFIX "sbt_"
#define SBT_RENAME(name) extern __typeof(name) name __asm__("sbt_" #name);
#define SBT_RENAME_REAL(result, name, parameters) SBT_RENAME(name)
SBT_REAL_FUNCTIONS(SBT_RENAME_REAL)
SBT_REAL_COND_FUNCTIONS(SBT_RENAME_REAL)
SBT_REAL_COND_CLOCK_FUNCTIONS(SBT_RENAME_REAL)
SBT_C11_NAMES(SBT_RENAME)
#else
#define SBT_SYMBOL_PREFIX ""
#endif
#define SBT_ALIAS(alias_name, name) SBT_ALIAS_AS(SBT_SYMBOL_PREFIX, alias_name, name)

/*
 * A call of glibc's function, for an object of glibc's. It initialises the library first, because that finds the
 * function.
 */
#define THEIRS(call) (sbt_init(), sbt_real.call)

/*
 * A call that may wait for the outside: the caller leaves the order of the engine, if that keeps one. A cancellation
 * may act in outside_begin: then has_left is false, and the engine's own clean-up does what is to be done.
 */
struct abi_outside {
    bool has_left;
    struct _pthread_cleanup_buffer left;
};

static inline void abi_outside_begin(struct abi_outside *o) {
    o->has_left = false;
    if (SBT_UNLIKELY(sbt_engine.order != NULL))
        o->has_left = sbt_engine.order->outside_begin(&o->left);
}

static inline void abi_outside_end(struct abi_outside *o) {
    if (SBT_UNLIKELY(o->has_left))
        sbt_engine.order->outside_end(&o->left);
}

/* For the length of the block that this stands in, however that ends: also by a jump out of a signal handler. */
#define ABI_OUTSIDE                                                                                                    \
    struct abi_outside outside __attribute__((cleanup(abi_outside_end), unused));                                      \
    abi_outside_begin(&outside)

/* A call of glibc's function that waits, also for other processes, or looks without waiting. */
#define THEIRS_WAITS_IF(waits, call)                                                                                   \
    (sbt_init(),                                                                                                       \
     SBT_LIKELY(sbt_engine.order == NULL) || !((waits) || sbt_engine.order->looks()) ? sbt_real.call : __extension__({ \
         ABI_OUTSIDE;                                                                                                  \
         sbt_real.call;                                                                                                \
     }))
#define THEIRS_WAITS(call) THEIRS_WAITS_IF(true, call)

/*
 * A wait for no file and no signal, in an engine's order: true, it was a sleep, and `result` is the call's. False: the
 * call is to be made.
 */
bool abi_outside_sleeps(const struct timespec *time, int *result);

/* glibc's end of a process that would have written past an array (_FORTIFY_SOURCE). */
extern void __chk_fail(void) __attribute__((noreturn));

/* The clean-up at the root of each thread: the thread ends. */
void sbt_thread_ended(void *unused);

/* The kernel thread of that id has been sent a signal (kernel_thread/pinned.c). */
void sbt_sent_to_tid(uint32_t tid, int signal);

#endif
