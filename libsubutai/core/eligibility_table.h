/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The eligibility table: imported functions that decide whether and how a program may wait by switching. The library
 * decides by it, and the command explains the decision. Nothing here depends on the rest.
 */
#ifndef SBT_CORE_ELIGIBILITY_TABLE_H
#define SBT_CORE_ELIGIBILITY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Why a program that imports the function is not switched: the end of the sentence "FILE uses SYMBOL, which ...". NULL:
 * it may be switched.
 */
const char *sbt_eligibility_refused(const char *symbol);

/* The same for a library that the program has loaded: "FILE is loaded, which ...". `file` may have a directory. */
const char *sbt_eligibility_refused_library(const char *file);

/* Is it a libgomp, perhaps a copy under another name as Python's packages bring it? It makes futex calls itself. */
bool sbt_eligibility_is_gomp(const char *file);

/*
 * Must the main thread of a program stay on its own kernel thread, because that file of it imports the function? `file`
 * may have a directory.
 */
bool sbt_eligibility_pins_main(const char *file, const char *symbol);

/* Does the function install signal handlers? The main thread stays there from the first one on. */
bool sbt_eligibility_is_handling(const char *symbol);

/* Does the function make the waits of a chosen thread fail? Is that thread recalled when the function is called? */
bool sbt_eligibility_is_interruption(const char *symbol);
bool sbt_eligibility_is_recall(const char *symbol);

/* Does the function change the signal mask? May it restore a mask as a side effect? */
bool sbt_eligibility_is_mask(const char *symbol);
bool sbt_eligibility_is_jump(const char *symbol);

/* Is the file a part of the C library? The imports of those say nothing about the program. */
bool sbt_eligibility_is_libc(const char *file);

#endif
