/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of a walk through a trace, and how its threads wait, go on and come to their next event that may bind.
 * survey.c says what the walk is for. survey_event.c has what the events do.
 */
#ifndef SIM_SURVEY_WALK_H
#define SIM_SURVEY_WALK_H

#include "earliest.h"
#include "ranges.h"
#include "signal_set.h"
#include "sim.h"

enum { SIM_WALK_PAGE_OBJECTS = 64 };

struct sim_walk_thread;
struct sim_walk_page;
struct sim_walk_list {
    struct sim_walk_thread *first, *last;
};

struct sim_walk_thread {
    struct sim_walk_thread *next; /* the next thread in its list */
    struct sim_walk_list *in;     /* the list in which it waits; NULL: it does not wait */
    struct sim_walk_page *page;   /* of the object that it waits for; NULL: it waits for a thread */
    uint64_t at;                  /* its time, before the event */
    uint32_t number;
    struct sbt_trace_event event;
    struct sbt_trace_cursor cursor;
};

struct sim_walk_object {
    struct sim_walk_list waiting;
    struct sim_signal_set signals; /* of a condition */
    uint64_t n_posts;              /* of a semaphore */
    uint64_t n_waits;              /* of `waiter`: how many posts it has taken, or is waiting for */
    uint64_t n_acquired;           /* of a mutex, recorded order */
    uint32_t owner;                /* of a mutex: a thread, and 1 */
    uint32_t n_inside;             /* of a mutex: its owner's depth; of a barrier: the threads that have come */
    uint32_t size;                 /* of a barrier; of a semaphore: its initial value */
    uint32_t waiter;               /* of a semaphore: the first thread that has waited, and 1 */
    uint32_t broadcasts;           /* of a condition: sim_ranges_add's */
    bool known;                    /* the size */
};

struct sim_walk_page {
    uint32_t n_destroyed, n_waiting;
    struct sim_walk_object objects[SIM_WALK_PAGE_OBJECTS];
};

enum sim_walk_state { SIM_WALK_UNBORN, SIM_WALK_ALIVE, SIM_WALK_ENDED };

struct sim_walk {
    const struct sbt_trace *trace;
    const char *name;
    bool recorded_order, without_outside;
    uint32_t n_threads, n_pages;
    struct sim_walk_thread **threads; /* by number; NULL: not alive */
    uint8_t *state;                   /* by number */
    uint64_t *ended_at;               /* by number */
    struct sim_walk_list *joiners;    /* by number */
    struct sim_walk_page **pages;
    struct sim_walk_thread **heap; /* the threads that can go on; the first has the least time */
    uint32_t n_heap;
    enum sim_status status;
    struct sim_error *error;
    struct sim_bounds bounds; /* what the walk finds: see survey.h */
    uint64_t *begins;
    struct sim_ranges broadcasts;
    struct sim_earliest earliest;
};

/* End the walk with a failure. The first reason stays. */
void sim_walk_fail(struct sim_walk *w, enum sim_status status, const char *text);

static inline uint64_t sim_walk_later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline void sim_walk_append(struct sim_walk_list *list, struct sim_walk_thread *t) {
    t->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = t;
    list->last = t;
}

static inline struct sim_walk_thread *sim_walk_shift(struct sim_walk_list *list) {
    struct sim_walk_thread *t = list->first;
    if (t != NULL && (list->first = t->next) == NULL)
        list->last = NULL;
    return t;
}

/* The thread can go on: make its event when it has the least time. */
void sim_walk_push(struct sim_walk *w, struct sim_walk_thread *t);
struct sim_walk_thread *sim_walk_pop(struct sim_walk *w);

/* NULL: what the object was is forgotten, or the walk has failed; then no wait for it binds. */
struct sim_walk_object *sim_walk_object(struct sim_walk *w, uint32_t number);
/* The object is destroyed. A page with all its objects destroyed, for which no thread waits, is forgotten. */
void sim_walk_destroyed(struct sim_walk *w, uint32_t number);
void sim_walk_free_pages(struct sim_walk *w);

/* The thread waits in a list: of an object, or (page NULL) of the threads that join another. */
void sim_walk_wait_in(struct sim_walk_list *list, struct sim_walk_page *page, struct sim_walk_thread *t);
void sim_walk_wait_for(struct sim_walk *w, struct sim_walk_thread *t, uint32_t object, struct sim_walk_list *list);
/*
 * The wait is over, and the thread out of its list: it goes on, not before `at`. In the recorded order a condition's
 * waiter then acquires its mutex.
 */
void sim_walk_go_on(struct sim_walk *w, struct sim_walk_thread *t, uint64_t at);

/* How long a call lasts here: as long as it did if it waited for the outside, or timed out, or if the trace does not
 * say what it waited for. */
uint64_t sim_walk_lasts(const struct sim_walk *w, const struct sbt_trace_event *e);
/* The thread begins; goes from its event on to the next one that may bind; ends. */
void sim_walk_begin(struct sim_walk *w, uint32_t number, uint64_t at);
void sim_walk_advance(struct sim_walk *w, struct sim_walk_thread *t);
void sim_walk_end(struct sim_walk *w, struct sim_walk_thread *t);

#endif
