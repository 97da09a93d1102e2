/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What /proc says of the calling process and its threads. */
#ifndef TESTS_LIB_PROC_H
#define TESTS_LIB_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel thread that runs the caller, without the system call for which the library would pin it there. */
long proc_kernel_thread(void);
/* 'R', 'S', ...; '?' if the thread has ended. */
char proc_thread_state(pid_t tid);
/* What stands behind `key` ("VmRSS:") in /proc/TASK/status, of "self", "thread-self" or "self/task/N". False, and an
 * empty text, if it has no such line, or there is no such thread. */
bool proc_status(const char *task, const char *key, char *value, size_t size);
/* A number of the process, "VmSize:" or "VmRSS:", in KiB; it must be there. */
long proc_kib(const char *key);

#ifdef __cplusplus
}
#endif

#endif
