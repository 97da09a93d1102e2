/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Holds of what threads use as locks, though it is none by its name: semaphores and futexes. permit.c and own_futex.c
 * say which these are. A futex lock that is taken without a wait is no event. */
#include <stdlib.h>

#include "walk.h"

/* For the third reading. */
static void note_given(struct rep_walker *t, uint32_t object, uint64_t at_ns) {
    if (t->n_given == t->given_capacity) {
        uint32_t capacity = t->given_capacity == 0 ? 8 : 2 * t->given_capacity;
        struct rep_given *longer = realloc(t->given, capacity * sizeof *longer);
        if (longer == NULL)
            return;
        t->given = longer;
        t->given_capacity = capacity;
    }
    t->given[t->n_given++] = (struct rep_given){at_ns, object};
}

/*
 * The thread that posts has not taken the permit: it gives back the one that another thread has. That hold ends. In a
 * profile its thread may have given it back by a call that is no event, so how long it held it is not known.
 */
static void give_for_another(struct rep_walk *w, const struct sbt_trace_event *e, struct rep_signal *signal) {
    const uint32_t holder = w->locks[e->object].holder;
    struct rep_held *found = holder != REP_NONE ? rep_held_find(&w->walkers[holder], e->object) : NULL;
    if (found == NULL)
        return;
    if (w->report->info.profile) {
        rep_held_drop(&w->walkers[holder], found);
        w->locks[e->object].holder = REP_NONE;
        return;
    }
    signal->since_ns = found->since_ns;
    signal->had_waited = found->waited;
    rep_release(w, holder, e->object, e->at_ns, e->at_ns + e->took_ns);
    note_given(&w->walkers[holder], e->object, e->at_ns);
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t cut(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

void rep_permit_wait(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_lock *lock = &w->locks[e->object];
    struct rep_held *found =
        w->report->objects[e->object].gives_back ? rep_held_find(&w->walkers[thread], e->object) : NULL;
    if (lock->n_waiting++ == 0)
        lock->waiting_ns = e->at_ns;
    if (found == NULL)
        return;
    rep_held_drop(&w->walkers[thread], found);
    if (lock->holder == thread)
        lock->holder = REP_NONE;
}

void rep_permit_wait_end(struct rep_walk *w, const struct sbt_trace_event *e) {
    w->locks[e->object].n_waiting--;
}

void rep_permit_got(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, bool waited) {
    rep_begin_hold(w, thread, e->object, e, e->at_ns, e->at_ns + e->took_ns, waited);
}

/*
 * The thread took the lock without a wait, which is no event. While threads wait it was taken, since the last wake-up
 * at the latest; but not before the thread's own last call.
 */
static uint64_t unseen_since(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    const struct rep_lock *lock = &w->locks[e->object];
    struct rep_object *o = &w->report->objects[e->object];
    uint64_t since_ns = w->walkers[thread].ended_ns, gap_ns = cut(e->at_ns, since_ns);
    since_ns = later(since_ns, lock->n_waiting > 0 ? later(lock->waiting_ns, lock->any.at_ns)
                                                   : cut(e->at_ns, o->hold_n > 0 ? o->hold_ns / o->hold_n : 0));
    o->unseen_ns += cut(e->at_ns, since_ns);
    o->unseen_gap_ns += gap_ns;
    return since_ns;
}

void rep_permit_given(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, struct rep_signal *signal) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_held *found = rep_held_find(t, e->object);
    if (found == NULL && e->type == SBT_TRACE_FUTEX) {
        signal->since_ns = unseen_since(w, thread, e);
        w->locks[e->object].any = rep_release_by(signal);
        return;
    }
    if (found == NULL) {
        give_for_another(w, e, signal);
        return;
    }
    /* In a profile the thread may have given it back, and taken it again, by calls that are no events. */
    if (w->report->info.profile && found->since_ns != t->ended_ns) {
        rep_held_drop(t, found);
        return;
    }
    signal->since_ns = found->since_ns;
    signal->had_waited = found->waited;
    signal->site = found->site;
    rep_release(w, thread, e->object, e->at_ns, e->at_ns + e->took_ns);
}
