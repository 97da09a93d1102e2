/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that objects have, as ranges: the broadcasts of a trace's conditions. */
#ifndef SIM_RANGES_H
#define SIM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_RANGES_MOST = 1 << 16 }; /* 1.5 MB. More: nothing is known */

struct sim_range {
    uint32_t object;
    uint64_t from, to; /* both are in it */
};

/* All-zero: nothing is known; to be freed: range. */
struct sim_ranges {
    struct sim_range *range;
    uint32_t n, n_places;
    bool known; /* all are there, in order */
};

/*
 * The object has this number. *last is the caller's, for each object: at first 0. Numbers that follow each other are
 * one range. False: no memory.
 */
bool sim_ranges_add(struct sim_ranges *r, uint32_t object, uint64_t number, uint32_t *last);
/* That was all: they can be asked for. */
void sim_ranges_done(struct sim_ranges *r);
bool sim_ranges_copy(struct sim_ranges *to, const struct sim_ranges *from); /* false: no memory */
/* Has the object that number? If that is not known it may have. */
bool sim_ranges_may_have(const struct sim_ranges *r, uint32_t object, uint64_t number);

#endif
