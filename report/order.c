/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of locks. A thread that gets B while it holds A makes the order A, B. Orders that form a circle may let
 * threads wait for each other for ever, if two threads make them at once and no common lock keeps these apart. Source
 * of the rule: Linux's lockdep, Helgrind; of the common lock ("gate"): Goodlock (Havelund, SPIN 2000).
 *
 * Two readers do not wait for each other: a circle needs a writer at each of its locks, and a gate keeps threads apart
 * only if one of them holds it for writing. (A lock that prefers writers has its readers wait for a waiting writer;
 * which kind a lock is, a trace does not say. It is taken for glibc's default, which prefers readers.)
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { MOST_GATES = 4, MOST_CIRCLES = 64, MOST_STEPS = 1 << 20 };

struct gate {
    uint32_t object;
    bool shared; /* held for reading at some time */
};

/* An entry of rep_walk.orders. */
struct order {
    struct rep_order seen; /* its first two members are the key */
    struct gate gate[MOST_GATES];
    uint32_t n_gates; /* locks that were held at all of these times, besides */
};

size_t rep_order_bytes(void) {
    return sizeof(struct order);
}

/* Times that a thread made an order, all with these gates. */
struct times {
    struct rep_order seen;
    const struct gate *gates;
    uint32_t n_gates;
};

static bool is_in(const struct times *times, struct gate *gate) {
    for (uint32_t i = 0; i < times->n_gates; i++)
        if (times->gates[i].object == gate->object) {
            gate->shared |= times->gates[i].shared;
            return true;
        }
    return false;
}

static void first_times(struct order *o, const struct times *times) {
    o->seen = times->seen;
    o->seen.n = 0;
    for (uint32_t i = 0; i < times->n_gates && o->n_gates < MOST_GATES; i++)
        if (times->gates[i].object != times->seen.held)
            o->gate[o->n_gates++] = times->gates[i];
}

static void add(struct rep_walk *w, const struct times *times) {
    const struct rep_order *seen = &times->seen;
    const uint32_t key[2] = {seen->held, seen->taken};
    struct order *o = rep_table_get(&w->orders, key);
    if (o == NULL) {
        w->report->dropped.orders++;
        return;
    }
    if (o->seen.n == 0)
        first_times(o, times);
    o->seen.n += seen->n;
    o->seen.several |= o->seen.thread != seen->thread;
    o->seen.held_shared &= seen->held_shared;
    o->seen.taken_shared &= seen->taken_shared;
    if (o->seen.stack == 0 && o->seen.thread == seen->thread && o->seen.held_site == seen->held_site &&
        o->seen.taken_site == seen->taken_site)
        o->seen.stack = seen->stack;
    for (uint32_t i = 0; i < o->n_gates;) {
        if (is_in(times, &o->gate[i]))
            i++;
        else
            o->gate[i] = o->gate[--o->n_gates];
    }
}

void rep_order_add(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e) {
    enum { MOST_HELD = 256 }; /* a gate beyond these is none */
    const struct rep_walker *t = &w->walkers[thread];
    struct gate gates[MOST_HELD];
    struct times times = {.seen = {.taken = object,
                                   .taken_site = e->site,
                                   .thread = thread,
                                   .stack = e->stack,
                                   .taken_shared = rep_is_shared(e->op),
                                   .n = 1},
                          .gates = gates};
    for (uint32_t i = 0; i < t->n_held && times.n_gates < MOST_HELD; i++)
        if (rep_is_lock_type(
                w->report->objects[t->held[i].object].type)) /* of a semaphore several threads may have one */
            gates[times.n_gates++] = (struct gate){t->held[i].object, t->held[i].shared};
    for (uint32_t h = 0; h < t->n_held; h++) {
        times.seen.held = t->held[h].object;
        times.seen.held_site = t->held[h].site;
        times.seen.held_shared = t->held[h].shared;
        if (times.seen.held != object && rep_is_lock_type(w->report->objects[times.seen.held].type))
            add(w, &times);
    }
}

/* An order that a profile has counted. */
static void add_counted(struct rep_walk *w, const struct sbt_trace_order *counted) {
    struct gate gates[SBT_TRACE_MOST_GATES];
    const struct times times = {.seen = {.held = counted->held,
                                         .taken = counted->taken,
                                         .held_site = counted->held_site,
                                         .taken_site = counted->taken_site,
                                         .thread = counted->thread,
                                         .stack = counted->stack,
                                         .held_shared = counted->held_shared,
                                         .taken_shared = counted->taken_shared,
                                         .n = counted->n},
                                .gates = gates,
                                .n_gates = counted->n_gates};
    for (uint32_t i = 0; i < counted->n_gates; i++)
        gates[i] = (struct gate){counted->gate[i], counted->gate_shared[i]};
    if (counted->held != counted->taken)
        add(w, &times);
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

static const struct gate *gate_of(const struct order *o, uint32_t object) {
    for (uint32_t i = 0; i < o->n_gates; i++)
        if (o->gate[i].object == object)
            return &o->gate[i];
    return NULL;
}

/* Does that lock keep two threads from being in these orders at once? All hold it, and one of them for writing. */
static bool keeps_apart(const struct search *s, unsigned n, uint32_t object) {
    bool written = false;
    for (unsigned i = 0; i < n; i++) {
        const struct gate *gate = gate_of(&s->all[s->path[i]], object);
        if (gate == NULL)
            return false;
        written |= !gate->shared;
    }
    return written;
}

/* Each order of a deadlock is made by a thread of its own. Of one that several have made it is not known which. */
static bool needs_thread_twice(const struct search *s, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++) {
            const struct rep_order *a = &s->all[s->path[i]].seen, *b = &s->all[s->path[k]].seen;
            if (!a->several && !b->several && a->thread == b->thread)
                return true;
        }
    return false;
}

static bool may_deadlock(const struct search *s, unsigned n) {
    const struct order *first = &s->all[s->path[0]];
    for (unsigned i = 0; i < n; i++) {
        const struct rep_order *o = &s->all[s->path[i]].seen, *next = &s->all[s->path[(i + 1) % n]].seen;
        if (o->taken_shared && next->held_shared)
            return false;
    }
    for (uint32_t g = 0; g < first->n_gates; g++)
        if (keeps_apart(s, n, first->gate[g].object))
            return false;
    return !needs_thread_twice(s, n);
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
