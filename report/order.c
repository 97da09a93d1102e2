/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of locks. A thread that gets B while it holds A makes the order A, B. Orders that form a circle may let
 * threads wait for each other for ever, if two threads make them at once and no common lock keeps these apart. Source
 * of the rule: Linux's lockdep, Helgrind; of the common lock ("gate"): Goodlock (Havelund, SPIN 2000).
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { MOST_GATES = 4, MOST_CIRCLES = 64, MOST_STEPS = 1 << 20 };

/* An entry of rep_walk.orders. */
struct order {
    struct rep_order seen; /* its first two members are the key */
    uint32_t gate[MOST_GATES];
    uint32_t n_gates; /* locks that were held at all of these times, besides */
};

size_t rep_order_bytes(void) {
    return sizeof(struct order);
}

static bool holds(const struct rep_walker *t, uint32_t object) {
    for (uint32_t i = 0; i < t->n_held; i++)
        if (t->held[i].object == object)
            return true;
    return false;
}

static void first_time(struct order *o, const struct rep_walker *t, uint32_t thread, const struct rep_held *held,
                       uint32_t site) {
    o->seen.thread = thread;
    o->seen.held_site = held->site;
    o->seen.taken_site = site;
    for (uint32_t i = 0; i < t->n_held && o->n_gates < MOST_GATES; i++)
        if (t->held[i].object != held->object)
            o->gate[o->n_gates++] = t->held[i].object;
}

void rep_order_add(struct rep_walk *w, uint32_t thread, uint32_t object, uint32_t site) {
    const struct rep_walker *t = &w->walkers[thread];
    for (uint32_t h = 0; h < t->n_held; h++) {
        const uint32_t key[2] = {t->held[h].object, object};
        if (key[0] == object)
            continue;
        struct order *o = rep_table_get(&w->orders, key);
        if (o == NULL) {
            w->report->dropped.orders++;
            continue;
        }
        if (o->seen.n++ == 0) {
            first_time(o, t, thread, &t->held[h], site);
            continue;
        }
        o->seen.several |= o->seen.thread != thread;
        for (uint32_t i = 0; i < o->n_gates;) {
            if (holds(t, o->gate[i]))
                i++;
            else
                o->gate[i] = o->gate[--o->n_gates];
        }
    }
}

/* An order that a profile has counted. Several records of the same pair keep the gates that all of them have. */
static void add_counted(struct rep_walk *w, const struct sbt_trace_order *seen) {
    const uint32_t key[2] = {seen->held, seen->taken};
    struct order *o = seen->held != seen->taken ? rep_table_get(&w->orders, key) : NULL;
    if (o == NULL) {
        w->report->dropped.orders += seen->held != seen->taken;
        return;
    }
    if (o->seen.n == 0) {
        o->seen.thread = seen->thread;
        o->seen.held_site = seen->held_site;
        o->seen.taken_site = seen->taken_site;
        o->n_gates = seen->n_gates < MOST_GATES ? seen->n_gates : MOST_GATES;
        memcpy(o->gate, seen->gate, o->n_gates * sizeof o->gate[0]);
    }
    o->seen.several |= o->seen.thread != seen->thread;
    o->seen.n += seen->n;
    for (uint32_t i = 0; i < o->n_gates;) {
        bool kept = false;
        for (uint32_t g = 0; g < seen->n_gates; g++)
            kept |= seen->gate[g] == o->gate[i];
        if (kept)
            i++;
        else
            o->gate[i] = o->gate[--o->n_gates];
    }
}

bool rep_orders_of_profile(struct rep_walk *w) {
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_order order;
    int got;
    if (!w->report->info.profile)
        return true;
    sbt_trace_tally_begin(w->trace, &cursor);
    while ((got = sbt_trace_order_next(&cursor, &order, w->error)) == 1)
        if (order.held < w->report->info.n_objects && order.taken < w->report->info.n_objects)
            add_counted(w, &order);
    return got == 0;
}

/* ---- circles ---- */

struct search {
    const struct order *all;
    size_t n;
    uint32_t *first, *next; /* [object], [order]: orders by the lock that is held; number plus 1 */
    uint32_t path[REP_MOST_LINKS];
    uint64_t steps;
};

static bool has_gate(const struct order *o, uint32_t gate) {
    for (uint32_t i = 0; i < o->n_gates; i++)
        if (o->gate[i] == gate)
            return true;
    return false;
}

static bool may_deadlock(const struct search *s, unsigned n) {
    bool several = false;
    for (unsigned i = 0; i < n; i++)
        several |= s->all[s->path[i]].seen.several || s->all[s->path[i]].seen.thread != s->all[s->path[0]].seen.thread;
    const struct order *one = &s->all[s->path[0]];
    for (uint32_t g = 0; g < one->n_gates; g++) {
        bool everywhere = true;
        for (unsigned i = 1; i < n; i++)
            everywhere &= has_gate(&s->all[s->path[i]], one->gate[g]);
        if (everywhere)
            return false;
    }
    return several;
}

static bool on_path(const struct search *s, unsigned n, uint32_t object) {
    for (unsigned i = 0; i < n; i++)
        if (s->all[s->path[i]].seen.held == object)
            return true;
    return false;
}

static void found(struct rep_report *r, const struct search *s, unsigned n) {
    struct rep_circle *c = &r->circles[r->n_circles++];
    c->n = n;
    for (unsigned i = 0; i < n; i++)
        c->order[i] = &r->orders[s->path[i]];
}

/* All circles of at most REP_MOST_LINKS locks through the one with the lowest number in them. */
static void extend(struct rep_report *r, struct search *s, unsigned n) {
    uint32_t start = s->all[s->path[0]].seen.held, at = s->all[s->path[n - 1]].seen.taken;
    for (uint32_t i = s->first[at]; i != 0 && r->n_circles < MOST_CIRCLES && s->steps < MOST_STEPS;
         i = s->next[i - 1]) {
        uint32_t to = s->all[i - 1].seen.taken;
        s->path[n] = i - 1;
        s->steps++;
        if (to == start) {
            if (may_deadlock(s, n + 1))
                found(r, s, n + 1);
        } else if (to > start && n + 1 < REP_MOST_LINKS && !on_path(s, n, to)) {
            extend(r, s, n + 1);
        }
    }
}

bool rep_circles(struct rep_walk *w) {
    struct rep_report *r = w->report;
    struct search s = {.all = (const struct order *)w->orders.entries, .n = w->orders.n};
    r->orders = calloc(s.n + 1, sizeof *r->orders);
    r->circles = calloc(MOST_CIRCLES, sizeof *r->circles);
    s.first = calloc((size_t)r->info.n_objects + 1, sizeof *s.first);
    s.next = calloc(s.n + 1, sizeof *s.next);
    bool enough = r->orders != NULL && r->circles != NULL && s.first != NULL && s.next != NULL;
    for (size_t i = 0; enough && i < s.n; i++) {
        r->orders[i] = s.all[i].seen;
        s.next[i] = s.first[s.all[i].seen.held];
        s.first[s.all[i].seen.held] = (uint32_t)i + 1;
    }
    r->n_orders = enough ? s.n : 0;
    for (size_t i = 0; enough && i < s.n; i++)
        if (s.all[i].seen.taken > s.all[i].seen.held) {
            s.path[0] = (uint32_t)i;
            extend(r, &s, 1);
        }
    free(s.first);
    free(s.next);
    return enough || rep_no_memory(w->error);
}
