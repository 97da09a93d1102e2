/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where things are: the program to run, the preload library, the bench program. All functions return allocated paths.
 * What is not found is refused with a line that names the places looked at.
 */
#ifndef CMD_FIND_H
#define CMD_FIND_H

#include <stdbool.h>

/* The path of `name` as execvp would find it; NULL: *why has the reason, to be appended to the name. */
char *find_in_path(const char *name, const char **why);
/* The same; refused with exit status 2 if it is not found. */
char *find_program(const char *subcommand, const char *name);

/*
 * The library: `given` (--library) if it is not NULL, else the one in the build tree of the command, else the installed
 * one. The path is absolute and has none of the blanks and colons that separate LD_PRELOAD's entries.
 */
char *find_library(const char *subcommand, const char *given);
/*
 * Prepare the place for a trace; the result is its absolute path. Removes an old trace there. Refuses any other file,
 * and a place where no file can be created.
 */
char *find_trace_place(const char *subcommand, const char *path);
/* Refuses what find_trace_place would refuse of an old file, and removes nothing. */
void find_trace_check(const char *subcommand, const char *path);
/*
 * Removes the traces of processes that the program of an earlier record into that place had started: all of them, or
 * none where one is refused. Links and, unless root calls, files of other users stay.
 */
void find_old_children(const char *subcommand, const char *place);
/* Of a trace that is not whole: is what its program had not written beside it, and cannot be read? */
#define FIND_LEFT_REST "FILE.live has it, and was not added: it is of another version of Subutai, or damaged"
bool find_left_rest(const char *path);
/* The same as find_trace_place for a schedule log. */
char *find_schedule_place(const char *subcommand, const char *path);
/* The program of `subutai bench`, in the same way. */
char *find_bench(const char *subcommand, const char *given);
/* The program of `subutai calibrate`, in the same way. */
char *find_calibrate(const char *subcommand, const char *given);

#endif
