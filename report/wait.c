/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A wait that has ended: what it means for the thread, the object, the waker and the critical path.
 *
 * Whether a wait was idle is known later: a thread that waits keeps another thread waiting if it ends the other's wait
 * afterwards. So a thread's last waits stay in a ring, and the waker of each wait looks in its own ring for waits that
 * overlap with it.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

struct rep_detail *rep_detail_of(struct rep_walk *w, uint32_t object) {
    uint32_t detail = w->report->objects[object].detail;
    return detail != REP_NONE ? &w->report->details[detail] : NULL;
}

struct rep_site_use *rep_site_use(struct rep_detail *d, uint32_t site) {
    for (unsigned i = 0; i < d->n_sites; i++)
        if (d->sites[i].site == site)
            return &d->sites[i];
    if (d->n_sites == REP_MOST_SITES)
        return &d->sites[REP_MOST_SITES - 1]; /* the last one stands for all that are left */
    d->sites[d->n_sites].site = d->n_sites == REP_MOST_SITES - 1 ? REP_NONE : site;
    return &d->sites[d->n_sites++];
}

void rep_pair_add(struct rep_walk *w, const struct rep_waited *wait, uint32_t holder, uint32_t holder_site,
                  uint64_t ns) {
    const uint32_t key[5] = {wait->thread, holder, wait->object, wait->kind, wait->timed_out};
    const uint32_t site_key[5] = {wait->object, wait->site, holder_site, wait->kind, wait->timed_out};
    struct rep_pair *pair = rep_table_get(&w->pairs, key);
    struct rep_site_pair *sites = rep_table_get(&w->site_pairs, site_key);
    w->report->dropped.pairs += (pair == NULL) + (sites == NULL);
    if (pair != NULL) {
        pair->sum.n++;
        pair->sum.ns += ns;
    }
    if (sites != NULL) {
        sites->sum.n++;
        sites->sum.ns += ns;
    }
}

/* ---- idle or not ---- */

static bool can_be_idle(const struct rep_report *r, const struct rep_recent_wait *wait) {
    const bool as_lock = wait->object != REP_NONE && rep_is_as_lock(&r->objects[wait->object]);
    return !as_lock && (wait->kind == REP_COND || wait->kind == REP_SEM || wait->kind == REP_FUTEX);
}

static void settle_idle(struct rep_walk *w, uint32_t thread, struct rep_recent_wait *wait) {
    uint64_t idle_ns = wait->to_ns - wait->from_ns - wait->kept_ns;
    if (!can_be_idle(w->report, wait))
        return;
    w->report->threads[thread].times.idle_ns += idle_ns;
    if (wait->object != REP_NONE)
        w->report->objects[wait->object].idle_ns += idle_ns;
}

void rep_idle_finish(struct rep_walk *w, uint32_t thread) {
    struct rep_walker *t = &w->walkers[thread];
    for (uint32_t i = 0; t->recent != NULL && i < REP_RECENT_WAITS; i++)
        settle_idle(w, thread, &t->recent[i]);
    free(t->recent);
    t->recent = NULL;
}

static struct rep_recent_wait *recent_before(struct rep_walker *t, uint32_t steps) {
    return &t->recent[(t->recent_at - 1 - steps) % REP_RECENT_WAITS];
}

/* The waker's own waits that this wait overlaps with kept its thread. Returns the latest of them, or NULL. */
static const struct rep_recent_wait *keep(struct rep_walk *w, const struct rep_waited *wait, uint64_t *overlap_ns) {
    struct rep_walker *waker = &w->walkers[wait->by.thread];
    uint64_t since = later(wait->from_ns, wait->by.since_ns);
    const struct rep_recent_wait *latest = NULL;
    *overlap_ns = 0;
    for (uint32_t i = 0; waker->recent != NULL && i < REP_RECENT_WAITS; i++) {
        struct rep_recent_wait *own = recent_before(waker, i);
        if (own->to_ns <= since)
            break;
        uint64_t from = later(own->from_ns, since), to = earlier(own->to_ns, wait->by.at_ns);
        if (from >= to)
            continue;
        own->kept_ns = later(own->kept_ns, own->to_ns - from);
        if (latest == NULL) {
            latest = own;
            *overlap_ns = to - from;
        }
    }
    return latest;
}

static void remember(struct rep_walk *w, const struct rep_waited *wait, uint32_t chain) {
    struct rep_walker *t = &w->walkers[wait->thread];
    if (t->recent == NULL && (t->recent = calloc(REP_RECENT_WAITS, sizeof *t->recent)) == NULL)
        return;
    struct rep_recent_wait *place = &t->recent[t->recent_at++ % REP_RECENT_WAITS];
    settle_idle(w, wait->thread, place);
    /* A thread that has been woken is not idle any more. */
    uint64_t to_ns =
        wait->by.thread != REP_NONE ? earlier(wait->to_ns, later(wait->by.at_ns, wait->from_ns)) : wait->to_ns;
    *place = (struct rep_recent_wait){.from_ns = wait->from_ns,
                                      .to_ns = to_ns,
                                      .object = wait->object,
                                      .site = wait->site,
                                      .chain = chain,
                                      .kind = (uint8_t)wait->kind};
}

/* ---- chains ---- */

static void link_set(struct rep_chain *chain, uint32_t object, uint32_t site, unsigned kind) {
    chain->link[chain->n_links].object = object;
    chain->link[chain->n_links].site = site;
    chain->link[chain->n_links++].kind = kind;
}

/* The number of the chain that goes on with the waker's own wait; REP_NONE: there is no room. */
static uint32_t chain_add(struct rep_walk *w, const struct rep_waited *wait, const struct rep_recent_wait *next,
                          uint64_t ns) {
    struct rep_chain key = {.n_links = 0};
    link_set(&key, wait->object, wait->site, wait->kind);
    link_set(&key, next->object, next->site, next->kind);
    const struct rep_chain *rest = next->chain != REP_NONE ? (struct rep_chain *)w->chains.entries + next->chain : NULL;
    for (uint32_t i = 1; rest != NULL && i < rest->n_links && key.n_links < REP_MOST_LINKS; i++)
        link_set(&key, rest->link[i].object, rest->link[i].site, rest->link[i].kind);
    struct rep_chain *chain = rep_table_get(&w->chains, &key);
    if (chain == NULL) {
        w->report->dropped.chains++;
        return REP_NONE;
    }
    chain->sum.n++;
    chain->sum.ns += ns;
    return (uint32_t)(chain - (struct rep_chain *)w->chains.entries);
}

/* ---- the critical path's records ---- */

/* Drop the shorter waits until half of the room is free again. */
static void thin_out(struct rep_walk *w) {
    uint32_t *renamed = malloc(w->n_waits * sizeof *renamed);
    if (renamed == NULL)
        return;
    while (w->n_waits > w->waits_capacity / 2) {
        uint32_t n = 0;
        w->shortest_ns = w->shortest_ns == 0 ? REP_SHORT_NS : 2 * w->shortest_ns;
        for (uint32_t i = 0; i < w->n_waits; i++) {
            struct rep_wait *wait = &w->waits[i];
            uint32_t before = wait->before != REP_NONE ? renamed[wait->before] : REP_NONE;
            bool stays = wait->kind == REP_N_KINDS || wait->to_ns - wait->from_ns >= w->shortest_ns;
            renamed[i] = stays ? n : before;
            w->report->dropped.waits += !stays;
            if (stays) {
                w->waits[n] = *wait;
                w->waits[n++].before = before;
            }
        }
        for (uint32_t t = 0; t < w->report->info.n_threads; t++)
            if (w->walkers[t].last_wait != REP_NONE)
                w->walkers[t].last_wait = renamed[w->walkers[t].last_wait];
        w->n_waits = n;
        if (w->shortest_ns > UINT64_MAX / 4)
            break;
    }
    free(renamed);
}

static bool more_room(struct rep_walk *w) {
    if (w->waits_capacity == REP_MOST_WAITS) {
        thin_out(w);
        return w->n_waits < w->waits_capacity;
    }
    uint32_t capacity = w->waits_capacity == 0 ? 1024 : 2 * w->waits_capacity;
    struct rep_wait *longer = realloc(w->waits, capacity * sizeof *longer);
    if (longer == NULL)
        return false;
    w->waits = longer;
    w->waits_capacity = capacity;
    return true;
}

static void record(struct rep_walk *w, struct rep_wait wait) {
    struct rep_walker *t = &w->walkers[wait.thread];
    if ((wait.kind != REP_N_KINDS && wait.to_ns - wait.from_ns < w->shortest_ns) ||
        (w->n_waits == w->waits_capacity && !more_room(w))) {
        w->report->dropped.waits++;
        return;
    }
    wait.before = t->last_wait;
    t->last_wait = w->n_waits;
    w->waits[w->n_waits++] = wait;
}

void rep_created(struct rep_walk *w, uint32_t thread, const struct rep_release *by, uint64_t begin_ns) {
    record(w, (struct rep_wait){.from_ns = by->at_ns,
                                .to_ns = later(begin_ns, by->at_ns),
                                .release_ns = by->at_ns,
                                .thread = thread,
                                .waker = by->thread,
                                .object = REP_NONE,
                                .kind = REP_N_KINDS});
}

/* ---- all together ---- */

static void add_up(struct rep_walk *w, const struct rep_waited *wait, uint64_t ns) {
    struct rep_sum *sum = &w->report->threads[wait->thread].times.waiting[wait->kind];
    sum->n++;
    sum->ns += ns;
    if (wait->object == REP_NONE)
        return;
    struct rep_object *o = &w->report->objects[wait->object];
    struct rep_detail *d = rep_detail_of(w, wait->object);
    if (rep_is_as_lock(o))
        w->report->threads[wait->thread].times.as_lock_ns += ns;
    o->n_contended++;
    o->wait_ns += ns;
    o->timed_out.n += wait->timed_out;
    o->timed_out.ns += wait->timed_out ? ns : 0;
    if (d != NULL && wait->stack != 0 && ns >= o->wait_max_ns)
        d->longest_stack = wait->stack;
    o->wait_max_ns = later(o->wait_max_ns, ns);
    if (d == NULL)
        return;
    rep_histogram_add(&d->wait, ns);
    struct rep_site_use *use = rep_site_use(d, wait->site);
    use->wait.n++;
    use->wait.ns += ns;
}

void rep_waited(struct rep_walk *w, const struct rep_waited *wait) {
    uint64_t ns = wait->to_ns - wait->from_ns, overlap_ns = 0;
    uint32_t chain = REP_NONE;
    add_up(w, wait, ns);
    if (wait->by.thread != REP_NONE)
        w->report->threads[wait->thread].times.wakeup_ns +=
            wait->to_ns - earlier(later(wait->by.at_ns, wait->from_ns), wait->to_ns);
    if (wait->by.thread != REP_NONE && wait->by.thread != wait->thread) {
        const struct rep_recent_wait *next = wait->kind != REP_JOIN ? keep(w, wait, &overlap_ns) : NULL;
        if (next != NULL && next->kind != REP_JOIN)
            chain = chain_add(w, wait, next, overlap_ns);
        record(w, (struct rep_wait){.from_ns = wait->from_ns,
                                    .to_ns = wait->to_ns,
                                    .release_ns = earlier(later(wait->by.at_ns, wait->from_ns), wait->to_ns),
                                    .thread = wait->thread,
                                    .waker = wait->by.thread,
                                    .object = wait->object,
                                    .kind = (uint8_t)wait->kind});
    }
    remember(w, wait, chain);
}

void rep_not_waited(struct rep_walk *w, uint32_t thread, uint32_t object, uint64_t ns) {
    w->report->threads[thread].times.calls_ns += ns;
    w->report->threads[thread].times.wakeup_ns += ns > REP_SHORT_NS ? ns : 0;
    if (object != REP_NONE)
        w->report->objects[object].calls_ns += ns;
}
