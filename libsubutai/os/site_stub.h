/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stubs: at each site (os/site_find.h) the instructions are replaced by a jump to a stub, which calls an entry, makes
 * the comparison of the site, and jumps back.
 *
 * No memory is ever writable and executable at once. The stubs, and a copy of the site's pages with the jumps in it,
 * are written, then made executable, and then the copy takes the place of the pages in one step. So a thread in the
 * code finds either all old pages or all new ones. One thread must not be there: a thread that sleeps inside a site's
 * system call would return into the middle of the jump.
 *
 * Stack of a stub: below the red zone of the site's function lie a return address into the stub, and what the entry
 * puts there. The address behind the site's system call is kept in the stub, SBT_STUB_SITE bytes behind that return
 * address: the entry's unwind table gives it for the return address.
 */
#ifndef SBT_OS_SITE_STUB_H
#define SBT_OS_SITE_STUB_H

#include "os/site_find.h"

#define SBT_STUB_RED_ZONE 128 /* bytes under the stack pointer that a function may use */
#define SBT_STUB_SITE 21

/*
 * Let all sites of a library call `entry`, by the way that a call instruction goes. NULL: done. Otherwise the library
 * is unchanged, and this is why: the end of a sentence "LIBRARY ...". System calls. *stubs: for sbt_stubs_are_there.
 */
const char *sbt_stubs_put(const struct sbt_sites *sites, const void *entry, const void **stubs);

/*
 * Do those sites still jump to their stubs? GONE: none does, because the library was unloaded, and other code is in its
 * place or nothing is. UNKNOWN: the code cannot be read.
 */
enum sbt_stubs_state { SBT_STUBS_THERE, SBT_STUBS_GONE, SBT_STUBS_UNKNOWN };
enum sbt_stubs_state sbt_stubs_look(const struct sbt_sites *sites, const void *stubs);
static inline bool sbt_stubs_are_there(const struct sbt_sites *sites, const void *stubs) {
    return sbt_stubs_look(sites, stubs) == SBT_STUBS_THERE;
}

/* Give the memory of stubs back, to which no code jumps any more: their library has been unloaded. */
void sbt_stubs_remove(const void *stubs);

#endif
