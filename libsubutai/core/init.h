/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library's beginning: at its constructor, or at the first call of any function of ours, whichever comes first. */
#ifndef SBT_CORE_INIT_H
#define SBT_CORE_INIT_H

#include "core/options.h"
#include <stdbool.h>

/*
 * Read the options, find glibc's functions, learn its layout, install the engine. Cheap and harmless when done already,
 * also from within itself (an allocator's lock inside dlsym). An illegal option ends the process with status 2.
 */
void sbt_init(void);

/* Has it? Never blocks. */
bool sbt_init_done(void);

extern struct sbt_options sbt_options;

#endif
