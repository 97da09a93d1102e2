/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "survey_walk.h"

#include "polling.h"

#include <errno.h>
#include <stdlib.h>

/* Times and lengths are below this, as in a replay (return.h). */
#define LONGEST (UINT64_MAX / 4)

static struct sim_walk_page forgotten; /* in the place of a page with all its objects destroyed */

void sim_walk_fail(struct sim_walk *w, enum sim_status status, const char *text) {
    if (w->status != SIM_OK)
        return;
    w->status = status;
    snprintf(w->error->text, sizeof w->error->text, "%s%s%s", status == SIM_DAMAGED ? w->name : "",
             status == SIM_DAMAGED ? ": " : "", text);
}

/* ---- the heap ---- */

static bool is_earlier(const struct sim_walk_thread *a, const struct sim_walk_thread *b) {
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void sim_walk_push(struct sim_walk *w, struct sim_walk_thread *t) {
    uint32_t i = w->n_heap++;
    for (; i > 0 && is_earlier(t, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = t;
}

struct sim_walk_thread *sim_walk_pop(struct sim_walk *w) {
    struct sim_walk_thread *first = w->heap[0], *last = w->heap[--w->n_heap];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && is_earlier(w->heap[child + 1], w->heap[child]))
            child++;
        if (!is_earlier(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return first;
}

/* ---- objects ---- */

struct sim_walk_object *sim_walk_object(struct sim_walk *w, uint32_t number) {
    struct sim_walk_page **page =
        number / SIM_WALK_PAGE_OBJECTS < w->n_pages ? &w->pages[number / SIM_WALK_PAGE_OBJECTS] : NULL;
    if (page == NULL || *page == &forgotten)
        return NULL;
    if (*page == NULL && (*page = calloc(1, sizeof **page)) == NULL) {
        sim_walk_fail(w, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    return &(*page)->objects[number % SIM_WALK_PAGE_OBJECTS];
}

static void free_page(struct sim_walk_page *page) {
    if (page == NULL || page == &forgotten)
        return;
    for (uint32_t i = 0; i < SIM_WALK_PAGE_OBJECTS; i++)
        free(page->objects[i].signals.window);
    free(page);
}

void sim_walk_destroyed(struct sim_walk *w, uint32_t number) {
    if (sim_walk_object(w, number) == NULL)
        return;
    struct sim_walk_page **page = &w->pages[number / SIM_WALK_PAGE_OBJECTS];
    if (++(*page)->n_destroyed >= SIM_WALK_PAGE_OBJECTS && (*page)->n_waiting == 0) {
        free_page(*page);
        *page = &forgotten;
    }
}

void sim_walk_free_pages(struct sim_walk *w) {
    for (uint32_t i = 0; w->pages != NULL && i < w->n_pages; i++)
        free_page(w->pages[i]);
    free(w->pages);
}

/* ---- waits ---- */

void sim_walk_wait_in(struct sim_walk_list *list, struct sim_walk_page *page, struct sim_walk_thread *t) {
    t->in = list;
    t->page = page;
    if (page != NULL)
        page->n_waiting++;
    sim_walk_append(list, t);
}

void sim_walk_wait_for(struct sim_walk *w, struct sim_walk_thread *t, uint32_t object, struct sim_walk_list *list) {
    sim_walk_wait_in(list, w->pages[object / SIM_WALK_PAGE_OBJECTS], t);
}

void sim_walk_go_on(struct sim_walk *w, struct sim_walk_thread *t, uint64_t at) {
    struct sbt_trace_event *e = &t->event;
    if (t->page != NULL)
        t->page->n_waiting--;
    t->in = NULL;
    t->at = sim_walk_later(t->at, at);
    bool relocks = e->op == SBT_TRACE_COND_WAIT && w->recorded_order && e->relock != 0;
    *e = (struct sbt_trace_event){.op = relocks ? SBT_TRACE_MUTEX_LOCK : SBT_TRACE_N_OPS, /* it has been made */
                                  .object = e->other,
                                  .order = e->relock};
    sim_walk_push(w, t);
}

/*
 * Waits by polling or looking are no work: how long they last depends on the machine. (On the paper's they are
 * replayed as recorded; a bound that is too low is one all the same.)
 */
static void leave_out_polls(struct sim_walk_thread *t, const struct sbt_trace_event *before) {
    if (t->event.op != SBT_TRACE_MUTEX_TRYLOCK || sim_polling_goes_on(before, &t->event))
        return;
    if (sim_polling_ahead(&t->cursor, before, &t->event).condition != SBT_TRACE_NONE)
        t->event.work_ns = 0;
}

/* ---- a thread's way to its next event that may bind ---- */

static bool may_bind(const struct sim_walk *w, const struct sbt_trace_event *e) {
    bool good = e->result == 0 || e->result == EOWNERDEAD;
    if (e->op > SBT_TRACE_THREAD_END && e->object == SBT_TRACE_NONE)
        return false;
    switch (e->op) {
    case SBT_TRACE_THREAD_CREATE:
    case SBT_TRACE_THREAD_JOIN:
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
    case SBT_TRACE_SEM_POST:
    case SBT_TRACE_DESTROY:
        return e->result == 0;
    case SBT_TRACE_THREAD_END:
        return true;
    case SBT_TRACE_INIT:
        return e->type == SBT_TRACE_BARRIER || e->type == SBT_TRACE_SEM;
    case SBT_TRACE_COND_WAIT:
        return (e->order != 0 && good) || (w->recorded_order && e->other != SBT_TRACE_NONE && e->relock != 0);
    case SBT_TRACE_BARRIER_WAIT:
        return good;
    case SBT_TRACE_FUTEX_WAIT:
        return e->order != 0 && (good || e->result == EAGAIN);
    case SBT_TRACE_FUTEX_WAKE:
        return true;
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SEM_TRYWAIT:
        return good && (e->order != 0 || e->size != 0);
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_MUTEX_TRYLOCK:
    case SBT_TRACE_MUTEX_UNLOCK:
        return w->recorded_order && good;
    default:
        return false;
    }
}

uint64_t sim_walk_lasts(const struct sim_walk *w, const struct sbt_trace_event *e) {
    if (e->op == SBT_TRACE_OUTSIDE_WAIT)
        return w->without_outside ? 0 : e->took_ns;
    bool unknown = e->op > SBT_TRACE_THREAD_END && e->object == SBT_TRACE_NONE;
    return e->result == ETIMEDOUT || unknown ? e->took_ns : 0;
}

void sim_walk_end(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_list joiners = w->joiners[t->number];
    w->state[t->number] = SIM_WALK_ENDED;
    w->ended_at[t->number] = t->at;
    w->bounds.path_ns = sim_walk_later(w->bounds.path_ns, t->at);
    w->threads[t->number] = NULL;
    w->joiners[t->number] = (struct sim_walk_list){0};
    for (struct sim_walk_thread *j; (j = sim_walk_shift(&joiners)) != NULL;)
        sim_walk_go_on(w, j, t->at);
    free(t);
}

void sim_walk_advance(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sbt_trace_event before = t->event;
    struct sbt_trace_error damage;
    int r;
    while ((r = sbt_trace_next(&t->cursor, &t->event, &damage)) > 0 && !sbt_trace_still_runs(&t->event)) {
        if ((t->event.work_ns | t->event.took_ns | t->at) > LONGEST) {
            char text[80];
            snprintf(text, sizeof text, "thread %u %s for more than a hundred years", t->number,
                     t->event.took_ns > LONGEST ? "waits" : "works");
            sim_walk_fail(w, SIM_DAMAGED, text);
            return;
        }
        leave_out_polls(t, &before);
        before = t->event;
        t->at += t->event.work_ns;
        w->bounds.work_ns += t->event.work_ns;
        if (may_bind(w, &t->event)) {
            sim_walk_push(w, t);
            return;
        }
        t->at += sim_walk_lasts(w, &t->event);
    }
    if (r < 0) {
        char text[sizeof damage.reason + 40];
        snprintf(text, sizeof text, "at byte %ju: %s", (uintmax_t)damage.offset, damage.reason);
        sim_walk_fail(w, SIM_DAMAGED, text);
        return;
    }
    sim_walk_end(w, t);
}

void sim_walk_begin(struct sim_walk *w, uint32_t number, uint64_t at) {
    struct sim_walk_thread *t = calloc(1, sizeof *t);
    if (t == NULL) {
        sim_walk_fail(w, SIM_NO_MEMORY, "out of memory");
        return;
    }
    t->number = number;
    t->at = at;
    w->state[number] = SIM_WALK_ALIVE;
    w->threads[number] = t;
    sbt_trace_cursor_begin(w->trace, number, &t->cursor);
    sim_walk_advance(w, t);
}
