/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBT_OBSERVE_OPENMP_H
#define SBT_OBSERVE_OPENMP_H

#include <stdbool.h>

#include "os/elf.h"

/* Have regions been recorded? Then the futex calls of run-time libraries are no events. A relaxed read. */
bool rec_openmp_is_seen(void);

/*
 * The run-time library's function of that name, for the caller at `site`; NULL: there is no such library. The same
 * pointer is the same name. May ask the dynamic linker, the first time at a site.
 */
sbt_function *rec_openmp_real(const char *name, const void *site);

#endif
