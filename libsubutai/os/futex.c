/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/futex.h"

int sbt_futex_wait_frame(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    return sbt_futex_wait(word, expected, deadline);
}

long sbt_futex_call_frame(uint32_t *word, int op, uint32_t val, uintptr_t timeout, uint32_t bits) {
    return sbt_syscall6(SYS_futex, (long)word, op, (long)val, (long)timeout, 0, (long)bits);
}
