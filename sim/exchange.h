/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals that have been given before their time, in the place of others: a table of numbers, each with the number as
 * which it counts when it comes itself. It is searched by either number, and may have as many as threads are ahead of
 * others. (No library's hash table: two numbers an entry, in pure code.)
 */
#ifndef SIM_EXCHANGE_H
#define SIM_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_exchange_pair {
    uint64_t number, counts_as; /* number 0: a free place */
};

struct sim_exchange {
    uint32_t n, n_places;            /* n_places: a power of two and at least 2n */
    struct sim_exchange_pair pair[]; /* [n_places] by `number`, and again as many by `counts_as` */
};

/* A table is NULL as long as it is empty. Signal `number`, from 1 and not in it, counts as another one when it comes.
 * False: no memory. */
bool sim_exchange_put(struct sim_exchange **e, uint64_t number, uint64_t counts_as);
/* Signal `number` comes: as which one does it count? It is in the table no more. */
uint64_t sim_exchange_take(struct sim_exchange *e, uint64_t number);
/* Which number will count as this one when it comes? Itself, if there is no other. */
uint64_t sim_exchange_for(const struct sim_exchange *e, uint64_t counts_as);
/* Is there a number that counts as this one? */
bool sim_exchange_has(const struct sim_exchange *e, uint64_t counts_as);
/* Take that number out; false: there is none. */
bool sim_exchange_end(struct sim_exchange *e, uint64_t counts_as);
void sim_exchange_free(struct sim_exchange *e);

#endif
