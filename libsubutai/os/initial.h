/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel left on the initial stack: arguments, environment, auxiliary vector.
 *
 * It is read there, and not by getenv and getauxval, because another preloaded library may define those, and start-up
 * may come before that library's constructor. Nothing here allocates or blocks; all of it works before the C library's
 * own initialiser.
 */
#ifndef SBT_OS_INITIAL_H
#define SBT_OS_INITIAL_H

/* `environ`; or the vector on the stack, while `environ` is still empty (DF_1_INITFIRST, .preinit_array). */
char **sbt_environment(void);

/* The value of a variable of sbt_environment(); NULL: there is none. The string belongs to the environment. */
char *sbt_environment_value(const char *name);

/* An entry of the auxiliary vector (AT_..., getauxval(3)); `otherwise`: there is none. */
unsigned long sbt_auxiliary(unsigned long type, unsigned long otherwise);

#endif
