/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Can a program be served by the preload library, and if not, why? `doctor` asks for the whole answer, `run` and
 * `compare` for the part that the program's own file can give.
 */
#ifndef CMD_VERDICT_H
#define CMD_VERDICT_H

#include <stdint.h>

#include "needed.h"
#include "object.h"

enum verdict_reason {
    VERDICT_SERVED,
    VERDICT_UNREADABLE,
    VERDICT_NOT_ELF,
    VERDICT_OTHER_MACHINE,
    VERDICT_STATIC,
    VERDICT_SET_ID,
    VERDICT_CAPABILITIES,
    VERDICT_OTHER_LIBC,
    VERDICT_SANITIZER,
    VERDICT_NO_SYMBOLS,
    VERDICT_N_REASONS
};

extern const char *const verdict_reason_words[VERDICT_N_REASONS]; /* "served", "static", ... */

struct verdict {
    enum verdict_reason reason;
    char *detail;            /* a sentence without full stop; NULL: served */
    struct names followed;   /* "a.sh is a script for /bin/sh", in order */
    struct names notes;      /* what else the user should know */
    struct object *program;  /* the program behind the scripts; owned by closure if there is one */
    struct closure *closure; /* NULL: the answer did not need the libraries */
};

/* `path` is from find_in_path. With `with_libraries` the libraries are read too; without, NO_SYMBOLS is not found. */
struct verdict verdict_of(const char *path, bool with_libraries);
void verdict_free(struct verdict *verdict);

/*
 * Must the program be started without the library because it would not start with it: another libc or architecture, a
 * sanitizer? The other obstacles only make the preload useless, and the program's children may profit from it.
 */
bool verdict_forbids_preload(const struct verdict *verdict);

/* For a subcommand that makes no sense without the library: refuse a program of which its own file says that. */
void verdict_refuse_unserved(const char *subcommand, const char *path, const char *program);

/* At verbosity 1 and above: the line of `run` and `compare` about a program that will not be served. */
void verdict_warn(const struct verdict *verdict, const char *subcommand, const char *program, uint64_t verbosity);

#endif
