/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libraries that the dynamic loader would load with a program, found without running anything: DT_NEEDED
 * breadth-first, in the places and the order of ld.so(8): DT_RPATH of the object and those that needed it, where there
 * is no DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the loader's cache; the default directories.
 */
#ifndef CMD_NEEDED_H
#define CMD_NEEDED_H

#include "object.h"

struct closure {
    struct object **objects; /* [0] is the program */
    size_t *needed_by;       /* index of the object that asked for it first; 0 for the program itself */
    size_t n, capacity;
    struct names missing; /* names that were found nowhere */
};

/* Takes over `program`, an ELF object. */
struct closure *closure_of(struct object *program);
void closure_free(struct closure *closure);

#endif
