/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From "module+0xoffset" in a trace to a place in the source. */
#ifndef CMD_SYMBOLS_H
#define CMD_SYMBOLS_H

/*
 * The answer is the best of these that the module's file gives:
 *
 *   "queue.c:42 push (app)"   with debugging information: the line of the call, and the function
 *   "push+0x1c (app)"         with a symbol: the offset is that of the return address
 *   "app+0x1234"              otherwise; "" for ""
 *
 * Debugging information is looked for in the file and where the distribution puts it (/usr/lib/debug), not on the
 * network. Files are opened once. The answer is valid until the next question.
 */
struct symbols;
struct symbols *symbols_new(void);
const char *symbols_name(struct symbols *symbols, const char *site);
void symbols_free(struct symbols *symbols);

#endif
