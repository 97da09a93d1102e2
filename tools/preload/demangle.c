/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See demangle.h. */
#include "demangle.h"

#include <stddef.h>

#ifdef SUBUTAI_HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* A name that is nothing to a reader, as templates within templates make them. */
enum { LONGEST_NAME = 1000 };

char *demangle(const char *symbol) {
    if (strncmp(symbol, "_Z", 2) != 0 && strncmp(symbol, "_R", 2) != 0)
        return NULL;
    char *name = cplus_demangle(symbol, DMGL_AUTO | DMGL_ANSI);
    if (name == NULL || strlen(name) <= LONGEST_NAME)
        return name;
    char *shorter = cmd_format("%.*s..", (int)cmd_whole_characters(name, LONGEST_NAME), name);
    free(name);
    return shorter;
}
#else
char *demangle(const char *symbol) {
    (void)symbol;
    return NULL;
}
#endif
