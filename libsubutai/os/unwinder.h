/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libgcc's unwinder (libgcc_s.so.1), without being linked to it: most processes never unwind, and its constructor asks
 * the processor what it is, which under a hypervisor takes half as long as the rest of this library's start (each such
 * question is an exit).
 *
 * What a program has in its global scope comes first, as the dynamic linker would have bound it: another unwinder
 * perhaps (LLVM's libunwind). The rest is loaded: by the first cancellation, by what unwinds stacks, or when an
 * exception first passes a frame of this library.
 *
 * The C library unwinds a thread that is cancelled, or ends by pthread_exit, by libgcc_s.so.1 itself, whatever the
 * global scope has (libtcmalloc.so.4 brings another libunwind). One unwinder cannot go on with what another has begun,
 * nor read its contexts; libgcc's own personality routine calls what the global scope has. So clean-ups on that way are
 * found by abi/unwinding.c, with libgcc_s.so.1's own functions.
 */
#ifndef SBT_OS_UNWINDER_H
#define SBT_OS_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <unwind.h>

/* libgcc's, which has no header for it. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};

/* NULL until sbt_unwinder_is_whole, or sbt_unwinder_load has returned true. */
struct sbt_unwinder {
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn visit, void *argument);
    uintptr_t (*ip)(struct _Unwind_Context *context);
    uintptr_t (*ip_info)(struct _Unwind_Context *context, int *is_before);
    uintptr_t (*cfa)(struct _Unwind_Context *context);
    const void *(*find_fde)(void *address, struct dwarf_eh_bases *bases);
    void (*resume)(struct _Unwind_Exception *exception);
    _Unwind_Reason_Code (*personality)(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                       struct _Unwind_Exception *exception, struct _Unwind_Context *context);
};
extern struct sbt_unwinder sbt_unwinder;

/* libgcc_s.so.1's own. NULL until sbt_unwinder_load has returned true. */
struct sbt_unwinder_forced {
    void (*resume)(struct _Unwind_Exception *exception);
    uintptr_t (*ip_info)(struct _Unwind_Context *context, int *is_before);
    uintptr_t (*region)(struct _Unwind_Context *context);
    void *(*language_data)(struct _Unwind_Context *context);
    void (*set_register)(struct _Unwind_Context *context, int number, _Unwind_Word value);
    void (*set_ip)(struct _Unwind_Context *context, _Unwind_Ptr ip);
};
extern struct sbt_unwinder_forced sbt_unwinder_forced;

/* At start-up: takes what the process has begun with. Allocates and locks nothing. */
void sbt_unwinder_start(void);
bool sbt_unwinder_is_whole(void);
/*
 * Loads what is missing, as the C library does for its first cancellation. False: there is no libgcc_s.so.1. May
 * allocate, and wait for the dynamic linker's lock. Any number of times, in any thread.
 */
bool sbt_unwinder_load(void);

#endif
