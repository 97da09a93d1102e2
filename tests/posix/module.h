/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the module of module.c offers to process.c, which finds it by dlsym. */
#ifndef TESTS_POSIX_MODULE_H
#define TESTS_POSIX_MODULE_H

/* In the environment: a thread that the constructor starts and joins makes the process's first call of recvmsg. */
#define MODULE_CALLS_OUTSIDE "MODULE_CALLS_OUTSIDE"

/*
 * Lets `n_threads` (at most 16) threads meet at a condition; returns how many left it, or -1. *count_unloads is
 * incremented when the module is unloaded.
 */
int module_run(int n_threads, int *count_unloads);
typedef int module_run_function(int n_threads, int *count_unloads);

#endif
