/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder asks of the preloaded library, in a program that it is linked with: no system call is seen here. */
#include "abi/futex.h"
#include "abi/outside.h"

void (*abi_vfork_begins)(void);
void (*abi_user_changes)(uid_t effective, bool for_good);
void (*abi_files_end)(void);
bool (*abi_looks_up_observed)(void *handle, const char *symbol, const void *caller);
const struct abi_outside_observer *abi_outside_observer;
uint32_t abi_outside_unseen;
abi_futex_function *abi_futex_observer;
