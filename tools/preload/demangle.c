/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See demangle.h. */
#include "demangle.h"

#include <stddef.h>

#ifdef SUBUTAI_HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "command.h"

/*
 * LONGEST_NAME: a longer one is nothing to a reader, as templates within templates make them. ROOM: a character of
 * UTF-8 may end behind it.
 */
enum { LONGEST_NAME = 1000, ROOM = LONGEST_NAME + 4 };

/*
 * A symbol of 200 bytes may have a name of gigabytes, because each part of it may be two of the one before. So the
 * demangler gives the name away piece by piece, and is left by longjmp when it is long enough; it asks for no memory
 * that would be lost but, while it writes a name that is not of ASCII, the characters of that.
 */
struct piece {
    size_t n;
    jmp_buf is_long;
    char name[ROOM + 1];
};

static void add(const char *text, size_t n, void *opaque) {
    struct piece *p = opaque;
    size_t fits = n < ROOM - p->n ? n : ROOM - p->n;
    memcpy(p->name + p->n, text, fits);
    p->n += fits;
    if (p->n == ROOM)
        longjmp(p->is_long, 1);
}

/* False: the symbol is none of theirs. */
static bool demangled(struct piece *p, const char *symbol) {
    enum { OPTIONS = DMGL_AUTO | DMGL_ANSI };
    if (setjmp(p->is_long) != 0)
        return true;
    p->n = 0;
    if (rust_demangle_callback(symbol, OPTIONS, add, p) != 0)
        return true;
    p->n = 0; /* it may have found that out late */
    return cplus_demangle_v3_callback(symbol, OPTIONS, add, p) != 0;
}

char *demangle(const char *symbol) {
    if (strncmp(symbol, "_Z", 2) != 0 && strncmp(symbol, "_R", 2) != 0)
        return NULL;
    struct piece piece;
    if (!demangled(&piece, symbol))
        return NULL;
    piece.name[piece.n] = '\0';
    if (piece.n <= LONGEST_NAME)
        return cmd_format("%s", piece.name);
    return cmd_format("%.*s..", (int)cmd_whole_characters(piece.name, LONGEST_NAME), piece.name);
}
#else
char *demangle(const char *symbol) {
    (void)symbol;
    return NULL;
}
#endif
