/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hint files of the engine det, looked at before a program is run with them. */
#ifndef CMD_HINTS_CHECK_H
#define CMD_HINTS_CHECK_H

#include "command.h"

/*
 * If the engine det is to read a hint file, by an option or by a variable: its path becomes absolute. Refuses a file
 * that cannot be read or is not a hint file, and a call site that the program, its libraries and the named files do not
 * have. `program` is from find_program.
 */
void hints_check(const char *subcommand, struct settings *settings, const char *program);

/* The value of the option, or of its variable; NULL: neither is given. */
const char *hints_chosen(const struct settings *settings, enum sbt_option_id option);

#endif
