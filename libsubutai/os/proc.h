/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel says about this process's threads in /proc. */
#ifndef SBT_OS_PROC_H
#define SBT_OS_PROC_H

#include <stdint.h>

/*
 * The state letter of a kernel thread of this process, as in proc(5): 'R' runs or could run; 'S' and 'D' sleep; 'Z' is
 * the process's first thread and has ended; '\0': there is no such thread, or the kernel does not say. Three system
 * calls, no allocation, no libc lock; uses a file descriptor for that time.
 */
char sbt_proc_state(uint32_t tid);

#endif
