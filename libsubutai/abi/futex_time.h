/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The timeout of a futex(2) call, read as the kernel reads it. Nothing here blocks. */
#ifndef SBT_ABI_FUTEX_TIME_H
#define SBT_ABI_FUTEX_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"

/* A time as the program gave it. */
struct abi_futex_until {
    struct sbt_deadline deadline;
    uint64_t in_ns; /* how far away that is; 0: it is a clock's */
};

/* The timeout of a wait with that operation. False: the kernel refuses it, and says why. */
bool abi_futex_read_until(struct abi_futex_until *until, int op, const struct timespec *timeout);

/* A wait that is over sooner goes to the kernel at once: to wait actively would make it longer. */
bool abi_futex_is_soon(const struct sbt_deadline *deadline);

#endif
