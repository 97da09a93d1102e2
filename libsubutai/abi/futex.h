/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* futex(2) for the exported functions. */
#ifndef SBT_ABI_FUTEX_H
#define SBT_ABI_FUTEX_H

#include <stdint.h>

/* abi_futex (abi/abi.h) of a program's call that returns to `caller`. */
long abi_futex_from(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2,
                    uint32_t *word2, uint32_t val3);

#endif
