/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What FUTEX_WAKE_OP does to its second word, as its last argument encodes it (FUTEX_OP of linux/futex.h): an
 * operation, and a comparison of what the word was before it.
 */
#ifndef SBT_ABI_FUTEX_OP_H
#define SBT_ABI_FUTEX_OP_H

#include <stdbool.h>
#include <stdint.h>

/* Has the code a comparison that the kernel knows? */
bool abi_futex_op_is_known(uint32_t code);

/* Do the operation in one step; *old: what the word was. False: the kernel refuses it, and nothing is done. */
bool abi_futex_operate(uint32_t *word, uint32_t code, int32_t *old);

/* Does the comparison hold of that? */
bool abi_futex_holds(int32_t old, uint32_t code);

#endif
