/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The beginning of the library: at its constructor, or at the first call of any of our functions, whichever comes
 * first.
 */
#ifndef SBT_START_INIT_H
#define SBT_START_INIT_H

#include <stdbool.h>

/*
 * Read the options, find glibc's functions, learn its layout, install the engine. A second call is cheap and does no
 * harm, also from within the first (an allocator's lock inside dlsym). An illegal option ends the process with status
 * 2.
 */
void sbt_init(void);

/* Has the library started? Never blocks. */
bool sbt_init_done(void);

/* The process is about to end without its destructors. At any time; waits for as long as a stall at most. */
void sbt_process_leaves(void);

/* The sanitizer that is in the process, for which this library steps aside; NULL: none. At any time. */
const char *sbt_init_sanitizer(void);

#endif
