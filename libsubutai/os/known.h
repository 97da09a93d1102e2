/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loaded objects that have been looked at. A program that loads a hundred plug-ins one by one would have all of them
 * looked at a hundred times. An object is known by its place and by the build id in its notes: another one may come to
 * the place of one that was unloaded. One without a build id is known until any object is unloaded.
 */
#ifndef SBT_OS_KNOWN_H
#define SBT_OS_KNOWN_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define SBT_KNOWN_MOST 512 /* objects beyond are not known, and are looked at each time */

struct sbt_known_object {
    uintptr_t address;
    const ElfW(Phdr) * headers;
    uint64_t id; /* a hash of the build id; 0: there is none */
};

/* All-zero is empty. The caller keeps threads from using one at the same time. */
struct sbt_known {
    struct sbt_known_object object[SBT_KNOWN_MOST];
    uint32_t n;
    uint64_t n_unloads;
};

/* A look begins. n_unloads: objects that were ever unloaded (dlpi_subs; with dlmopen glibc counts some of them back).
 */
void sbt_known_begin(struct sbt_known *known, uint64_t n_unloads);

/* Has it been noted? If not it is noted now, where there is room. */
bool sbt_known_note(struct sbt_known *known, const struct dl_phdr_info *info);

#endif
