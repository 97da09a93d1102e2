/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a trace's "module+0xoffset" to a name for people. */
#ifndef CMD_SYMBOLS_H
#define CMD_SYMBOLS_H

/*
 * "function+0x1c (module)" where the module's file is there and has a symbol for the place, "module+0x1234" where not,
 * "" for "". Files are opened once. Valid until symbols_free.
 */
struct symbols;
struct symbols *symbols_new(void);
const char *symbols_name(struct symbols *symbols, const char *site);
void symbols_free(struct symbols *symbols);

#endif
