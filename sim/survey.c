/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk through a trace on a machine that costs nothing: each thread has a core of its own, and a call takes no time
 * but for what it waits for. The time at which the last thread ends there is the bound `path_ns`.
 *
 * No thread comes to an event later here than on a chip, because a thread waits here only for what it waits for on
 * every chip. So what depends on the order in which threads come does not bind: which thread gets a mutex first (unless
 * the order is the recorded one), an rwlock or a spin lock, and which of several threads takes a post.
 *  - A condition wait ends with its signal.
 *  - A barrier opens when its count has come. (If more threads than the count use it, they may meet otherwise on a
 * chip.)
 *  - The thread that waits first for a semaphore has had as many posts as it has waited for, less the initial value.
 *
 * Each step takes the thread with the least time, makes its event, and brings it to its next event that may bind. So
 * what has happened was not later than the thread that looks for it. Threads without a creation are an exception: they
 * begin when no other thread can go on, because the walk may find a creation until then, and their times may lie back.
 * What has happened then counts as no later than their time. That makes the bound less, so it stays a bound.
 */
#include "survey.h"

#include <stdlib.h>

#include "survey_event.h"

/* ---- when no thread can go on ---- */

/* Threads that do something, and that no event has created. */
static bool begin_unborn(struct sim_walk *w) {
    bool any = false;
    for (uint32_t i = 0; i < w->n_threads; i++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event first;
        struct sbt_trace_error damage;
        sbt_trace_cursor_begin(w->trace, i, &cursor);
        if (w->state[i] != SIM_WALK_UNBORN || sbt_trace_next(&cursor, &first, &damage) == 0 ||
            sbt_trace_still_runs(&first))
            continue;
        w->begins[i] = first.at_ns > first.work_ns ? first.at_ns - first.work_ns : 0;
        sim_walk_begin(w, i, w->begins[i]);
        any = true;
    }
    return any;
}

static bool ended_before(const struct sim_walk_thread *a, const struct sim_walk_thread *b) {
    return a->event.at_ns + a->event.took_ns < b->event.at_ns + b->event.took_ns;
}

static void take_out(struct sim_walk_thread *t) {
    struct sim_walk_list all = *t->in;
    *t->in = (struct sim_walk_list){0};
    for (struct sim_walk_thread *o; (o = sim_walk_shift(&all)) != NULL;)
        if (o != t)
            sim_walk_append(t->in, o);
}

/* The wait that ended first in the trace binds no more, as in a replay (replay_pass.c). */
static bool pass(struct sim_walk *w) {
    struct sim_walk_thread *t = NULL;
    uint64_t at = 0;
    for (uint32_t i = 0; i < w->n_threads; i++)
        if (w->threads[i] != NULL && w->threads[i]->in != NULL && (t == NULL || ended_before(w->threads[i], t)))
            t = w->threads[i];
    if (t == NULL)
        return false;
    take_out(t);
    struct sim_walk_object *o = t->page != NULL ? sim_walk_object(w, t->event.object) : NULL;
    if (o != NULL && t->event.op == SBT_TRACE_BARRIER_WAIT)
        o->n_inside--;
    if (o != NULL && (t->event.op == SBT_TRACE_SEM_WAIT || t->event.op == SBT_TRACE_SEM_TRYWAIT))
        o->n_waits--;
    if (o != NULL && (t->event.op == SBT_TRACE_MUTEX_LOCK || t->event.op == SBT_TRACE_MUTEX_TRYLOCK)) {
        at = o->owner != 0 && w->state[o->owner - 1] == SIM_WALK_ENDED ? w->ended_at[o->owner - 1] : 0;
        sim_walk_acquired(o, t);
    }
    sim_walk_go_on(w, t, at);
    return true;
}

/* ---- the walk ---- */

static void walk(struct sim_walk *w) {
    bool unborn = true;
    sim_walk_begin(w, 0, 0);
    for (;;) {
        while (w->n_heap > 0 && w->status == SIM_OK)
            sim_walk_make(w, sim_walk_pop(w));
        if (w->status != SIM_OK)
            return;
        if (unborn && begin_unborn(w)) {
            unborn = false;
            continue;
        }
        if (!pass(w))
            return;
    }
}

static bool get_memory(struct sim_walk *w, uint32_t n_objects) {
    size_t n = w->n_threads;
    w->n_pages = (uint32_t)(((uint64_t)n_objects + SIM_WALK_PAGE_OBJECTS - 1) / SIM_WALK_PAGE_OBJECTS);
    w->threads = calloc(n, sizeof(struct sim_walk_thread *));
    w->heap = calloc(n, sizeof(struct sim_walk_thread *));
    w->state = calloc(n, sizeof *w->state);
    w->ended_at = calloc(n, sizeof *w->ended_at);
    w->joiners = calloc(n, sizeof *w->joiners);
    w->pages = calloc(w->n_pages + (size_t)1, sizeof(struct sim_walk_page *));
    w->begins = malloc(n * sizeof *w->begins);
    return w->threads != NULL && w->heap != NULL && w->state != NULL && w->ended_at != NULL && w->joiners != NULL &&
           w->pages != NULL && w->begins != NULL;
}

static void free_memory(struct sim_walk *w) {
    for (uint32_t i = 0; w->threads != NULL && i < w->n_threads; i++)
        free(w->threads[i]);
    sim_walk_free_pages(w);
    free(w->threads);
    free(w->heap);
    free(w->state);
    free(w->ended_at);
    free(w->joiners);
}

struct sim_survey *sim_survey_new(const struct sbt_trace *trace, const char *name, bool recorded_order,
                                  bool without_outside, enum sim_status *status, struct sim_error *error) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sim_survey *survey = calloc(1, sizeof *survey);
    struct sim_walk w = {.trace = trace,
                         .name = name,
                         .recorded_order = recorded_order,
                         .without_outside = without_outside,
                         .n_threads = info->n_threads,
                         .error = error};
    if (w.n_threads == 0)
        sim_walk_fail(&w, SIM_USAGE, "an empty trace");
    else if (survey == NULL || !get_memory(&w, info->n_objects))
        sim_walk_fail(&w, SIM_NO_MEMORY, "out of memory");
    if (w.status == SIM_OK) {
        for (uint32_t i = 0; i < w.n_threads; i++)
            w.begins[i] = UINT64_MAX;
        walk(&w);
    }
    free_memory(&w);
    *status = w.status;
    if (w.status != SIM_OK) {
        free(w.begins);
        free(w.broadcasts.range);
        free(w.earliest.entry);
        free(survey);
        return NULL;
    }
    sim_ranges_done(&w.broadcasts);
    *survey = (struct sim_survey){w.bounds, w.begins, w.broadcasts, w.earliest};
    return survey;
}

struct sim_bounds sim_survey_bounds(const struct sim_survey *survey) {
    return survey->bounds;
}

void sim_survey_free(struct sim_survey *survey) {
    if (survey != NULL) {
        free(survey->begins);
        free(survey->broadcasts.range);
        free(survey->earliest.entry);
    }
    free(survey);
}
