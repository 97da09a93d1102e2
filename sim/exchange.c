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

static bool exchange_grow(struct sim_exchange *e) {
    struct sim_exchange larger = {.n = e->n, .n_places = e->n_places == 0 ? FIRST_PLACES : 2 * e->n_places};
    larger.pair = calloc(larger.n_places, sizeof *larger.pair);
    if (larger.pair == NULL)
        return false;
    for (uint32_t i = 0; i < e->n_places; i++)
        if (e->pair[i].number != 0)
            larger.pair[exchange_place(&larger, e->pair[i].number)] = e->pair[i];
    free(e->pair);
    *e = larger;
    return true;
}

bool sim_exchange_put(struct sim_exchange *e, uint64_t number, uint64_t counts_as) {
    if (2 * (e->n + 1) > e->n_places && !exchange_grow(e))
        return false;
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
    if (e->n == 0)
        return number;
    uint32_t i = exchange_place(e, number);
    if (e->pair[i].number == 0)
        return number;
    uint64_t counts_as = e->pair[i].counts_as;
    exchange_close_up(e, i);
    e->n--;
    return counts_as;
}

bool sim_exchange_end(struct sim_exchange *e, uint64_t counts_as) {
    for (uint32_t i = 0; e->n > 0 && i < e->n_places; i++)
        if (e->pair[i].number != 0 && e->pair[i].counts_as == counts_as) {
            exchange_close_up(e, i);
            e->n--;
            return true;
        }
    return false;
}
