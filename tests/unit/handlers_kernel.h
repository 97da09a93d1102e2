/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Included before everything else in core/handlers.c: its system calls go through handlers_test.c, which may have the
 * kernel refuse another queued signal.
 */
#ifndef HANDLERS_KERNEL_H
#define HANDLERS_KERNEL_H

#include "os/arch.h"

long handlers_syscall(long number, long a, long b, long c, long d);
long handlers_syscall0(long number);

#undef sbt_syscall0
#define sbt_syscall0(number) handlers_syscall0(number)
#define sbt_syscall6(number, a, b, c, d, e, f) handlers_syscall((number), (a), (b), (c), (d))

#endif
