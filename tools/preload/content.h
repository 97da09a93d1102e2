/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparing what programs wrote, held in in-memory files; see trial.h. */
#ifndef CMD_CONTENT_H
#define CMD_CONTENT_H

#include <stdbool.h>

/* An in-memory copy of the file at `path`; -1: there is no such file. Other failures are refused. */
int content_take(const char *subcommand, const char *path);
/* Do both have the same bytes? -1 (nothing was written) equals only -1. */
bool content_same(const char *subcommand, int a, int b);

#endif
