/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "survey_event.h"

#include <errno.h>

/* ---- threads and conditions ---- */

static void join(struct sim_walk *w, struct sim_walk_thread *t) {
    uint32_t other = t->event.other;
    if (other >= w->n_threads) {
        t->at += t->event.took_ns;
    } else if (w->state[other] != SIM_WALK_ENDED) {
        sim_walk_wait_in(&w->joiners[other], NULL, t);
        return;
    } else {
        t->at = sim_walk_later(t->at, w->ended_at[other]);
    }
    sim_walk_advance(w, t);
}

/* The signal binds the waiter, which came before it. */
static void end_wait(struct sim_walk *w, struct sim_walk_thread *waiter, const struct sim_walk_thread *signaller) {
    if (signaller->event.op == SBT_TRACE_COND_SIGNAL &&
        !sim_earliest_put(&w->earliest, waiter->event.object, waiter->event.order, signaller->at))
        sim_walk_fail(w, SIM_NO_MEMORY, "out of memory");
    sim_walk_go_on(w, waiter, signaller->at);
}

static void signal(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *c = sim_walk_object(w, t->event.object);
    if (c != NULL && t->event.order != 0) {
        struct sim_walk_list waiting = c->waiting;
        enum sim_signal_added added = sim_signal_set_add(&c->signals, t->event.order);
        if (added == SIM_SIGNAL_NO_MEMORY)
            sim_walk_fail(w, SIM_NO_MEMORY, "out of memory");
        if (added == SIM_SIGNAL_TOO_FAR)
            sim_walk_fail(w, SIM_DAMAGED, "the numbers of a condition's signals make no sense");
        if (t->event.op == SBT_TRACE_COND_BROADCAST &&
            !sim_ranges_add(&w->broadcasts, t->event.object, t->event.order, &c->broadcasts))
            sim_walk_fail(w, SIM_NO_MEMORY, "out of memory");
        c->waiting = (struct sim_walk_list){0};
        for (struct sim_walk_thread *o; (o = sim_walk_shift(&waiting)) != NULL;)
            if (sim_signal_set_has(&c->signals, o->event.order))
                end_wait(w, o, t);
            else
                sim_walk_append(&c->waiting, o);
    }
    sim_walk_advance(w, t);
}

/* ---- mutexes, in the recorded order ---- */

void sim_walk_acquired(struct sim_walk_object *m, const struct sim_walk_thread *t) {
    m->n_acquired = sim_walk_later(m->n_acquired, t->event.order);
    m->owner = t->number + 1;
    m->n_inside = 1;
}

/* The mutex is free: the acquisition that comes next, if its thread is there. */
static void acquire_next(struct sim_walk *w, struct sim_walk_object *m, uint64_t at) {
    struct sim_walk_list waiting = m->waiting;
    struct sim_walk_thread *next = NULL;
    m->waiting = (struct sim_walk_list){0};
    for (struct sim_walk_thread *t; (t = sim_walk_shift(&waiting)) != NULL;)
        if (next == NULL && t->event.order <= m->n_acquired + 1)
            next = t;
        else
            sim_walk_append(&m->waiting, t);
    if (next == NULL)
        return;
    sim_walk_acquired(m, next);
    sim_walk_go_on(w, next, at);
}

static void lock(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *m = sim_walk_object(w, t->event.object);
    if (m != NULL && m->owner == t->number + 1)
        m->n_inside++;
    if (m == NULL || t->event.order == 0 || m->owner == t->number + 1) {
        sim_walk_advance(w, t);
        return;
    }
    sim_walk_wait_for(w, t, t->event.object, &m->waiting);
    if (m->owner == 0)
        acquire_next(w, m, t->at);
}

static void release(struct sim_walk *w, struct sim_walk_object *m, uint64_t at) {
    if (m == NULL || m->owner == 0 || --m->n_inside > 0)
        return;
    m->owner = 0;
    acquire_next(w, m, at);
}

/* ---- events on objects ---- */

static void wait_signal(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *c = sim_walk_object(w, t->event.object);
    uint64_t order = t->event.result == 0 || t->event.result == EOWNERDEAD || t->event.op == SBT_TRACE_FUTEX_WAIT
                         ? t->event.order
                         : 0;
    struct sim_walk_object *m =
        w->recorded_order && t->event.other != SBT_TRACE_NONE ? sim_walk_object(w, t->event.other) : NULL;
    if (m == NULL || m->owner != t->number + 1)
        t->event.relock = 0;
    else
        release(w, m, t->at);
    if (c != NULL && order != 0 && !sim_signal_set_has(&c->signals, order)) {
        sim_walk_wait_for(w, t, t->event.object, &c->waiting);
        return;
    }
    t->at += sim_walk_lasts(w, &t->event);
    t->page = NULL;
    sim_walk_go_on(w, t, t->at);
}

static void arrive(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *b = sim_walk_object(w, t->event.object);
    if (b != NULL && !b->known && t->event.size != 0) {
        b->known = true;
        b->size = t->event.size;
    }
    if (b == NULL || !b->known || b->size == 0) {
        t->at += b == NULL ? 0 : t->event.took_ns;
        sim_walk_advance(w, t);
        return;
    }
    sim_walk_wait_for(w, t, t->event.object, &b->waiting);
    if (++b->n_inside < b->size)
        return;
    struct sim_walk_list waiting = b->waiting;
    uint64_t at = t->at;
    b->waiting = (struct sim_walk_list){0};
    b->n_inside = 0;
    for (const struct sim_walk_thread *o = waiting.first; o != NULL; o = o->next)
        at = sim_walk_later(at, o->at);
    for (struct sim_walk_thread *o; (o = sim_walk_shift(&waiting)) != NULL;)
        sim_walk_go_on(w, o, at);
}

static void wait_post(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *s = sim_walk_object(w, t->event.object);
    if (s != NULL && !s->known && t->event.size != 0) {
        s->known = true;
        s->size = t->event.size;
    }
    if (s != NULL && s->waiter == 0)
        s->waiter = t->number + 1;
    if (s == NULL || t->event.order == 0 || s->waiter != t->number + 1 || ++s->n_waits <= s->size + s->n_posts ||
        !s->known) {
        sim_walk_advance(w, t);
        return;
    }
    sim_walk_wait_for(w, t, t->event.object, &s->waiting);
}

static void post(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *s = sim_walk_object(w, t->event.object);
    if (s != NULL && ++s->n_posts + s->size >= s->n_waits && s->waiting.first != NULL)
        sim_walk_go_on(w, sim_walk_shift(&s->waiting), t->at);
    sim_walk_advance(w, t);
}

static void init(struct sim_walk *w, struct sim_walk_thread *t) {
    struct sim_walk_object *o = sim_walk_object(w, t->event.object);
    if (o != NULL && (!o->known || t->event.type == SBT_TRACE_BARRIER)) {
        o->known = true;
        o->size = t->event.size;
    }
    sim_walk_advance(w, t);
}

static void destroy(struct sim_walk *w, struct sim_walk_thread *t) {
    sim_walk_destroyed(w, t->event.object);
    sim_walk_advance(w, t);
}

void sim_walk_make(struct sim_walk *w, struct sim_walk_thread *t) {
    uint32_t other = t->event.other;
    switch (t->event.op) {
    case SBT_TRACE_THREAD_CREATE:
        if (other < w->n_threads && w->state[other] == SIM_WALK_UNBORN)
            sim_walk_begin(w, other, t->at);
        else if (other < w->n_threads && other != 0) /* it began without a creation, and there is one */
            w->begins[other] = UINT64_MAX;
        sim_walk_advance(w, t);
        break;
    case SBT_TRACE_THREAD_JOIN:
        join(w, t);
        break;
    case SBT_TRACE_THREAD_END:
        sim_walk_end(w, t);
        break;
    case SBT_TRACE_INIT:
        init(w, t);
        break;
    case SBT_TRACE_DESTROY:
        destroy(w, t);
        break;
    case SBT_TRACE_COND_WAIT:
    case SBT_TRACE_FUTEX_WAIT:
        wait_signal(w, t);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
    case SBT_TRACE_FUTEX_WAKE:
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
        release(w, sim_walk_object(w, t->event.object), t->at);
        sim_walk_advance(w, t);
        break;
    default: /* its wait is over */
        sim_walk_advance(w, t);
    }
}
