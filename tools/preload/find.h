/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where things are: the program to run, the preload library, the bench program. All return allocated paths; what
 * cannot be found is refused with a line that names the places looked at.
 */
#ifndef CMD_FIND_H
#define CMD_FIND_H

#include <stdbool.h>

/* Path of `name` as execvp would find it, or NULL with the reason (to be appended to the name) in *why. */
char *find_in_path(const char *name, const char **why);
/* The same, refused with exit status 2; `who` is the subcommand. */
char *find_program(const char *who, const char *name);

/*
 * The library: `given` (--library) if not NULL, else the build tree that the command itself lies in, else where it
 * was installed. The path is absolute and free of the blanks and colons that separate LD_PRELOAD's entries.
 */
char *find_library(const char *who, const char *given);
/*
 * Where a trace is to be: an old trace there is removed, anything else that is there refused, as is a place where no
 * file can be made. Its absolute path.
 */
char *find_trace_place(const char *who, const char *path);
/* The program behind `subutai bench`, in the same way. */
char *find_bench(const char *who, const char *given);

#endif
