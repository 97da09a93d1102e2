/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Background load: processes that compute while a program is measured, so that the machine is busy. */
#ifndef CMD_BACKGROUND_LOAD_H
#define CMD_BACKGROUND_LOAD_H

#include <stddef.h>

enum { BACKGROUND_LOAD_MAX = 1024 };

/*
 * Start `n` processes that compute and never wait. The kernel kills them if this process dies. Refusals begin with
 * `subcommand`.
 */
void background_load_start(const char *subcommand, size_t n);
/* Kill them. Refuses if a process has ended before: then some runs had less load than was asked for. */
void background_load_end(void);

#endif
