/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The third reading: what each thread did in its pieces of the critical path. A piece is work, time off the processor,
 * a hold of a lock, a call, the way from a release to the end of the wait that it ended, or a wait of which the waker
 * is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

struct held {
    uint32_t object, site;
};

/* One thread's pieces, and where the reading is in them. */
struct reader {
    struct rep_walk *walk;
    const struct rep_segment **pieces; /* of this thread, in order of time */
    size_t n_pieces, at;
    uint32_t thread;
    uint64_t early_ns; /* on the path before the hold at the end of a gap; UINT64_MAX: there is none */
    struct held *held;
    size_t n_held, capacity;
    uint32_t n_given; /* of the thread's holds that another thread ended, those that are over */
};

/* How much of these times is on the path. Times come in their order. */
static uint64_t overlap(struct reader *rd, uint64_t from_ns, uint64_t to_ns) {
    uint64_t ns = 0;
    while (rd->at < rd->n_pieces && rd->pieces[rd->at]->to_ns <= from_ns)
        rd->at++;
    for (size_t i = rd->at; i < rd->n_pieces && rd->pieces[i]->from_ns < to_ns; i++) {
        uint64_t from = rd->pieces[i]->from_ns > from_ns ? rd->pieces[i]->from_ns : from_ns;
        uint64_t to = rd->pieces[i]->to_ns < to_ns ? rd->pieces[i]->to_ns : to_ns;
        ns += to > from ? to - from : 0;
    }
    return ns;
}

static void add_site(struct reader *rd, uint32_t site, uint64_t ns) {
    struct rep_report *r = rd->walk->report;
    if (site < r->info.n_sites)
        r->path.site_ns[site] += ns;
}

static void share_hold(struct reader *rd, const struct held *h, uint64_t ns) {
    rd->walk->report->path.held_ns += ns;
    rd->walk->report->objects[h->object].path.held_ns += ns;
    add_site(rd, h->site, ns);
}

/*
 * In a profile not each lock and unlock is an event. A thread that has just waited for the lock that it gives back now
 * held it between; of a thread that gives back another one, or that calls something else, the object's mean hold says
 * for how long. Returns the end of the gap's part that is not held, and puts its beginning into *from_ns.
 */
static uint64_t share_profile_holds(struct reader *rd, uint64_t *from_ns, const struct sbt_trace_event *e) {
    const struct rep_object *objects = rd->walk->report->objects;
    const struct held *last = rd->n_held > 0 ? &rd->held[rd->n_held - 1] : NULL;
    uint64_t end_ns = e->at_ns;
    if ((rep_is_unlock(e->op) && e->object < rd->walk->report->info.n_objects) ||
        rep_gives_permit(rd->walk->report, e)) {
        const struct rep_object *o = &objects[e->object];
        bool whole = last != NULL && last->object == e->object && end_ns - *from_ns <= o->hold_max_ns + REP_SHORT_NS;
        uint64_t mean_ns = o->hold_n > 0 ? o->hold_ns / o->hold_n : 0;
        if (o->unseen_gap_ns > 0 && !whole)
            mean_ns = (uint64_t)((double)(end_ns - *from_ns) * ((double)o->unseen_ns / (double)o->unseen_gap_ns));
        uint64_t begin_ns = whole || end_ns - *from_ns < mean_ns ? *from_ns : end_ns - mean_ns;
        const struct held held = {e->object, whole ? last->site : e->site};
        uint64_t before_ns = begin_ns > *from_ns ? overlap(rd, *from_ns, begin_ns) : 0; /* in order of time */
        share_hold(rd, &held, overlap(rd, begin_ns, end_ns));
        rd->early_ns = before_ns;
        return begin_ns;
    }
    if (last != NULL) {
        const struct rep_object *o = &objects[last->object];
        uint64_t mean_ns = o->hold_n > 0 ? o->hold_ns / o->hold_n : 0;
        uint64_t until_ns = end_ns - *from_ns < mean_ns ? end_ns : *from_ns + mean_ns;
        share_hold(rd, last, overlap(rd, *from_ns, until_ns));
        *from_ns = until_ns;
    }
    return end_ns;
}

static void forget(struct reader *rd, uint32_t object) {
    for (size_t i = rd->n_held; i > 0; i--)
        if (rd->held[i - 1].object == object) {
            memmove(&rd->held[i - 1], &rd->held[i], (rd->n_held - i) * sizeof *rd->held);
            rd->n_held--;
            return;
        }
}

/* When the next hold ends that another thread ends; UINT64_MAX: none does. */
static uint64_t given_ns(const struct reader *rd) {
    const struct rep_walker *t = &rd->walk->walkers[rd->thread];
    return rd->n_given < t->n_given ? t->given[rd->n_given].at_ns : UINT64_MAX;
}

static void forget_given(struct reader *rd, uint64_t until_ns) {
    while (given_ns(rd) <= until_ns)
        forget(rd, rd->walk->walkers[rd->thread].given[rd->n_given++].object);
}

/* Shares what the thread holds in these times. Returns until when it holds something. */
static uint64_t share_holds(struct reader *rd, uint64_t from_ns, uint64_t end_ns) {
    forget_given(rd, from_ns);
    while (rd->n_held > 0 && from_ns < end_ns) {
        const uint64_t until_ns = given_ns(rd) < end_ns ? given_ns(rd) : end_ns;
        share_hold(rd, &rd->held[rd->n_held - 1], overlap(rd, from_ns, until_ns));
        from_ns = until_ns;
        forget_given(rd, from_ns);
    }
    return from_ns;
}

/* Does it give back a futex lock that it has taken without a wait? Then it is as in a profile. */
static bool is_unseen(const struct reader *rd, const struct sbt_trace_event *e) {
    return e->type == SBT_TRACE_FUTEX && rd->n_held == 0 && rep_gives_permit(rd->walk->report, e);
}

static void share_gap(struct reader *rd, uint64_t from_ns, const struct sbt_trace_event *e) {
    struct rep_report *r = rd->walk->report;
    uint64_t gap_ns = e->at_ns > from_ns ? e->at_ns - from_ns : 0, end_ns = e->at_ns;
    uint64_t held_ns = r->path.held_ns, ns;
    if (gap_ns == 0)
        return;
    rd->early_ns = UINT64_MAX;
    if (r->info.profile || is_unseen(rd, e)) {
        end_ns = share_profile_holds(rd, &from_ns, e);
    } else {
        from_ns = share_holds(rd, from_ns, end_ns);
    }
    ns = rd->early_ns != UINT64_MAX ? rd->early_ns : end_ns > from_ns ? overlap(rd, from_ns, end_ns) : 0;
    bool ran = gap_ns <= e->work_ns + REP_SHORT_NS;
    uint64_t work_ns = ran ? ns : (uint64_t)((double)ns * ((double)e->work_ns / (double)gap_ns));
    r->path.work_ns += work_ns;
    bool unknown = rep_is_unknown(r, e);
    *(unknown ? &r->path.unknown_ns : &r->path.off_cpu_ns) += ns - work_ns;
    r->threads[rd->thread].path_off_ns += unknown ? 0 : ns - work_ns;
    r->threads[rd->thread].path_ns += ns + r->path.held_ns - held_ns;
}

static bool can_wait(const struct sbt_trace_event *e) {
    return (rep_is_lock(e->op) && !rep_is_trylock(e->op)) || e->op == SBT_TRACE_COND_WAIT ||
           e->op == SBT_TRACE_BARRIER_WAIT || e->op == SBT_TRACE_SEM_WAIT || e->op == SBT_TRACE_THREAD_JOIN ||
           (e->op == SBT_TRACE_FUTEX_WAIT && e->result == 0);
}

/* Of a wait for a condition, the second part is for the mutex. */
static const struct rep_segment *woken_by(const struct reader *rd, uint64_t from_ns, uint64_t to_ns) {
    const struct rep_segment *last = NULL;
    for (size_t i = rd->at; i < rd->n_pieces && rd->pieces[i]->from_ns < to_ns; i++)
        if (rd->pieces[i]->kind != REP_N_KINDS && rd->pieces[i]->from_ns >= from_ns)
            last = rd->pieces[i];
    return last;
}

/* Which part of the path, and of its object, the call is. */
struct parts {
    uint64_t *path, *object;
};

static struct parts parts_of(struct reader *rd, const struct sbt_trace_event *e, bool woken, uint32_t object) {
    static uint64_t none;
    struct rep_path *path = &rd->walk->report->path;
    struct rep_path_part *part =
        object < rd->walk->report->info.n_objects ? &rd->walk->report->objects[object].path : NULL;
    /* The last thread at a barrier waits for no other: it is releasing them. */
    if (woken || e->op == SBT_TRACE_BARRIER_WAIT)
        return (struct parts){&path->wakeup_ns, part != NULL ? &part->wakeup_ns : &none};
    if (can_wait(e) && e->took_ns >= 10 * REP_SHORT_NS)
        return (struct parts){&path->waiting_ns, part != NULL ? &part->waiting_ns : &none};
    return (struct parts){&path->calls_ns, part != NULL ? &part->calls_ns : &none};
}

static void share_call(struct reader *rd, const struct sbt_trace_event *e) {
    struct rep_report *r = rd->walk->report;
    uint64_t end_ns = e->at_ns + e->took_ns, ns = e->took_ns > 0 ? overlap(rd, e->at_ns, end_ns) : 0;
    r->threads[rd->thread].path_ns += ns;
    if (ns == 0)
        return;
    add_site(rd, e->site, ns);
    const struct rep_segment *woken = can_wait(e) ? woken_by(rd, e->at_ns, end_ns) : NULL;
    uint32_t object = woken != NULL ? woken->object : e->object;
    struct parts parts = parts_of(rd, e, woken != NULL, object);
    *parts.path += ns;
    *parts.object += ns;
    if (parts.path != &r->path.calls_ns)
        r->path.kind_ns[woken != NULL                    ? woken->kind
                        : e->op == SBT_TRACE_THREAD_JOIN ? REP_JOIN
                                                         : rep_kind_of(e->type)] += ns;
}

static bool hold(struct reader *rd, uint32_t object, uint32_t site) {
    if (rd->n_held == rd->capacity) {
        size_t capacity = rd->capacity == 0 ? 16 : 2 * rd->capacity;
        struct held *longer = realloc(rd->held, capacity * sizeof *longer);
        if (longer == NULL)
            return rep_no_memory(rd->walk->error);
        rd->held = longer;
        rd->capacity = capacity;
    }
    rd->held[rd->n_held++] = (struct held){object, site};
    return true;
}

static bool share_event(struct reader *rd, uint64_t from_ns, const struct sbt_trace_event *e) {
    const struct rep_report *r = rd->walk->report;
    share_gap(rd, from_ns, e);
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE)
        forget(rd, e->other);
    if (e->op == SBT_TRACE_FUTEX_WAIT) /* another thread was faster, when it was woken */
        forget(rd, e->object);
    share_call(rd, e);
    forget_given(rd, e->at_ns + e->took_ns);
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE)
        return hold(rd, e->other, e->site);
    if (r->info.profile)
        forget(rd, e->object);
    if ((rep_is_lock(e->op) && e->result == 0) || rep_takes_permit(r, e))
        return hold(rd, e->object, e->site);
    if ((rep_is_unlock(e->op) && e->result == 0) || rep_gives_permit(r, e))
        forget(rd, e->object);
    if (r->info.profile && !rep_is_lock(e->op)) /* what is held after that is not known */
        rd->n_held = 0;
    return true;
}

static bool share_thread(struct reader *rd) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    uint64_t from_ns = rd->walk->report->threads[rd->thread].begin_ns;
    int got;
    rd->at = rd->n_held = rd->n_given = 0;
    sbt_trace_cursor_begin(rd->walk->trace, rd->thread, &cursor);
    while ((got = rep_next(&cursor, &e, rd->walk->error)) == 1) {
        rep_tick(rd->walk);
        if (!share_event(rd, from_ns, &e))
            return false;
        from_ns = e.at_ns + e.took_ns;
    }
    return got == 0;
}

/* Sorts the pieces by thread; each thread's stay in order of time. first[t] is where thread t's begin. */
static void sort_pieces(const struct rep_report *r, const struct rep_segment **pieces, size_t *first) {
    for (size_t i = 0; i < r->path.n_segments; i++)
        first[r->path.segments[i].thread + 1]++;
    for (uint32_t t = 0; t < r->info.n_threads; t++)
        first[t + 1] += first[t];
    for (size_t i = r->path.n_segments; i > 0; i--) /* fill each thread's places from behind */
        pieces[--first[r->path.segments[i - 1].thread + 1]] = &r->path.segments[i - 1];
}

bool rep_path_share(struct rep_walk *w) {
    struct rep_report *r = w->report;
    const struct rep_segment **pieces = malloc((r->path.n_segments + 1) * sizeof *pieces);
    size_t *first = calloc((size_t)r->info.n_threads + 2, sizeof *first);
    struct reader rd = {.walk = w};
    r->path.site_ns = calloc((size_t)r->info.n_sites + 1, sizeof *r->path.site_ns);
    bool well = pieces != NULL && first != NULL && r->path.site_ns != NULL;
    if (!well)
        rep_no_memory(w->error);
    else
        sort_pieces(r, pieces, first);
    for (uint32_t t = 0; well && t < r->info.n_threads; t++) {
        size_t from = first[t + 1], to = t + 1 < r->info.n_threads ? first[t + 2] : r->path.n_segments;
        if (from == to)
            continue;
        rd.thread = t;
        rd.pieces = pieces + from;
        rd.n_pieces = to - from;
        well = share_thread(&rd);
    }
    free(rd.held);
    free(pieces);
    free(first);
    return well;
}
