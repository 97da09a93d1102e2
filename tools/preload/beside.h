/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A busy machine: processes that compute beside what is measured. */
#ifndef CMD_BESIDE_H
#define CMD_BESIDE_H

#include <stddef.h>

enum { BESIDE_MAX = 1024 };

/* Start n of them, each of which never waits; `who` is the subcommand, for refusals. They end with this process. */
void beside_start(const char *who, size_t n);
void beside_end(void);

#endif
