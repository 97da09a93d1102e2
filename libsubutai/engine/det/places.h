/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an address of code to its place in a file, for the schedule log and for hints. By the thread that has the turn:
 * the calls are serialized by that.
 */
#ifndef SBT_ENGINE_DET_PLACES_H
#define SBT_ENGINE_DET_PLACES_H

#include <stdbool.h>
#include <stdint.h>

enum { DET_RANGES = 512, DET_NO_RANGE = DET_RANGES };

/* Executable memory. */
struct det_range {
    uintptr_t start, end;
    uint64_t offset;  /* of the first byte in the file */
    const char *path; /* "": made at run time, or the kernel's */
};

/* Once, before the others; may be called again. False: there is no memory. */
bool det_places_start(void);
/* A process's round begins: nothing is known. */
void det_places_begin(void);
/*
 * The index of the range that has the address; DET_NO_RANGE: none. A range that is not known yet is looked for in what
 * the kernel lists: system calls, and no allocation.
 */
uint32_t det_range_of(uintptr_t address);
/* What the kernel lists now is known from here on: it may not be asked again. */
void det_places_read(void);
const struct det_range *det_range(uint32_t index);

#endif
