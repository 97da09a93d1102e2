/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* futex(2) for the exported functions, and for foreign runtimes that are led here. */
#ifndef SBT_ABI_FUTEX_H
#define SBT_ABI_FUTEX_H

#include <stdint.h>

/*
 * futex(2), served where it can be. The result is the kernel's: 0 or more, or a negated errno value; errno is left
 * alone. Blocks where futex(2) does, and is no cancellation point. May be called before the library has started, and
 * wherever a system call may be made, signal handlers included.
 */
long abi_futex(uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2, uint32_t *word2, uint32_t val3);

/* The same for a call that returns to `caller`, which may be in an object that makes other futex calls itself. */
long abi_futex_from(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2,
                    uint32_t *word2, uint32_t val3);

typedef long abi_futex_function(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2,
                                uint32_t *word2, uint32_t val3);

/* The recording library only: called in place of abi_futex_serve, which it calls. Set once, when that is loaded. */
extern abi_futex_function *abi_futex_observer;
abi_futex_function abi_futex_serve;

/*
 * The code between those addresses makes all its futex calls through abi_futex from now on: it does not count as code
 * with calls that the library does not see. Before the first of these calls.
 */
void abi_futex_adopt(uintptr_t from, uintptr_t to);

/* That code has been unloaded: other code in its place is looked at again. */
void abi_futex_forget(uintptr_t from, uintptr_t to);

#endif
