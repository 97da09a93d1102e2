/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* futex(2). */
#include "abi/abi.h"

#include <sys/syscall.h>

long abi_futex(uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2, uint32_t *word2, uint32_t val3) {
    return sbt_syscall6(SYS_futex, (long)word, op, (long)val, (long)timeout_or_val2, (long)word2, (long)val3);
}

void abi_futex_adopt(uintptr_t from, uintptr_t to) {
    (void)from, (void)to;
}
