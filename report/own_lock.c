/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Holds of what threads use as locks, though it is none by its name: semaphores. permit.c says which these are. */
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

void rep_permit_got(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, bool waited) {
    rep_begin_hold(w, thread, e->object, e, e->at_ns, e->at_ns + e->took_ns, waited);
}

void rep_permit_given(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, struct rep_signal *signal) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_held *found = rep_held_find(t, e->object);
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
