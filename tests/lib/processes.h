/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Child processes of a test: forked, and all of them joined. */
#ifndef TESTS_LIB_PROCESSES_H
#define TESTS_LIB_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

void *shared_memory(size_t size);                           /* zeroed, shared with children */
pid_t child_start(void (*routine)(void *), void *argument); /* it exits with 0 after the routine */
void child_join(pid_t child);                               /* fails unless it exited with 0 */
void child_join_with(pid_t child, int status);              /* the same, with that status */
void run_in_child(void (*routine)(void *), void *argument); /* start and join */

#ifdef __cplusplus
}
#endif

#endif
