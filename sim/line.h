/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory by lines of the host's cache. What a call looks at together is kept in as few lines as possible: a simulated
 * call takes some two hundred nanoseconds, and each miss adds to that.
 */
#ifndef SIM_LINE_H
#define SIM_LINE_H

#include <stdlib.h>
#include <string.h>

#define SIM_LINE 64 /* bytes of a line on x86-64 and on most aarch64 processors */

/* The size, rounded up to whole lines. */
static inline size_t sim_line_bytes(size_t bytes) {
    return (bytes + SIM_LINE - 1) / SIM_LINE * SIM_LINE;
}

/* Zeroed memory that begins with a line, to be freed by free(). NULL: no memory. */
static inline void *sim_line_zeroed(size_t bytes) {
    void *p = aligned_alloc(SIM_LINE, sim_line_bytes(bytes));
    return p != NULL ? memset(p, 0, bytes) : NULL;
}

#endif
