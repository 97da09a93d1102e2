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

#include <errno.h>
#include <stdlib.h>

#include "signal_set.h"

enum { PAGE_OBJECTS = 64 };
/* Times and lengths are below this, as in a replay (return.h). */
#define LONGEST (UINT64_MAX / 4)

struct thread;
struct list {
    struct thread *first, *last;
};

struct thread {
    struct thread *next; /* the next thread in its list */
    struct list *in;     /* the list in which it waits; NULL: it does not wait */
    struct page *page;   /* of the object that it waits for; NULL: it waits for a thread */
    uint64_t at;         /* its time, before the event */
    uint32_t number;
    struct sbt_trace_event event;
    struct sbt_trace_cursor cursor;
};

struct object {
    struct list waiting;
    struct sim_signal_set signals; /* of a condition */
    uint64_t n_posts;              /* of a semaphore */
    uint64_t n_waits;              /* of `waiter`: how many posts it has taken, or is waiting for */
    uint64_t n_acquired;           /* of a mutex, recorded order */
    uint32_t owner;                /* of a mutex: a thread, and 1 */
    uint32_t n_inside;             /* of a mutex: its owner's depth; of a barrier: the threads that have come */
    uint32_t size;                 /* of a barrier; of a semaphore: its initial value */
    uint32_t waiter;               /* of a semaphore: the first thread that has waited, and 1 */
    bool known;                    /* the size */
};

struct page {
    uint32_t n_destroyed, n_waiting;
    struct object objects[PAGE_OBJECTS];
};

static struct page forgotten; /* in the place of a page with all its objects destroyed */

enum state { UNBORN, ALIVE, ENDED };

struct walk {
    const struct sbt_trace *trace;
    const char *name;
    struct sim_survey *survey;
    bool recorded_order;
    uint32_t n_threads, n_pages;
    struct thread **threads; /* by number; NULL: not alive */
    uint8_t *state;          /* by number */
    uint64_t *ended_at;      /* by number */
    struct list *joiners;    /* by number */
    struct page **pages;
    struct thread **heap; /* the threads that can go on; the first has the least time */
    uint32_t n_heap;
    enum sim_status status;
    struct sim_error *error;
};

static void fail(struct walk *w, enum sim_status status, const char *text) {
    if (w->status != SIM_OK)
        return;
    w->status = status;
    snprintf(w->error->text, sizeof w->error->text, "%s%s%s", status == SIM_DAMAGED ? w->name : "",
             status == SIM_DAMAGED ? ": " : "", text);
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- lists and the heap ---- */

static void append(struct list *list, struct thread *t) {
    t->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = t;
    list->last = t;
}

static struct thread *shift(struct list *list) {
    struct thread *t = list->first;
    if (t != NULL && (list->first = t->next) == NULL)
        list->last = NULL;
    return t;
}

static bool is_earlier(const struct thread *a, const struct thread *b) {
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void push(struct walk *w, struct thread *t) {
    uint32_t i = w->n_heap++;
    for (; i > 0 && is_earlier(t, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = t;
}

static struct thread *pop(struct walk *w) {
    struct thread *first = w->heap[0], *last = w->heap[--w->n_heap];
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

/* NULL: what the object was is forgotten, or the walk has failed; then no wait for it binds. */
static struct object *object_of(struct walk *w, uint32_t number) {
    struct page **page = number / PAGE_OBJECTS < w->n_pages ? &w->pages[number / PAGE_OBJECTS] : NULL;
    if (page == NULL || *page == &forgotten)
        return NULL;
    if (*page == NULL && (*page = calloc(1, sizeof **page)) == NULL) {
        fail(w, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    return &(*page)->objects[number % PAGE_OBJECTS];
}

static void free_page(struct page *page) {
    if (page == NULL || page == &forgotten)
        return;
    for (uint32_t i = 0; i < PAGE_OBJECTS; i++)
        free(page->objects[i].signals.window);
    free(page);
}

static void wait_in(struct list *list, struct page *page, struct thread *t) {
    t->in = list;
    t->page = page;
    if (page != NULL)
        page->n_waiting++;
    append(list, t);
}

static void wait_for(struct walk *w, struct thread *t, uint32_t object, struct list *list) {
    wait_in(list, w->pages[object / PAGE_OBJECTS], t);
}

/*
 * The wait is over, and the thread out of its list: it goes on, not before `at`. In the recorded order a condition's
 * waiter then acquires its mutex.
 */
static void go_on(struct walk *w, struct thread *t, uint64_t at) {
    struct sbt_trace_event *e = &t->event;
    if (t->page != NULL)
        t->page->n_waiting--;
    t->in = NULL;
    t->at = later(t->at, at);
    bool relocks = e->op == SBT_TRACE_COND_WAIT && w->recorded_order && e->relock != 0;
    *e = (struct sbt_trace_event){.op = relocks ? SBT_TRACE_MUTEX_LOCK : SBT_TRACE_N_OPS, /* it has been made */
                                  .object = e->other,
                                  .order = e->relock};
    push(w, t);
}

/* ---- a thread's way to its next event that may bind ---- */

static bool may_bind(const struct walk *w, const struct sbt_trace_event *e) {
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

/* Calls that last as long as they did: those that timed out, and waits of which the trace does not say for what. */
static uint64_t lasts(const struct sbt_trace_event *e) {
    bool unknown = e->op > SBT_TRACE_THREAD_END && e->object == SBT_TRACE_NONE;
    return e->result == ETIMEDOUT || unknown ? e->took_ns : 0;
}

static void end(struct walk *w, struct thread *t) {
    struct list joiners = w->joiners[t->number];
    w->state[t->number] = ENDED;
    w->ended_at[t->number] = t->at;
    w->survey->bounds.path_ns = later(w->survey->bounds.path_ns, t->at);
    w->threads[t->number] = NULL;
    w->joiners[t->number] = (struct list){0};
    for (struct thread *j; (j = shift(&joiners)) != NULL;)
        go_on(w, j, t->at);
    free(t);
}

static void advance(struct walk *w, struct thread *t) {
    struct sbt_trace_error damage;
    int r;
    while ((r = sbt_trace_next(&t->cursor, &t->event, &damage)) > 0) {
        if ((t->event.work_ns | t->event.took_ns | t->at) > LONGEST) {
            char text[80];
            snprintf(text, sizeof text, "thread %u %s for more than a hundred years", t->number,
                     t->event.took_ns > LONGEST ? "waits" : "works");
            fail(w, SIM_DAMAGED, text);
            return;
        }
        t->at += t->event.work_ns;
        w->survey->bounds.work_ns += t->event.work_ns;
        if (may_bind(w, &t->event)) {
            push(w, t);
            return;
        }
        t->at += lasts(&t->event);
    }
    if (r < 0) {
        char text[sizeof damage.reason + 40];
        snprintf(text, sizeof text, "at byte %ju: %s", (uintmax_t)damage.offset, damage.reason);
        fail(w, SIM_DAMAGED, text);
        return;
    }
    end(w, t);
}

static void begin(struct walk *w, uint32_t number, uint64_t at) {
    struct thread *t = calloc(1, sizeof *t);
    if (t == NULL) {
        fail(w, SIM_NO_MEMORY, "out of memory");
        return;
    }
    t->number = number;
    t->at = at;
    w->state[number] = ALIVE;
    w->threads[number] = t;
    sbt_trace_cursor_begin(w->trace, number, &t->cursor);
    advance(w, t);
}

/* ---- events ---- */

static void join(struct walk *w, struct thread *t) {
    uint32_t other = t->event.other;
    if (other >= w->n_threads) {
        t->at += t->event.took_ns;
    } else if (w->state[other] != ENDED) {
        wait_in(&w->joiners[other], NULL, t);
        return;
    } else {
        t->at = later(t->at, w->ended_at[other]);
    }
    advance(w, t);
}

static void signal(struct walk *w, struct thread *t) {
    struct object *c = object_of(w, t->event.object);
    if (c != NULL && t->event.order != 0) {
        struct list waiting = c->waiting;
        enum sim_signal_added added = sim_signal_set_add(&c->signals, t->event.order);
        if (added == SIM_SIGNAL_NO_MEMORY)
            fail(w, SIM_NO_MEMORY, "out of memory");
        if (added == SIM_SIGNAL_TOO_FAR)
            fail(w, SIM_DAMAGED, "the numbers of a condition's signals make no sense");
        c->waiting = (struct list){0};
        for (struct thread *o; (o = shift(&waiting)) != NULL;)
            if (sim_signal_set_has(&c->signals, o->event.order))
                go_on(w, o, t->at);
            else
                append(&c->waiting, o);
    }
    advance(w, t);
}

/* ---- mutexes, in the recorded order ---- */

static void acquired(struct object *m, const struct thread *t) {
    m->n_acquired = later(m->n_acquired, t->event.order);
    m->owner = t->number + 1;
    m->n_inside = 1;
}

/* The mutex is free: the acquisition that comes next, if its thread is there. */
static void acquire_next(struct walk *w, struct object *m, uint64_t at) {
    struct list waiting = m->waiting;
    struct thread *next = NULL;
    m->waiting = (struct list){0};
    for (struct thread *t; (t = shift(&waiting)) != NULL;)
        if (next == NULL && t->event.order <= m->n_acquired + 1)
            next = t;
        else
            append(&m->waiting, t);
    if (next == NULL)
        return;
    acquired(m, next);
    go_on(w, next, at);
}

static void lock(struct walk *w, struct thread *t) {
    struct object *m = object_of(w, t->event.object);
    if (m != NULL && m->owner == t->number + 1)
        m->n_inside++;
    if (m == NULL || t->event.order == 0 || m->owner == t->number + 1) {
        advance(w, t);
        return;
    }
    wait_for(w, t, t->event.object, &m->waiting);
    if (m->owner == 0)
        acquire_next(w, m, t->at);
}

static void release(struct walk *w, struct object *m, uint64_t at) {
    if (m == NULL || m->owner == 0 || --m->n_inside > 0)
        return;
    m->owner = 0;
    acquire_next(w, m, at);
}

/* ---- events on objects ---- */

static void wait_signal(struct walk *w, struct thread *t) {
    struct object *c = object_of(w, t->event.object);
    uint64_t order = t->event.result == 0 || t->event.result == EOWNERDEAD ? t->event.order : 0;
    struct object *m = w->recorded_order && t->event.other != SBT_TRACE_NONE ? object_of(w, t->event.other) : NULL;
    if (m == NULL || m->owner != t->number + 1)
        t->event.relock = 0;
    else
        release(w, m, t->at);
    if (c != NULL && order != 0 && !sim_signal_set_has(&c->signals, order)) {
        wait_for(w, t, t->event.object, &c->waiting);
        return;
    }
    t->at += lasts(&t->event);
    t->page = NULL;
    go_on(w, t, t->at);
}

static void arrive(struct walk *w, struct thread *t) {
    struct object *b = object_of(w, t->event.object);
    if (b != NULL && !b->known && t->event.size != 0) {
        b->known = true;
        b->size = t->event.size;
    }
    if (b == NULL || !b->known || b->size == 0) {
        t->at += b == NULL ? 0 : t->event.took_ns;
        advance(w, t);
        return;
    }
    wait_for(w, t, t->event.object, &b->waiting);
    if (++b->n_inside < b->size)
        return;
    struct list waiting = b->waiting;
    uint64_t at = t->at;
    b->waiting = (struct list){0};
    b->n_inside = 0;
    for (const struct thread *o = waiting.first; o != NULL; o = o->next)
        at = later(at, o->at);
    for (struct thread *o; (o = shift(&waiting)) != NULL;)
        go_on(w, o, at);
}

static void wait_post(struct walk *w, struct thread *t) {
    struct object *s = object_of(w, t->event.object);
    if (s != NULL && !s->known && t->event.size != 0) {
        s->known = true;
        s->size = t->event.size;
    }
    if (s != NULL && s->waiter == 0)
        s->waiter = t->number + 1;
    if (s == NULL || t->event.order == 0 || s->waiter != t->number + 1 || ++s->n_waits <= s->size + s->n_posts ||
        !s->known) {
        advance(w, t);
        return;
    }
    wait_for(w, t, t->event.object, &s->waiting);
}

static void post(struct walk *w, struct thread *t) {
    struct object *s = object_of(w, t->event.object);
    if (s != NULL && ++s->n_posts + s->size >= s->n_waits && s->waiting.first != NULL)
        go_on(w, shift(&s->waiting), t->at);
    advance(w, t);
}

static void init(struct walk *w, struct thread *t) {
    struct object *o = object_of(w, t->event.object);
    if (o != NULL && (!o->known || t->event.type == SBT_TRACE_BARRIER)) {
        o->known = true;
        o->size = t->event.size;
    }
    advance(w, t);
}

static void destroy(struct walk *w, struct thread *t) {
    uint32_t number = t->event.object;
    if (object_of(w, number) != NULL) {
        struct page **page = &w->pages[number / PAGE_OBJECTS];
        if (++(*page)->n_destroyed >= PAGE_OBJECTS && (*page)->n_waiting == 0) {
            free_page(*page);
            *page = &forgotten;
        }
    }
    advance(w, t);
}

static void make(struct walk *w, struct thread *t) {
    uint32_t other = t->event.other;
    switch (t->event.op) {
    case SBT_TRACE_THREAD_CREATE:
        if (other < w->n_threads && w->state[other] == UNBORN)
            begin(w, other, t->at);
        else if (other < w->n_threads && other != 0) /* it began without a creation, and there is one */
            w->survey->begins[other] = UINT64_MAX;
        advance(w, t);
        break;
    case SBT_TRACE_THREAD_JOIN:
        join(w, t);
        break;
    case SBT_TRACE_THREAD_END:
        end(w, t);
        break;
    case SBT_TRACE_INIT:
        init(w, t);
        break;
    case SBT_TRACE_DESTROY:
        destroy(w, t);
        break;
    case SBT_TRACE_COND_WAIT:
        wait_signal(w, t);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
        signal(w, t);
        break;
    case SBT_TRACE_BARRIER_WAIT:
        arrive(w, t);
        break;
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SEM_TRYWAIT:
        wait_post(w, t);
        break;
    case SBT_TRACE_SEM_POST:
        post(w, t);
        break;
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_MUTEX_TRYLOCK:
        lock(w, t);
        break;
    case SBT_TRACE_MUTEX_UNLOCK:
        release(w, object_of(w, t->event.object), t->at);
        advance(w, t);
        break;
    default: /* its wait is over */
        advance(w, t);
    }
}

/* ---- when no thread can go on ---- */

/* Threads that do something, and that no event has created. */
static bool begin_unborn(struct walk *w) {
    bool any = false;
    for (uint32_t i = 0; i < w->n_threads; i++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event first;
        struct sbt_trace_error damage;
        sbt_trace_cursor_begin(w->trace, i, &cursor);
        if (w->state[i] != UNBORN || sbt_trace_next(&cursor, &first, &damage) == 0)
            continue;
        w->survey->begins[i] = first.at_ns > first.work_ns ? first.at_ns - first.work_ns : 0;
        begin(w, i, w->survey->begins[i]);
        any = true;
    }
    return any;
}

static bool ended_before(const struct thread *a, const struct thread *b) {
    return a->event.at_ns + a->event.took_ns < b->event.at_ns + b->event.took_ns;
}

static void take_out(struct thread *t) {
    struct list all = *t->in;
    *t->in = (struct list){0};
    for (struct thread *o; (o = shift(&all)) != NULL;)
        if (o != t)
            append(t->in, o);
}

/* The wait that ended first in the trace binds no more, as in a replay (replay_pass.c). */
static bool pass(struct walk *w) {
    struct thread *t = NULL;
    uint64_t at = 0;
    for (uint32_t i = 0; i < w->n_threads; i++)
        if (w->threads[i] != NULL && w->threads[i]->in != NULL && (t == NULL || ended_before(w->threads[i], t)))
            t = w->threads[i];
    if (t == NULL)
        return false;
    take_out(t);
    struct object *o = t->page != NULL ? object_of(w, t->event.object) : NULL;
    if (o != NULL && t->event.op == SBT_TRACE_BARRIER_WAIT)
        o->n_inside--;
    if (o != NULL && (t->event.op == SBT_TRACE_SEM_WAIT || t->event.op == SBT_TRACE_SEM_TRYWAIT))
        o->n_waits--;
    if (o != NULL && (t->event.op == SBT_TRACE_MUTEX_LOCK || t->event.op == SBT_TRACE_MUTEX_TRYLOCK)) {
        at = o->owner != 0 && w->state[o->owner - 1] == ENDED ? w->ended_at[o->owner - 1] : 0;
        acquired(o, t);
    }
    go_on(w, t, at);
    return true;
}

/* ---- the walk ---- */

static void walk(struct walk *w) {
    bool unborn = true;
    begin(w, 0, 0);
    for (;;) {
        while (w->n_heap > 0 && w->status == SIM_OK)
            make(w, pop(w));
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

static bool get_memory(struct walk *w, uint32_t n_objects) {
    size_t n = w->n_threads;
    w->n_pages = (uint32_t)(((uint64_t)n_objects + PAGE_OBJECTS - 1) / PAGE_OBJECTS);
    w->threads = calloc(n, sizeof(struct thread *));
    w->heap = calloc(n, sizeof(struct thread *));
    w->state = calloc(n, sizeof *w->state);
    w->ended_at = calloc(n, sizeof *w->ended_at);
    w->joiners = calloc(n, sizeof *w->joiners);
    w->pages = calloc(w->n_pages + (size_t)1, sizeof(struct page *));
    w->survey = calloc(1, sizeof *w->survey);
    if (w->survey != NULL)
        w->survey->begins = malloc(n * sizeof *w->survey->begins);
    return w->threads != NULL && w->heap != NULL && w->state != NULL && w->ended_at != NULL && w->joiners != NULL &&
           w->pages != NULL && w->survey != NULL && w->survey->begins != NULL;
}

static void free_memory(struct walk *w) {
    for (uint32_t i = 0; w->threads != NULL && i < w->n_threads; i++)
        free(w->threads[i]);
    for (uint32_t i = 0; w->pages != NULL && i < w->n_pages; i++)
        free_page(w->pages[i]);
    free(w->threads);
    free(w->heap);
    free(w->state);
    free(w->ended_at);
    free(w->joiners);
    free(w->pages);
}

struct sim_survey *sim_survey_new(const struct sbt_trace *trace, const char *name, bool recorded_order,
                                  enum sim_status *status, struct sim_error *error) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct walk w = {
        .trace = trace, .name = name, .recorded_order = recorded_order, .n_threads = info->n_threads, .error = error};
    if (w.n_threads == 0)
        fail(&w, SIM_USAGE, "an empty trace");
    else if (!get_memory(&w, info->n_objects))
        fail(&w, SIM_NO_MEMORY, "out of memory");
    if (w.status == SIM_OK) {
        for (uint32_t i = 0; i < w.n_threads; i++)
            w.survey->begins[i] = UINT64_MAX;
        walk(&w);
    }
    free_memory(&w);
    *status = w.status;
    if (w.status == SIM_OK)
        return w.survey;
    sim_survey_free(w.survey);
    return NULL;
}

struct sim_bounds sim_survey_bounds(const struct sim_survey *survey) {
    return survey->bounds;
}

void sim_survey_free(struct sim_survey *survey) {
    if (survey != NULL)
        free(survey->begins);
    free(survey);
}
