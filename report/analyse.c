/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The analysis from its beginning to its end, and the sums over everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

bool rep_no_memory(struct sbt_trace_error *error) {
    *error = (struct sbt_trace_error){.offset = 0};
    snprintf(error->reason, sizeof error->reason, "not enough memory for the report");
    return false;
}

const char *rep_kind_name(unsigned kind) {
    static const char *const names[REP_N_KINDS] = {
        [REP_MUTEX] = "mutex",   [REP_RWLOCK] = "rwlock",   [REP_SPIN] = "spin",
        [REP_RELOCK] = "relock", [REP_COND] = "cond",       [REP_SEM] = "sem",
        [REP_FUTEX] = "futex",   [REP_BARRIER] = "barrier", [REP_JOIN] = "join"};
    return kind < REP_N_KINDS ? names[kind] : NULL;
}

uint64_t rep_contention_ns(const struct rep_times *t) {
    return t->waiting[REP_MUTEX].ns + t->waiting[REP_RWLOCK].ns + t->waiting[REP_SPIN].ns + t->waiting[REP_RELOCK].ns +
           t->as_lock_ns;
}

uint64_t rep_event_waits_ns(const struct rep_times *t) {
    return t->waiting[REP_COND].ns + t->waiting[REP_SEM].ns + t->waiting[REP_FUTEX].ns - t->as_lock_ns;
}

uint64_t rep_active_ns(const struct rep_times *t) {
    uint64_t off_ns = t->idle_ns + t->waiting[REP_JOIN].ns;
    return t->life_ns > off_ns ? t->life_ns - off_ns : 1;
}

uint64_t rep_path_of(const struct rep_object *o) {
    return o->path.held_ns + o->path.wakeup_ns + o->path.waiting_ns + o->path.calls_ns;
}

bool rep_holds_waited(const struct rep_report *r, const struct rep_object *o) {
    return o->gives_back && (o->type == SBT_TRACE_FUTEX || (r->info.profile && !o->counts_holds));
}

/* ---- beginning ---- */

static bool begin(struct rep_walk *w) {
    struct rep_report *r = w->report;
    size_t n_threads = (size_t)r->info.n_threads + 1, n_objects = (size_t)r->info.n_objects + 1;
    r->threads = calloc(n_threads, sizeof *r->threads);
    r->objects = calloc(n_objects, sizeof *r->objects);
    w->walkers = calloc(n_threads, sizeof *w->walkers);
    w->locks = calloc(n_objects, sizeof *w->locks);
    if (r->threads == NULL || r->objects == NULL || w->walkers == NULL || w->locks == NULL)
        return rep_no_memory(w->error);
    for (uint32_t i = 0; i < r->info.n_threads; i++) {
        r->threads[i].creator = r->threads[i].created_at = REP_NONE;
        r->threads[i].unended = (struct rep_unended){
            .object = REP_NONE, .site = REP_NONE, .other = REP_NONE, .holder = REP_NONE, .kind = REP_N_KINDS};
        w->walkers[i].last_wait = w->walkers[i].woken_cond = w->walkers[i].polled = REP_NONE;
    }
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        r->objects[i].made = r->objects[i].group = r->objects[i].detail = r->objects[i].mutex = REP_NONE;
        w->locks[i].holder = w->locks[i].any.thread = w->locks[i].write.thread = REP_NONE;
    }
    w->pairs = (struct rep_table){.key_bytes = 20, .entry_bytes = sizeof(struct rep_pair), .most = REP_MOST_PAIRS};
    w->site_pairs =
        (struct rep_table){.key_bytes = 20, .entry_bytes = sizeof(struct rep_site_pair), .most = REP_MOST_PAIRS};
    w->chains = (struct rep_table){.key_bytes = offsetof(struct rep_chain, n_links) + 4,
                                   .entry_bytes = sizeof(struct rep_chain),
                                   .most = REP_MOST_CHAINS};
    w->orders = (struct rep_table){.key_bytes = 8, .entry_bytes = rep_order_bytes(), .most = REP_MOST_ORDERS};
    w->permits = rep_permits_table();
    w->futexes = rep_futexes_table();
    w->tasks = (struct rep_table){.key_bytes = 4, .entry_bytes = sizeof(struct rep_task), .most = REP_MOST_TASKS};
    return true;
}

/* ---- the end: sums, and the most time first ---- */

static void add_times(struct rep_times *to, const struct rep_times *t) {
    to->life_ns += t->life_ns;
    to->cpu_ns += t->cpu_ns;
    to->off_cpu_ns += t->off_cpu_ns;
    to->calls_ns += t->calls_ns;
    to->outside_ns += t->outside_ns;
    to->queued_ns += t->queued_ns;
    to->no_core_ns += t->no_core_ns;
    to->wakeup_ns += t->wakeup_ns;
    to->unknown_ns += t->unknown_ns;
    to->idle_ns += t->idle_ns;
    to->as_lock_ns += t->as_lock_ns;
    to->sections.ns += t->sections.ns;
    to->sections.held_ns += t->sections.held_ns;
    for (unsigned k = 0; k < REP_N_KINDS; k++) {
        to->waiting[k].n += t->waiting[k].n;
        to->waiting[k].ns += t->waiting[k].ns;
    }
}

static void sum_up(struct rep_report *r) {
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        add_times(&r->times, &r->threads[i].times);
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        const struct rep_object *o = &r->objects[i];
        if (o->group == REP_NONE)
            continue;
        struct rep_group *g = &r->groups[o->group];
        g->type = o->type;
        g->made = o->made;
        g->n_objects++;
        g->n += o->n;
        g->n_contended += o->n_contended;
        g->wait_ns += o->wait_ns;
        g->hold_ns += o->hold_ns;
        g->calls_ns += o->calls_ns;
        g->path_ns += rep_path_of(o);
    }
}

#define MOST_FIRST(type)                                                                                               \
    static int type##_most_first(const void *a, const void *b) {                                                       \
        const struct rep_sum *x = &((const struct type *)a)->sum, *y = &((const struct type *)b)->sum;                 \
        return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : x->n != y->n ? (x->n > y->n ? -1 : 1) : 0;                  \
    }
MOST_FIRST(rep_pair)
MOST_FIRST(rep_site_pair)
MOST_FIRST(rep_chain)
MOST_FIRST(rep_task)

/* The table's entries become the report's. */
static void *take(struct rep_table *t, size_t *n, int (*order)(const void *a, const void *b)) {
    void *entries = t->entries;
    *n = t->n;
    if (entries != NULL)
        qsort(entries, t->n, t->entry_bytes, order);
    t->entries = NULL;
    return entries;
}

static const char *why_empty(const struct rep_report *r) {
    uint64_t n_waits = 0, n = 0;
    uint32_t n_calling = 0;
    if (r->info.generated)
        return "a generator wrote this trace: it has no times of day (subutai predict simulates it)";
    if (r->info.n_events == 0 || r->n_live == 0)
        return r->info.whole ? "the trace has no events: the program did not synchronize"
                             : "the trace has no events: the program was killed before it wrote any, or has become "
                               "another one by exec";
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        n += r->objects[i].n;
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        n_calling += r->threads[i].n_events > (r->threads[i].still_runs ? 1 : 0);
    for (unsigned k = 0; k < REP_N_KINDS; k++)
        n_waits += r->times.waiting[k].n;
    if (n == 0 && n_waits == 0 && n_calling <= 1 && r->info.n_threads > 1)
        return "the program has other threads, and they made no call that is recorded: they wait in ways of their own";
    if (n == 0 && n_waits == 0 && n_calling <= 1)
        return "the program did not synchronize: one thread, and no lock, condition, barrier, semaphore or futex";
    return NULL;
}

static bool analyse(struct rep_walk *w) {
    struct rep_report *r = w->report;
    if (!begin(w))
        return false;
    if (!r->info.generated && r->info.n_events > 0) {
        if (!rep_survey(w) || !rep_walk_all(w) || !rep_orders_of_profile(w) || !rep_circles(w) || !rep_path_find(w) ||
            !rep_path_share(w))
            return false;
        rep_tally_sections(w);
        sum_up(r);
    }
    r->pairs = take(&w->pairs, &r->n_pairs, rep_pair_most_first);
    r->site_pairs = take(&w->site_pairs, &r->n_site_pairs, rep_site_pair_most_first);
    r->chains = take(&w->chains, &r->n_chains, rep_chain_most_first);
    r->tasks = take(&w->tasks, &r->n_tasks, rep_task_most_first);
    r->empty = why_empty(r);
    if (r->empty == NULL)
        rep_advise(r);
    return true;
}

struct rep_report *rep_analyse(const struct sbt_trace *trace, struct rep_region turns, rep_progress *progress, void *to,
                               struct sbt_trace_error *error) {
    struct rep_report *r = calloc(1, sizeof *r);
    struct rep_walk w = {
        .report = r, .trace = trace, .turns = turns, .error = error, .progress = progress, .progress_to = to};
    if (r == NULL) {
        rep_no_memory(error);
        return NULL;
    }
    r->info = *sbt_trace_info(trace);
    w.n_to_read = 3 * r->info.n_events;
    bool well = rep_plausible(&r->info, error) && analyse(&w);
    for (uint32_t i = 0; w.walkers != NULL && i < r->info.n_threads; i++) {
        free(w.walkers[i].held);
        free(w.walkers[i].given);
        free(w.walkers[i].recent);
    }
    free(w.walkers);
    free(w.locks);
    free(w.waits);
    rep_table_free(&w.pairs);
    rep_table_free(&w.site_pairs);
    rep_table_free(&w.chains);
    rep_table_free(&w.orders);
    rep_table_free(&w.tasks);
    rep_table_free(&w.permits);
    rep_table_free(&w.futexes);
    if (well)
        return r;
    rep_free(r);
    return NULL;
}

static void free_detail(struct rep_detail *d) {
    rep_histogram_free(&d->wait);
    rep_histogram_free(&d->hold);
    if (d->rings != NULL) {
        free(d->rings->holds);
        free(d->rings->signals);
        free(d->rings);
    }
    if (d->barrier == NULL)
        return;
    for (uint32_t i = 0; i < d->barrier->n_threads; i++)
        rep_histogram_free(&d->barrier->threads[i].delay);
    rep_histogram_free(&d->barrier->imbalance);
    rep_histogram_free(&d->barrier->release);
    rep_histogram_free(&d->barrier->delay);
    free(d->barrier->threads);
    free(d->barrier);
}

void rep_free(struct rep_report *r) {
    for (uint32_t i = 0; i < r->n_details; i++)
        free_detail(&r->details[i]);
    free(r->details);
    free(r->threads);
    free(r->objects);
    free(r->groups);
    free(r->pairs);
    free(r->site_pairs);
    free(r->chains);
    free(r->tasks);
    free(r->orders);
    free(r->circles);
    free(r->path.site_ns);
    free(r->path.segments);
    free(r);
}
