/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From "module+0xoffset" in a trace to a place in the source. */
#ifndef CMD_SYMBOLS_H
#define CMD_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The answer is the best of these that the module's file gives:
 *
 *   "queue.c:42 push (app)"   with debugging information: the line of the call, and the function
 *   "push+0x1c (app)"         with a symbol: the offset is that of the return address
 *   "app+0x1234"              otherwise; "" for ""
 *
 * The function's name is the one of the source (demangle.h). Debugging information is looked for in the file and where
 * the distribution puts it (/usr/lib/debug), not on the network. Files are opened once. The answer is valid until the
 * next question.
 */
struct symbols;
struct symbols *symbols_new(void);
const char *symbols_name(struct symbols *symbols, const char *site);

/* The same in parts; NULL, 0: not known. Texts are valid until the next question, and `module` until symbols_free. */
struct place {
    const char *text; /* as symbols_name */
    const char *file, *function, *module;
    const char *symbol; /* the function's name in the file, of which `function` is the demangled one */
    int line;
    uint64_t into; /* of the return address in the function */
};
/* False: "" has no place. */
bool symbols_place(struct symbols *symbols, const char *site, struct place *place);

/*
 * The variable, by its name in the file, at `address` of a program in which the module's byte `offset` lay at `start`,
 * and how far into it the address is; NULL: the module has none there.
 */
const char *symbols_data(struct symbols *symbols, const char *path, uint64_t start, uint64_t offset, uint64_t address,
                         uint64_t *into);

/* Where that variable of the module lay, in such a program, and its size. False: the module has none. */
bool symbols_variable(struct symbols *symbols, const char *path, uint64_t start, uint64_t offset, const char *name,
                      uint64_t *address, uint64_t *size);

/*
 * Call `range` for the code of that line, in the file at `path`: from the offset in the file of its first byte to that
 * of its last. `file` is the last part of the source's path, as in a place. A line may have several ranges, or none.
 */
typedef void symbols_range(void *context, uint64_t first, uint64_t last);
void symbols_lines(struct symbols *symbols, const char *path, const char *file, int line, symbols_range *range,
                   void *context);

/* Call `named` with the name in the file of each function that the source calls `name`, where the two differ. */
typedef void symbols_named(void *context, const char *symbol);
void symbols_of_source(struct symbols *symbols, const char *path, const char *name, symbols_named *named,
                       void *context);
void symbols_free(struct symbols *symbols);

#endif
