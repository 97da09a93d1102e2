/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What those share that unwind stacks by libgcc's _Unwind_Backtrace, for the reasons of observe/stack.h. */
#ifndef SBT_OS_UNWIND_H
#define SBT_OS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#include "os/unwinder.h"

extern uintptr_t sbt_own_code_bytes; /* from where this library begins to the end of its code; 0: not started */

/* The linker's name for where this library begins: with its ELF header. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* What sbt_own_code_bytes is when started. Any time. */
uintptr_t sbt_find_own_code_bytes(void);

/*
 * At start-up: stacks are to be unwound. That may be inside malloc, so an unwinder that the process has not begun with
 * is loaded by the library's constructor, which calls the second. Stacks before that are not known.
 */
void sbt_unwind_want(void);
bool sbt_unwind_construct(void); /* true: it has loaded one */
/*
 * Can stacks be unwound? Never, if none are wanted, without libgcc_s.so.1, or if the C library is too old
 * (before 2.35): its look-ups of frames take locks. Any time.
 */
static inline bool sbt_unwind_can(void) {
    extern bool sbt_unwind_is_ready;
    return __atomic_load_n(&sbt_unwind_is_ready, __ATOMIC_ACQUIRE);
}

/* Is it an address of this library's code? */
static inline bool sbt_is_own_code(uintptr_t address) {
    return address - (uintptr_t)__ehdr_start < sbt_own_code_bytes;
}

/*
 * In a callback, with the frame's address of execution: where in memory that stands, as the return address of the call
 * before; NULL: not known. On x86-64 a return address is below the frame to which it returns.
 */
static inline const uintptr_t *sbt_unwind_place(struct _Unwind_Context *context, uintptr_t address) {
#if defined(__x86_64__)
    const uintptr_t *place = (const uintptr_t *)sbt_unwinder.cfa(context) - 1;
    return *place == address ? place : NULL;
#else
    (void)context;
    (void)address;
    return NULL;
#endif
}

#endif
