/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that a command writes for its user. When the command ends, the file is complete, or as it was before. For that
 * the command writes another file in the same folder and renames it at the end; an exit() on the way removes that file.
 * A terminal, a pipe, /dev/null and standard output under another name are written directly.
 */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include <stdio.h>

struct output;

/*
 * Open the file. It is refused if it cannot be written, or is `input` (which may be NULL) under any name. A refusal
 * begins with `what`: "trace: --out".
 */
struct output *output_open(const char *what, const char *path, const char *input);
FILE *output_file(const struct output *o);
/* Complete the file and free `o`. Refuses if not all was written; then the file stays as it was. */
void output_close(struct output *o);
/* Remove files that are not complete, for a command that ends without exit(). Async-signal-safe. */
void output_abandon(void);

#endif
