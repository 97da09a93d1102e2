/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparing what programs wrote, held in in-memory files; see trial.h. */
#ifndef CMD_CONTENT_H
#define CMD_CONTENT_H

#include <stdbool.h>

/* In-memory copy of the file at `path`; -1 if there is no such file. Other failures are refused. */
int content_take(const char *who, const char *path);
/* Same bytes? -1 (nothing was written) equals only -1. */
bool content_same(const char *who, int a, int b);

#endif
