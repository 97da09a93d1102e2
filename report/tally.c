/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles: calls for which no thread waited are counted by the recorder, and holds are timed by samples. What is
 * counted here is added to what the walk counts of events.
 */
#include "walk.h"

static bool is_lock_tally(const struct sbt_trace_tally *t) {
    return rep_is_lock(t->op);
}

/* A class of the recorder's has one octave: its middle stands for it. */
static void add_holds(struct rep_histogram *h, const struct sbt_trace_tally *t) {
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++) {
        uint64_t ns = (UINT64_C(3) << b) / 2;
        ns = ns > t->held_max_ns ? t->held_max_ns : ns;
        rep_histogram_add_n(h, ns, t->held[b]);
    }
}

static void add_calls(struct rep_object *o, const struct sbt_trace_tally *t) {
    uint64_t n = t->n > t->n_failed ? t->n - t->n_failed : 0;
    if (is_lock_tally(t)) {
        o->n += n;
        o->n_failed += t->n_failed;
        o->calls_ns += 2 * REP_CALL_NS * n + REP_CALL_NS * t->n_failed;
    } else if (t->op == SBT_TRACE_COND_BROADCAST) {
        o->n_broadcasts += n;
    } else if (t->op == SBT_TRACE_COND_SIGNAL || t->op == SBT_TRACE_SEM_POST || t->op == SBT_TRACE_FUTEX_WAKE) {
        o->n_signals += n;
    } else if (t->op == SBT_TRACE_SEM_WAIT || t->op == SBT_TRACE_SEM_TRYWAIT || t->op == SBT_TRACE_FUTEX_WAIT) {
        o->n += n;
        o->n_failed += t->n_failed;
    }
}

/* Tasks are holds of the object where threads wait for them (trace.h). */
static bool is_of_tasks(const struct sbt_trace_tally *t) {
    return t->op == SBT_TRACE_FUTEX_WAIT && t->n_held != 0;
}

static void add_tasks(struct rep_walk *w, const struct sbt_trace_tally *t) {
    struct rep_task *task = rep_table_get(&w->tasks, &t->site);
    if (task == NULL) /* no program has so many */
        return;
    task->sum.n += t->n_held;
    task->sum.ns += t->held_ns;
    task->max_ns = t->held_max_ns > task->max_ns ? t->held_max_ns : task->max_ns;
}

static void add_permits(struct rep_walk *w, const struct sbt_trace_tally *t) {
    const struct sbt_trace_event e = {.op = t->op, .object = t->object};
    if (t->type == SBT_TRACE_SEM)
        rep_permits_count(w, t->thread, &e, t->n - t->n_failed);
    if (t->type == SBT_TRACE_FUTEX)
        rep_futexes_count(w, t->thread, &e, t->n - t->n_failed);
}

/* A thread may have taken and posted a semaphore that is no lock. Its holds are none. */
static void without_holds(struct sbt_trace_tally *t) {
    t->n_timed = t->n_held = 0;
    t->held_ns = t->held_max_ns = 0;
}

static void add(struct rep_walk *w, struct sbt_trace_tally *t) {
    struct rep_report *r = w->report;
    if (is_of_tasks(t)) {
        add_tasks(w, t);
        return;
    }
    add_permits(w, t);
    if (t->type == SBT_TRACE_SEM && t->n_held != 0 && t->object < r->info.n_objects)
        r->objects[t->object].counts_holds = true;
    if (t->type == SBT_TRACE_SEM && (t->object >= r->info.n_objects || !r->objects[t->object].gives_back))
        without_holds(t);
    struct rep_times *times = t->thread < r->info.n_threads ? &r->threads[t->thread].times : NULL;
    if (times != NULL)
        times->sections.held_ns += t->held_ns;
    if (t->object >= r->info.n_objects) {
        r->rest.n += is_lock_tally(t) && t->n > t->n_failed ? t->n - t->n_failed : 0;
        r->rest.ns += t->held_ns;
        return;
    }
    struct rep_object *o = &r->objects[t->object];
    struct rep_detail *d = rep_detail_of(w, t->object);
    if (o->type == SBT_TRACE_NO_OBJECT)
        o->type = t->type;
    if (o->made == REP_NONE)
        o->made = t->site;
    add_calls(o, t);
    o->hold_n += t->n_held;
    o->hold_ns += t->held_ns;
    o->hold_max_ns = t->held_max_ns > o->hold_max_ns ? t->held_max_ns : o->hold_max_ns;
    if (d == NULL || t->n_held == 0)
        return;
    struct rep_site_use *use = rep_site_use(d, t->site);
    use->hold.n += t->n_held;
    use->hold.ns += t->held_ns;
    add_holds(&d->hold, t);
}

bool rep_tallies(struct rep_walk *w) {
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally tally;
    int got;
    if (!w->report->info.profile)
        return true;
    sbt_trace_tally_begin(w->trace, &cursor);
    while ((got = sbt_trace_tally_next(&cursor, &tally, w->error)) == 1)
        add(w, &tally);
    return got == 0;
}

/* Sections of a profile: its holds do not say which of them were within others, so each counts. */
void rep_tally_sections(struct rep_walk *w) {
    struct rep_report *r = w->report;
    if (!r->info.profile)
        return;
    for (uint32_t i = 0; i < r->info.n_threads; i++) {
        struct rep_times *t = &r->threads[i].times;
        if (t->sections.held_ns > t->life_ns)
            t->sections.held_ns = t->life_ns;
        t->sections.ns = t->sections.held_ns + rep_contention_ns(t);
    }
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        r->objects[i].section_ns = r->objects[i].hold_ns + (rep_is_held(&r->objects[i]) ? r->objects[i].wait_ns : 0);
}
