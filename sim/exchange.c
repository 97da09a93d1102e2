/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exchange.h"

#include <stdlib.h>

enum { FIRST_PLACES = 16 };

/* Where the number is, or the free place where it would be. Numbers follow each other, so most have their own place. */
static uint32_t exchange_place(const struct sim_exchange *e, uint64_t number) {
    uint32_t last = e->n_places - 1, i = (uint32_t)number & last;
    while (e->pair[i].number != 0 && e->pair[i].number != number)
        i = (i + 1) & last;
    return i;
}

static bool exchange_grow(struct sim_exchange **table) {
    struct sim_exchange *e = *table, *larger;
    uint32_t n_places = e == NULL ? FIRST_PLACES : 2 * e->n_places;
    larger = calloc(1, sizeof *larger + n_places * sizeof larger->pair[0]);
    if (larger == NULL)
        return false;
    larger->n_places = n_places;
    for (uint32_t i = 0; e != NULL && i < e->n_places; i++)
        if (e->pair[i].number != 0)
            larger->pair[exchange_place(larger, e->pair[i].number)] = e->pair[i];
    larger->n = e != NULL ? e->n : 0;
    free(e);
    *table = larger;
    return true;
}

bool sim_exchange_put(struct sim_exchange **table, uint64_t number, uint64_t counts_as) {
    if ((*table == NULL || 2 * ((*table)->n + 1) > (*table)->n_places) && !exchange_grow(table))
        return false;
    struct sim_exchange *e = *table;
    e->pair[exchange_place(e, number)] = (struct sim_exchange_pair){number, counts_as};
    e->n++;
    return true;
}

/* Those behind a place that has become free move up, so that no search ends there too early. */
static void exchange_close_up(struct sim_exchange *e, uint32_t free_place) {
    uint32_t last = e->n_places - 1;
    for (uint32_t i = (free_place + 1) & last; e->pair[i].number != 0; i = (i + 1) & last) {
        uint32_t own = (uint32_t)e->pair[i].number & last;
        if (((i - own) & last) >= ((i - free_place) & last)) {
            e->pair[free_place] = e->pair[i];
            free_place = i;
        }
    }
    e->pair[free_place].number = 0;
}

uint64_t sim_exchange_take(struct sim_exchange *e, uint64_t number) {
    if (e == NULL)
        return number;
    uint32_t i = exchange_place(e, number);
    if (e->pair[i].number == 0)
        return number;
    uint64_t counts_as = e->pair[i].counts_as;
    exchange_close_up(e, i);
    e->n--;
    return counts_as;
}

/* The first place with a number that counts as this one; n_places: there is none. */
static uint32_t place_of_other(const struct sim_exchange *e, uint64_t counts_as) {
    uint32_t i = 0;
    while (i < e->n_places && (e->pair[i].number == 0 || e->pair[i].counts_as != counts_as))
        i++;
    return i;
}

bool sim_exchange_has(const struct sim_exchange *e, uint64_t counts_as) {
    return e != NULL && e->n > 0 && place_of_other(e, counts_as) < e->n_places;
}

uint64_t sim_exchange_for(const struct sim_exchange *e, uint64_t counts_as) {
    return sim_exchange_has(e, counts_as) ? e->pair[place_of_other(e, counts_as)].number : counts_as;
}

bool sim_exchange_end(struct sim_exchange *e, uint64_t counts_as) {
    if (!sim_exchange_has(e, counts_as))
        return false;
    exchange_close_up(e, place_of_other(e, counts_as));
    e->n--;
    return true;
}

void sim_exchange_free(struct sim_exchange *e) {
    free(e);
}
