/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first reading, thread by thread. It says when threads lived, where objects were made, and which objects get
 * histograms: those that threads spent the most time at, and then those that were used most.
 */
#include <stdlib.h>

#include "walk.h"

static void survey_creation(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_report *r = w->report;
    if (e->other >= r->info.n_threads || e->result != 0)
        return;
    struct rep_thread *made = &r->threads[e->other];
    made->creator = thread;
    made->created_at = e->site;
    made->begin_ns = e->at_ns;
}

static void survey_object(struct rep_walk *w, const struct sbt_trace_event *e) {
    struct rep_object *o = &w->report->objects[e->object];
    bool init = e->op == SBT_TRACE_INIT;
    if (o->type == SBT_TRACE_NO_OBJECT || (init && !o->made_by_init) ||
        (init == o->made_by_init && e->at_ns < o->made_ns)) {
        o->type = e->type;
        o->made = e->site;
        o->made_ns = e->at_ns;
        o->made_by_init = init;
    }
    bool ends = e->op == SBT_TRACE_THREAD_END;
    if ((e->type == SBT_TRACE_BARRIER || e->type == SBT_TRACE_SEM) && e->size != 0 && !ends)
        o->size = e->size;
    o->n++;
    if (e->took_ns >= REP_SHORT_NS && e->op != SBT_TRACE_INIT && e->op != SBT_TRACE_DESTROY)
        o->wait_ns += e->took_ns;
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE && e->took_ns >= REP_SHORT_NS)
        w->report->objects[e->other].wait_ns++; /* it may have to wait for the mutex */
}

static void survey_thread(struct rep_thread *t, const struct sbt_trace_event *e, uint32_t thread) {
    uint64_t began_ns = thread == 0 || e->at_ns < e->work_ns ? 0 : e->at_ns - e->work_ns;
    if (t->n_events++ == 0 && (t->creator == REP_NONE || t->begin_ns > e->at_ns))
        t->begin_ns = began_ns;
    t->end_ns = e->at_ns + e->took_ns;
    t->times.cpu_ns += e->work_ns;
    t->still_runs = sbt_trace_still_runs(e);
    t->guessed_ns = t->still_runs && sbt_trace_waits_in(e) == SBT_TRACE_N_OPS ? e->work_ns : 0;
}

/* ---- details ---- */

struct ranked {
    uint64_t ns, n;
    uint32_t object;
};

static int by_weight(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static bool detail(struct rep_report *r, uint32_t object) {
    struct rep_object *o = &r->objects[object];
    struct rep_detail *d = &r->details[r->n_details];
    d->object = object;
    d->rings = calloc(1, sizeof *d->rings);
    if (d->rings == NULL)
        return false;
    o->detail = r->n_details++;
    if (o->type != SBT_TRACE_BARRIER)
        return true;
    d->barrier = calloc(1, sizeof *d->barrier);
    if (d->barrier != NULL)
        *d->barrier = (struct rep_barrier){.object = object, .count = o->size};
    return d->barrier != NULL;
}

static bool choose_details(struct rep_walk *w) {
    struct rep_report *r = w->report;
    size_t n = 0;
    struct ranked *ranked = malloc(((size_t)r->info.n_objects + 1) * sizeof *ranked);
    if (ranked == NULL)
        return rep_no_memory(w->error);
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        if (r->objects[i].type != SBT_TRACE_NO_OBJECT)
            ranked[n++] = (struct ranked){r->objects[i].wait_ns, r->objects[i].n, i};
    qsort(ranked, n, sizeof *ranked, by_weight);
    n = n < REP_MOST_DETAILS ? n : REP_MOST_DETAILS;
    r->details = calloc(n + 1, sizeof *r->details);
    bool enough = r->details != NULL;
    for (size_t i = 0; enough && i < n; i++)
        enough = detail(r, ranked[i].object);
    free(ranked);
    return enough || rep_no_memory(w->error);
}

/* ---- groups ---- */

static bool make_groups(struct rep_walk *w) {
    struct rep_report *r = w->report;
    struct entry {
        uint32_t key[2], number;
    };
    struct rep_table table = {.key_bytes = 8, .entry_bytes = sizeof(struct entry), .most = UINT32_MAX / 2};
    bool enough = true;
    for (uint32_t i = 0; enough && i < r->info.n_objects; i++) {
        struct rep_object *o = &r->objects[i];
        const uint32_t key[2] = {o->type, o->made};
        struct entry *e = o->type != SBT_TRACE_NO_OBJECT ? rep_table_get(&table, key) : NULL;
        enough = o->type == SBT_TRACE_NO_OBJECT || e != NULL;
        if (e == NULL)
            continue;
        if (e->number == 0)
            e->number = ++r->n_groups;
        o->group = e->number - 1;
    }
    r->groups = calloc((size_t)r->n_groups + 1, sizeof *r->groups);
    rep_table_free(&table);
    return (enough && r->groups != NULL) || rep_no_memory(w->error);
}

static bool read_all(struct rep_walk *w) {
    struct rep_report *r = w->report;
    for (uint32_t thread = 0; thread < r->info.n_threads; thread++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e;
        int got;
        sbt_trace_cursor_begin(w->trace, thread, &cursor);
        while ((got = rep_next(&cursor, &e, w->error)) == 1) {
            rep_tick(w);
            survey_thread(&r->threads[thread], &e, thread);
            if (e.op == SBT_TRACE_THREAD_CREATE)
                survey_creation(w, thread, &e);
            if (e.object != SBT_TRACE_NONE)
                survey_object(w, &e);
            if (e.type == SBT_TRACE_SEM)
                rep_permits_count(w, thread, &e, 1);
            if (e.type == SBT_TRACE_FUTEX)
                rep_futexes_count(w, thread, &e, 1);
        }
        if (got < 0)
            return false;
    }
    return true;
}

/* What a creation said may have come after the thread's own events were read. */
static void end_lives(struct rep_report *r) {
    for (uint32_t i = 0; i < r->info.n_threads; i++) {
        struct rep_thread *t = &r->threads[i];
        if (t->n_events == 0)
            continue;
        r->n_live++;
        r->n_guessed += r->info.completed && t->guessed_ns >= REP_SHORT_NS;
        if (t->begin_ns > t->end_ns)
            t->begin_ns = t->end_ns;
        t->times.life_ns = t->end_ns - t->begin_ns;
        r->wall_ns = t->end_ns > r->wall_ns ? t->end_ns : r->wall_ns;
    }
}

/* A profile has no events of inits. */
static void made_of_profile(struct rep_walk *w) {
    struct sbt_trace_made made;
    for (uint32_t i = 0; w->report->info.profile && i < w->report->info.n_objects; i++)
        if (sbt_trace_object_made(w->trace, i, &made)) {
            w->report->objects[i].made = made.site;
            w->report->objects[i].made_by_init = true;
            w->report->objects[i].size = made.size != 0 ? made.size : w->report->objects[i].size;
        }
}

/* What was counted to choose the details is counted again, and better. */
static void begin_counts(struct rep_report *r) {
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        struct rep_object *o = &r->objects[i];
        o->n = o->n_failed = o->wait_ns = o->calls_ns = o->n_signals = o->n_broadcasts = 0;
        o->hold_n = o->hold_ns = o->hold_max_ns = 0;
    }
    r->rest = (struct rep_sum){0};
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        r->threads[i].times.sections = (struct rep_sections){0};
}

static void find_turns(struct rep_walk *w) {
    struct rep_report *r = w->report;
    for (uint32_t i = 0; w->turns.size > 0 && i < r->info.n_objects; i++)
        r->objects[i].turns = r->objects[i].type == SBT_TRACE_COND &&
                              sbt_trace_object_address(w->trace, i) - w->turns.address < w->turns.size;
}

bool rep_survey(struct rep_walk *w) {
    struct rep_report *r = w->report;
    if (!read_all(w))
        return false;
    end_lives(r);
    made_of_profile(w);
    find_turns(w);
    if (!rep_tallies(w) || !rep_permits_settle(w) || !rep_futexes_settle(w) || !choose_details(w) || !make_groups(w))
        return false;
    begin_counts(r);
    rep_table_free(&w->tasks);
    const bool whole = rep_tallies(w);
    rep_table_free(&w->permits);
    rep_table_free(&w->futexes);
    return whole;
}
