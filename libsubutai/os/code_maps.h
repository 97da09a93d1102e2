/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files from which the process's code was loaded, as the kernel lists them: the dynamic linker's own list is behind
 * a lock.
 */
#ifndef SBT_OS_CODE_MAPS_H
#define SBT_OS_CODE_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* A line of the list: a path of at most 4096 bytes, and what precedes it. */
enum { SBT_CODE_MAPS_LINE = 4352 };

/* Executable memory: addresses, the offset in the file, its path; a path without '/' first is no file's. */
typedef void sbt_code_maps_visit(void *argument, uint64_t start, uint64_t end, uint64_t offset, const char *path);

/*
 * Visit all executable memory of the process. `line` is the caller's, of SBT_CODE_MAPS_LINE bytes. System calls, no
 * allocation. Signals are blocked meanwhile.
 */
void sbt_code_maps_read(char *line, sbt_code_maps_visit *visit, void *argument);

#endif
