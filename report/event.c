/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions, semaphores and futexes: a thread gives (a signal, a post, a wake-up) and another one gets. Which gift
 * ended which wait is in the trace, by numbers; the last REP_SIGNALS gifts of an object are looked at, as many as the
 * recorder looks at.
 */
#include <errno.h>
#include <stdlib.h>

#include "walk.h"

#define FUTILE_WORK_NS 2000

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void rep_give(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_object *o = &w->report->objects[e->object];
    bool broadcast = e->op == SBT_TRACE_COND_BROADCAST || (e->op == SBT_TRACE_FUTEX_WAKE && e->size > 1);
    if (e->op == SBT_TRACE_COND_BROADCAST)
        o->n_broadcasts++;
    else
        o->n_signals++;
    struct rep_signal signal = {
        .number = e->order, .at_ns = e->at_ns, .thread = thread, .site = e->site, .broadcast = broadcast};
    if (rep_gives_permit(w->report, e) && o->counts_holds) {
        rep_profile_release(w, thread, e);
        return;
    }
    if (rep_gives_permit(w->report, e))
        rep_permit_given(w, thread, e, &signal);
    rep_signal_put(w, e->object, signal);
}

void rep_signal_put(struct rep_walk *w, uint32_t object, struct rep_signal signal) {
    struct rep_detail *d = rep_detail_of(w, object);
    struct rep_rings *rings = d != NULL ? d->rings : NULL;
    if (rings == NULL || signal.number == 0)
        return;
    if (rings->signals == NULL && (rings->signals = calloc(REP_SIGNALS, sizeof *rings->signals)) == NULL)
        return;
    rings->signals[signal.number % REP_SIGNALS] = signal;
}

const struct rep_signal *rep_signal_find(struct rep_walk *w, uint32_t object, uint64_t number) {
    struct rep_detail *d = rep_detail_of(w, object);
    if (number == 0 || d == NULL || d->rings == NULL || d->rings->signals == NULL)
        return NULL;
    const struct rep_signal *s = &d->rings->signals[number % REP_SIGNALS];
    return s->number == number ? s : NULL;
}

struct rep_release rep_release_by(const struct rep_signal *s) {
    if (s == NULL)
        return (struct rep_release){.thread = REP_NONE, .site = REP_NONE};
    return (struct rep_release){
        .at_ns = s->at_ns, .since_ns = s->since_ns, .thread = s->thread, .site = s->site, .had_waited = s->had_waited};
}

static void wait_of(struct rep_walk *w, struct rep_waited *wait, const struct sbt_trace_event *e) {
    wait->timed_out = e->result == ETIMEDOUT;
    rep_waited(w, wait);
    if (wait->timed_out && rep_is_held(&w->report->objects[wait->object]))
        rep_timed_out(w, wait, e);
    else
        rep_pair_add(w, wait, wait->by.thread, wait->by.site, wait->to_ns - wait->from_ns);
}

/* ---- conditions ---- */

void rep_cond_begin(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_object *o = &w->report->objects[e->object];
    /* It has not given the mutex back since it was woken. In a profile an unlock need not be an event, but a thread
     * that has had something to do has worked. */
    bool in_vain = t->woken_cond == e->object && (!w->report->info.profile || e->work_ns < FUTILE_WORK_NS);
    if (in_vain) {
        if (t->woken_by_broadcast)
            o->n_futile_broadcast++;
        else
            o->n_futile_signal++;
    }
    t->woken_cond = REP_NONE;
    if (e->other == SBT_TRACE_NONE)
        return;
    o->mutex = e->other;
    if (!w->report->info.profile) /* which has an unlock of its own before the wait, if a thread waited */
        rep_release(w, thread, e->other, e->at_ns, e->at_ns);
}

static void note_woken(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e,
                       const struct rep_signal *s) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_object *o = &w->report->objects[e->object];
    if (s == NULL)
        return;
    t->woken_cond = e->object;
    t->woken_by_broadcast = s->broadcast;
    if (s->broadcast)
        o->n_woken_by_broadcast++;
    else
        o->n_woken_by_signal++;
}

/* Did another thread give the mutex back between the signal and the end of the wait? */
static bool unlocked_between(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, uint64_t from_ns,
                             uint64_t to_ns) {
    struct rep_release last = w->locks[e->other].any;
    if (w->report->info.profile)
        last = rep_release_by(rep_signal_find(w, e->other, e->relock));
    return last.thread != REP_NONE && last.thread != thread && last.at_ns > from_ns && last.at_ns < to_ns;
}

void rep_cond_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    const struct rep_signal *s = rep_signal_find(w, e->object, e->order);
    uint64_t to_ns = e->at_ns + e->took_ns;
    struct rep_waited wait = {.thread = thread,
                              .object = e->object,
                              .site = e->site,
                              .kind = REP_COND,
                              .from_ns = e->at_ns,
                              .to_ns = to_ns,
                              .by = rep_release_by(s)};
    /* Behind the signal it waits for the mutex, if another thread has it then, or else to wake up. */
    bool relocks = s != NULL && e->other != SBT_TRACE_NONE && unlocked_between(w, thread, e, s->at_ns, to_ns);
    if (relocks)
        wait.to_ns = later(e->at_ns, earlier(s->at_ns, to_ns));
    w->report->objects[e->object].n++;
    wait_of(w, &wait, e);
    if (e->other != SBT_TRACE_NONE) /* also if its time was over: it has the mutex again */
        rep_acquire(w, thread, e->other, e, wait.to_ns, true);
    note_woken(w, thread, e, s);
}

/* ---- semaphores and futexes ---- */

void rep_event_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_object *o = &w->report->objects[e->object];
    const struct rep_signal *s = rep_signal_find(w, e->object, e->order);
    struct rep_waited wait = {.thread = thread,
                              .object = e->object,
                              .site = e->site,
                              .stack = e->stack,
                              .kind = rep_kind_of(e->type),
                              .from_ns = e->at_ns,
                              .to_ns = e->at_ns + e->took_ns,
                              .by = rep_release_by(s)};
    if (e->op == SBT_TRACE_FUTEX_WAIT)
        rep_permit_wait_end(w, e);
    bool tried = e->op == SBT_TRACE_SEM_TRYWAIT, refused = e->op == SBT_TRACE_FUTEX_WAIT && e->result == EAGAIN;
    bool blocked = s != NULL ? s->at_ns > e->at_ns : e->took_ns >= 10 * REP_SHORT_NS;
    if (e->result == 0 || !tried)
        o->n++;
    if (e->result != 0)
        o->n_failed++;
    bool waited = !tried && !refused && blocked;
    if (waited)
        wait_of(w, &wait, e);
    else
        rep_not_waited(w, thread, e->object, e->took_ns);
    if (rep_takes_permit(w->report, e))
        rep_permit_got(w, thread, e, waited);
}
