/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exchange.h"

#include <stdlib.h>

enum { FIRST_PLACES = 16 };

/* ---- one half: pairs by one of their two numbers ---- */

static uint64_t exchange_key(const struct sim_exchange_pair *p, bool by_other) {
    return by_other ? p->counts_as : p->number;
}

static struct sim_exchange_pair *exchange_half(struct sim_exchange *e, bool by_other) {
    return e->pair + (by_other ? e->n_places : 0);
}

/* Runs of numbers are spread (Fibonacci hashing): two of them may be a table's length apart. */
static uint32_t exchange_own(const struct sim_exchange *e, uint64_t key) {
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (e->n_places - 1);
}

static uint32_t exchange_next(const struct sim_exchange *e, uint32_t place) {
    return (place + 1) & (e->n_places - 1);
}

/* The first pair with that key; NULL: there is none. */
static const struct sim_exchange_pair *exchange_find(const struct sim_exchange *e, bool by_other, uint64_t key) {
    const struct sim_exchange_pair *half = e->pair + (by_other ? e->n_places : 0);
    uint32_t i = exchange_own(e, key);
    while (half[i].number != 0 && exchange_key(&half[i], by_other) != key)
        i = exchange_next(e, i);
    return half[i].number != 0 ? &half[i] : NULL;
}

static void exchange_half_put(struct sim_exchange *e, bool by_other, const struct sim_exchange_pair *p) {
    struct sim_exchange_pair *half = exchange_half(e, by_other);
    uint32_t i = exchange_own(e, exchange_key(p, by_other));
    while (half[i].number != 0)
        i = exchange_next(e, i);
    half[i] = *p;
}

/* Those behind a place that has become free move up, so that no search ends there too early. */
static void exchange_half_take(struct sim_exchange *e, bool by_other, const struct sim_exchange_pair *p) {
    struct sim_exchange_pair *half = exchange_half(e, by_other);
    uint32_t last = e->n_places - 1, free_place = exchange_own(e, exchange_key(p, by_other));
    while (half[free_place].number != p->number) /* a number is in the table once */
        free_place = exchange_next(e, free_place);
    for (uint32_t i = exchange_next(e, free_place); half[i].number != 0; i = exchange_next(e, i))
        if (((i - exchange_own(e, exchange_key(&half[i], by_other))) & last) >= ((i - free_place) & last)) {
            half[free_place] = half[i];
            free_place = i;
        }
    half[free_place].number = 0;
}

/* ---- both ---- */

static void exchange_add(struct sim_exchange *e, struct sim_exchange_pair p) {
    exchange_half_put(e, false, &p);
    exchange_half_put(e, true, &p);
    e->n++;
}

static void exchange_remove(struct sim_exchange *e, struct sim_exchange_pair p) {
    exchange_half_take(e, false, &p);
    exchange_half_take(e, true, &p);
    e->n--;
}

static bool exchange_grow(struct sim_exchange **table) {
    struct sim_exchange *e = *table, *larger;
    uint32_t n_places = e == NULL ? FIRST_PLACES : 2 * e->n_places;
    larger = calloc(1, sizeof *larger + 2 * (size_t)n_places * sizeof larger->pair[0]);
    if (larger == NULL)
        return false;
    larger->n_places = n_places;
    for (uint32_t i = 0; e != NULL && i < e->n_places; i++)
        if (e->pair[i].number != 0)
            exchange_add(larger, e->pair[i]);
    free(e);
    *table = larger;
    return true;
}

bool sim_exchange_put(struct sim_exchange **table, uint64_t number, uint64_t counts_as) {
    if ((*table == NULL || 2 * ((*table)->n + 1) > (*table)->n_places) && !exchange_grow(table))
        return false;
    exchange_add(*table, (struct sim_exchange_pair){number, counts_as});
    return true;
}

uint64_t sim_exchange_take(struct sim_exchange *e, uint64_t number) {
    const struct sim_exchange_pair *p = e != NULL ? exchange_find(e, false, number) : NULL;
    if (p == NULL)
        return number;
    uint64_t counts_as = p->counts_as;
    exchange_remove(e, *p);
    return counts_as;
}

bool sim_exchange_has(const struct sim_exchange *e, uint64_t counts_as) {
    return e != NULL && exchange_find(e, true, counts_as) != NULL;
}

uint64_t sim_exchange_for(const struct sim_exchange *e, uint64_t counts_as) {
    const struct sim_exchange_pair *p = e != NULL ? exchange_find(e, true, counts_as) : NULL;
    return p != NULL ? p->number : counts_as;
}

bool sim_exchange_end(struct sim_exchange *e, uint64_t counts_as) {
    const struct sim_exchange_pair *p = e != NULL ? exchange_find(e, true, counts_as) : NULL;
    if (p == NULL)
        return false;
    exchange_remove(e, *p);
    return true;
}

void sim_exchange_free(struct sim_exchange *e) {
    free(e);
}
