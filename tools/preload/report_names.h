/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names for the numbers of a report: places of call sites, variables, threads by their routines. Made when asked for.
 */
#ifndef CMD_REPORT_NAMES_H
#define CMD_REPORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "progress.h"
#include "report.h"
#include "trace.h"

/* What is known of a call site; NULL, 0: not known. */
struct site_name {
    char *place; /* "queue.c:42 push (app)"; "": nothing is known */
    char *file, *function, *module;
    char *symbol; /* the function's name in the file */
    int line;
    bool asked; /* for it; the report mentions it */
};

enum { NAMES_MOST_FRAMES = 128 }; /* of a call stack that are named, the innermost ones */

struct names;
struct names *names_new(const struct sbt_trace *trace, const struct rep_report *report);
void names_free(struct names *names);
/* While it works for long: say how many names were looked up; NULL: say nothing. */
void names_watch(struct names *names, struct progress *progress);

/* Of REP_NONE, one of which nothing is known. */
const struct site_name *names_site(struct names *names, uint32_t site);
/* The sites that were asked for, in order of their numbers: the next one after `site`; from REP_NONE. REP_NONE: no
 * more. */
uint32_t names_next_site(const struct names *names, uint32_t site);
/* "queue.c:42 push", or the best that there is: short, without the module. "?": nothing is known. */
const char *names_place(struct names *names, uint32_t site);
/* The variable that the object is, or is in, by its name in the file: "lock", "pool+0x28"; NULL: not known, as on the
 * heap. */
const char *names_symbol(struct names *names, uint32_t object);
/*
 * The mutex's name for --delegate: its variable, or "FILE+0xN" of the call that made it or, if none did, of the one
 * that waited for it most. NULL: it has none.
 */
const char *names_delegated(struct names *names, uint32_t object);
/* Is that what names_object says of the mutex? */
bool names_says_delegated(struct names *names, uint32_t object);
/* "lock", "app::lock" of "_ZN3app4lockE", "GIL (_PyRuntime+0x188)" of CPython's, or "mutex#3 (queue.c:42 push)". */
const char *names_object(struct names *names, uint32_t object);
/* Is the object the recorder's own, at which a run-time library of OpenMP waits? What ends such waits is not known. */
bool names_is_openmps(struct names *names, uint32_t object);
/* "main", or "worker#2". */
const char *names_thread(struct names *names, uint32_t thread);
/* "push < add < worker", from the inside outwards, `most` frames; allocated. NULL: there is no such stack in the trace.
 */
char *names_stack(struct names *names, uint32_t stack, unsigned most);
/* The start routine; NULL: not known. */
const char *names_routine(struct names *names, uint32_t thread);

#endif
