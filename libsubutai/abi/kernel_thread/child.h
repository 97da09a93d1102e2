/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBT_ABI_KERNEL_THREAD_CHILD_H
#define SBT_ABI_KERNEL_THREAD_CHILD_H

#include <stdint.h>

/* The caller is about to create a child by clone, with those flags, and not through abi's functions for processes. */
void abi_child_begins(uint64_t flags);

#endif
