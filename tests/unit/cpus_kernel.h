/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Included before everything else in core/cpus.c: cpus_test.c is the kernel that its system calls go to. */
#ifndef CPUS_KERNEL_H
#define CPUS_KERNEL_H

#include "os/arch.h"

long cpus_syscall(long number, long argument, void *memory);

#undef sbt_syscall3
#define sbt_syscall3(number, a, b, c)                                                                                  \
    cpus_syscall((number), (long)(a), (number) == SYS_getrusage ? (void *)(b) : (void *)(c))

#endif
