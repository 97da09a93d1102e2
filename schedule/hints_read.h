/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hint files of the engine det (docs/deterministic.md), line by line. Pure: the text is the caller's, nothing is
 * allocated, and the C library's formatting is not used, since the engine reads the file inside of the program's first
 * call.
 *
 *     subutai-hints 1
 *     # a comment, up to the end of the line
 *     give-up-turn SITE [WEIGHT [TURNS]]
 *     keep-turn SITE [TIMES]
 *     soft-barrier SITE THREADS [TURNS]
 *     pcs SITE
 *     weight SITE WEIGHT
 *
 * A SITE is a call: `MODULE+0xOFFSET`, of its last byte in the file, as `subutai schedule dump --json` has it;
 * `SYMBOL+0xOFFSET (MODULE)`, of the return address in the function, by the linker's name; or `SYMBOL (MODULE)`, each
 * call in the function. A MODULE is the path of the program or of a library, or its last part. What has blanks or a <
 * in it stands in double quotes. `SITE<CALLER` is that call only where CALLER has called the function that it is in,
 * and so on, up to three; a CALLER has the same forms. A SITE, with callers or without, has one weight at most, and one
 * hint of the other kinds: a second one would do nothing, and is an error if it is spelled the same. Which spellings
 * are one call is not known here; of those the first hint counts, but one with more callers goes before one with fewer.
 */
#ifndef SCHEDULE_HINTS_READ_H
#define SCHEDULE_HINTS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HINTS_FIRST_LINE "subutai-hints 1"
#define HINTS_LEGAL_KINDS "give-up-turn, keep-turn, soft-barrier, pcs, weight"
#define HINTS_LEGAL_SITES                                                                                              \
    "MODULE+0xOFFSET, which subutai schedule dump --json has as site; SYMBOL+0xOFFSET (MODULE), SYMBOL (MODULE)"
#define HINTS_LEGAL_CALLS HINTS_LEGAL_SITES "; with up to 3 callers: SITE<CALLER<CALLER"

enum {
    HINTS_MAX = 1000,          /* hints in a file */
    HINTS_MAX_BYTES = 1 << 20, /* of a file */
    HINTS_MAX_THREADS = 16384,
    HINTS_MAX_TURNS = 1000000,
    HINTS_MAX_WEIGHT = 1000000,
    /* If the file does not say: turns that a thread waits at a soft barrier; how often a thread keeps the turn; the
     * weight of a section. */
    HINTS_TURNS = 1000,
    HINTS_TIMES = 100,
    HINTS_WEIGHT = 100,
    HINTS_CALLERS = 3 /* of a call site, at most */
};

enum hint_kind { HINT_GIVE_UP, HINT_KEEP, HINT_SOFT_BARRIER, HINT_PCS, HINT_WEIGHT, HINT_N_KINDS };

struct hints_text {
    const char *at; /* in the file's text, not terminated */
    size_t n;
};

/* A call, or each of a function. */
struct hints_call {
    struct hints_text text, module, symbol; /* as it is written; symbol.n 0: none */
    bool is_whole;                          /* every call in the function `symbol` */
    uint64_t offset; /* of the call's last byte: in the module's file, or behind the beginning of `symbol` */
};

struct hint {
    enum hint_kind kind;
    unsigned line; /* from 1 on */
    struct hints_call call, caller[HINTS_CALLERS];
    unsigned n_callers; /* 0: any */
    uint32_t threads;   /* SOFT_BARRIER */
    uint32_t turns;     /* SOFT_BARRIER: at most; GIVE_UP: at least, or 0; KEEP: times in a row at most */
    uint32_t weight;    /* GIVE_UP, WEIGHT */
};

struct hints_reader {
    const char *at, *end;
    unsigned line;      /* that was read last */
    struct hint *hints; /* that have been read */
    size_t n_hints;
};

/*
 * The text of a file, and room for HINTS_MAX hints. False: `error`, of `size` bytes, has what belongs behind the file's
 * name and a colon: "1: ...".
 */
bool hints_begin(struct hints_reader *r, const char *text, size_t n, struct hint *hints, char *error, size_t size);
/* The next of `hints`. NULL: there is none, and error[0] is 0, or has such a text. */
const struct hint *hints_next(struct hints_reader *r, char *error, size_t size);

/* The call site, with its caller, as it is written. */
struct hints_text hints_site_text(const struct hint *h);
/* "give-up-turn" */
const char *hints_kind_name(enum hint_kind kind);
/* Is the file with that path the module of that name? */
bool hints_is_module(const struct hints_text *module, const char *path);
/* FNV-1a of the file's text: which file it was. */
uint64_t hints_hash(const char *text, size_t n);

#endif
