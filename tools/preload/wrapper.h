/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrapper scripts: shell scripts that set up something and then execute a program with their own arguments. What
 * program that is, is read from the script, as if it were called without arguments; nothing is run. The script is not
 * understood as a shell would: conditions are passed over. An assignment of what only a run could tell, or of a path
 * that does not exist, does not replace a better one.
 */
#ifndef CMD_WRAPPER_H
#define CMD_WRAPPER_H

#include <stdbool.h>

/* Is it a shell? Then its scripts can be read. */
bool wrapper_is_shell(const char *interpreter);

/*
 * The program that the script at `path` executes, allocated: the last one that gets the script's arguments by "$@", by
 * `exec` if there is one; NULL: none is found. *runs_script: the program gets the script's own path, as an interpreter
 * does.
 */
char *wrapper_program(const char *path, bool *runs_script);

#endif
