/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that a command writes for its user: when the command is over it is whole, or what it was before. Written under
 * a name beside it and renamed at the end; whatever ends the command through exit() on the way removes that again. What
 * is no regular file (a terminal, a pipe, /dev/null), or is standard output under another name, is written directly.
 */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include <stdio.h>

struct output;

/*
 * Refuses, with `what` in front ("trace: --out"), if it cannot be written or is `input`, under whatever name; that may
 * be NULL.
 */
struct output *output_open(const char *what, const char *path, const char *input);
FILE *output_file(const struct output *o);
/* It is complete; frees. Refuses if not all of it reached the file, which then is what it was before. */
void output_close(struct output *o);
/* The command ends without exit(): removes what is not complete. For signal handlers, too. */
void output_abandon(void);

#endif
