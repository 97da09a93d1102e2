/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_SOURCE_LINES_H
#define CMD_SOURCE_LINES_H

#include "command.h"

/*
 * The library knows no source lines: in --delegate put the code of each "queue.c:42" in its place,
 * "app+0x11f0..0x1208", as the debugging information of `program` and of its libraries says. What none of them has
 * stays, and the library says so.
 */
void source_lines_in(struct settings *settings, const char *program);

#endif
