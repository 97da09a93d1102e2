/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the signals that threads wait for can have been given at the earliest, on any chip: a table of times by
 * condition and number. (No library's hash table: entries of two numbers, and a bound for its memory, in pure code.)
 */
#ifndef SIM_EARLIEST_H
#define SIM_EARLIEST_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_EARLIEST_MOST = 1 << 17 }; /* entries, in 4 MiB. With more signals an entry is that of several in a row */

struct sim_earliest_entry {
    uint64_t key, ns; /* ns 0: a free place */
};

/* All-zero is an empty table; to be freed: entry. */
struct sim_earliest {
    struct sim_earliest_entry *entry;
    uint32_t n, n_places; /* n_places: 0, or a power of two and at least 2n */
    uint8_t shift;        /* an entry is that of 2^shift signals: the latest of their times */
    bool unknown;         /* there are too many conditions, or a number is too large */
};

/* The condition's signal comes not before `ns`. The latest time counts. False: no memory. */
bool sim_earliest_put(struct sim_earliest *e, uint32_t condition, uint64_t number, uint64_t ns);
/* Not known: UINT64_MAX. A signal that was not put in: 0, or the time of another one. */
uint64_t sim_earliest_of(const struct sim_earliest *e, uint32_t condition, uint64_t number);
bool sim_earliest_copy(struct sim_earliest *to, const struct sim_earliest *from); /* false: no memory */

#endif
