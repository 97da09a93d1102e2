/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_RANGES = 16 };

bool sim_ranges_add(struct sim_ranges *r, uint32_t object, uint64_t number, uint32_t *last) {
    if (*last != 0 && r->range[*last - 1].to + 1 == number) {
        r->range[*last - 1].to = number;
        return true;
    }
    if (r->n == SIM_RANGES_MOST)
        return true;
    if (r->n == r->n_places) {
        uint32_t n_places = r->n_places == 0 ? FIRST_RANGES : 2 * r->n_places;
        struct sim_range *range = realloc(r->range, n_places * sizeof *range);
        if (range == NULL)
            return false;
        r->range = range;
        r->n_places = n_places;
    }
    r->range[r->n++] = (struct sim_range){object, number, number};
    *last = r->n;
    return true;
}

static int range_order(const void *a, const void *b) {
    const struct sim_range *x = a, *y = b;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

void sim_ranges_done(struct sim_ranges *r) {
    r->known = r->n < SIM_RANGES_MOST;
    if (r->n > 0)
        qsort(r->range, r->n, sizeof *r->range, range_order);
}

bool sim_ranges_copy(struct sim_ranges *to, const struct sim_ranges *from) {
    *to = (struct sim_ranges){.known = from->known};
    if (from->n == 0 || !from->known)
        return true;
    to->range = malloc(from->n * sizeof *to->range);
    if (to->range == NULL)
        return false;
    memcpy(to->range, from->range, from->n * sizeof *to->range);
    to->n = to->n_places = from->n;
    return true;
}

static int range_place(const void *key, const void *range) {
    const struct sim_range *k = key, *r = range;
    if (k->object != r->object)
        return k->object < r->object ? -1 : 1;
    return k->from < r->from ? -1 : k->from > r->to;
}

bool sim_ranges_may_have(const struct sim_ranges *r, uint32_t object, uint64_t number) {
    struct sim_range key = {object, number, number};
    return !r->known || (r->n > 0 && bsearch(&key, r->range, r->n, sizeof key, range_place) != NULL);
}
