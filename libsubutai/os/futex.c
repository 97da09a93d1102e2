/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/futex.h"

int sbt_futex_wait_frame(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    return sbt_futex_wait(word, expected, deadline);
}
