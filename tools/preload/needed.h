/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libraries that the dynamic loader would load with a program, found without running anything. They are the
 * DT_NEEDED names, breadth-first, looked up in the places and the order of ld.so(8): DT_RPATH of the object and of
 * those that needed it, unless the object has a DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the loader's cache; the
 * default directories.
 */
#ifndef CMD_NEEDED_H
#define CMD_NEEDED_H

#include "object.h"

struct closure {
    struct object **objects; /* [0] is the program */
    size_t *needed_by;       /* index of the first object that asked for it; its own for the program */
    size_t n, capacity;
    size_t n_linked;      /* objects that are loaded at the start; behind them what closure_add_loadable has found */
    struct names missing; /* names that were not found */
};

/* The closure of `program`, an ELF object, which it takes over. */
struct closure *closure_of(struct object *program);

/*
 * Add the libraries that the program may load later, as far as their place tells: those in its own directory and in
 * those of its DT_RUNPATH and DT_RPATH, except the system's, and what these libraries need. needed_by of such a library
 * is its own index.
 */
void closure_add_loadable(struct closure *closure);
void closure_free(struct closure *closure);

#endif
