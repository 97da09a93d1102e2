/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes, read-write locks and spin locks: holds, waits, hand-overs, convoys.
 *
 * A call has waited if another thread gave the lock back after the call began. That does not need the order of events
 * of two threads, which clocks do not give: the recorder counts acquisitions under the lock. A call that took long
 * although the lock was free was preempted, and has waited for no thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define LONG_HOLD_NS (20 * REP_SHORT_NS) /* shorter ones have no input or output in them */

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t cut(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* ---- holds ---- */

static struct rep_held *held_push(struct rep_walker *t) {
    if (t->n_held == t->held_capacity) {
        uint32_t capacity = t->held_capacity == 0 ? 8 : 2 * t->held_capacity;
        struct rep_held *longer = realloc(t->held, capacity * sizeof *longer);
        if (longer == NULL)
            return NULL;
        t->held = longer;
        t->held_capacity = capacity;
    }
    return &t->held[t->n_held++];
}

struct rep_held *rep_held_find(struct rep_walker *t, uint32_t object) {
    for (uint32_t i = t->n_held; i > 0; i--)
        if (t->held[i - 1].object == object)
            return &t->held[i - 1];
    return NULL;
}

void rep_held_drop(struct rep_walker *t, struct rep_held *held) {
    memmove(held, held + 1, (size_t)(t->held + t->n_held - held - 1) * sizeof *held);
    t->n_held--;
}

static void hold_work(struct rep_walk *w, uint32_t object, uint64_t ns, uint64_t work_ns) {
    struct rep_object *o = &w->report->objects[object];
    struct rep_detail *d = rep_detail_of(w, object);
    work_ns = work_ns < ns ? work_ns : ns;
    o->known_hold_ns += ns;
    o->n_known_holds++;
    o->hold_work_ns += work_ns;
    o->n_long_holds += ns > LONG_HOLD_NS;
    if (d != NULL && 2 * work_ns < ns && ns > LONG_HOLD_NS) {
        d->held_off_cpu.n++;
        d->held_off_cpu.ns += ns - work_ns;
    }
}

static void hold_sums(struct rep_walk *w, uint32_t object, const struct rep_held *held, uint64_t ns, uint64_t work_ns) {
    struct rep_object *o = &w->report->objects[object];
    struct rep_detail *d = rep_detail_of(w, object);
    hold_work(w, object, ns, work_ns);
    o->hold_n++;
    o->hold_ns += ns;
    o->hold_max_ns = later(o->hold_max_ns, ns);
    if (d == NULL)
        return;
    rep_histogram_add(&d->hold, ns);
    struct rep_site_use *use = rep_site_use(d, held->site);
    use->hold.n++;
    use->hold.ns += ns;
    use->hold_work_ns += work_ns < ns ? work_ns : ns;
}

/* Of past holds those are kept that a wait may still overlap with: as many as threads have waited at once. */
static void hold_ring_push(struct rep_detail *d, struct rep_hold hold) {
    struct rep_rings *rings = d != NULL ? d->rings : NULL;
    if (rings == NULL || d->wait.n == 0) /* no thread has waited yet */
        return;
    if (rings->holds == NULL && (rings->holds = calloc(REP_MOST_HOLDS, sizeof *rings->holds)) == NULL)
        return;
    rings->holds[rings->n_holds++ % REP_MOST_HOLDS] = hold;
}

static void section_end(struct rep_walk *w, uint32_t thread, uint64_t at_ns, uint64_t end_ns) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_sections *s = &w->report->threads[thread].times.sections;
    if (t->n_held != 0)
        return;
    s->ns += cut(end_ns, t->section_ns);
    s->held_ns += cut(at_ns, t->union_ns);
}

void rep_release(struct rep_walk *w, uint32_t thread, uint32_t object, uint64_t at_ns, uint64_t end_ns) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_lock *lock = &w->locks[object];
    struct rep_held *found = rep_held_find(t, object);
    struct rep_release release = {.at_ns = at_ns, .thread = thread, .site = REP_NONE};
    bool shared = false;
    if (found != NULL) {
        struct rep_held held = *found;
        release.since_ns = held.since_ns;
        release.had_waited = held.waited;
        release.site = held.site;
        shared = held.shared;
        hold_sums(w, object, &held, cut(at_ns, held.since_ns), t->work_ns - held.work_ns);
        w->report->objects[object].section_ns += cut(end_ns, held.began_ns);
        hold_ring_push(rep_detail_of(w, object), (struct rep_hold){held.since_ns, at_ns, thread, held.site});
        rep_held_drop(t, found);
        section_end(w, thread, at_ns, end_ns);
    }
    if (at_ns >= lock->any.at_ns)
        lock->any = release;
    if (!shared && at_ns >= lock->write.at_ns)
        lock->write = release;
    if (lock->holder == thread)
        lock->holder = REP_NONE;
}

/* ---- profiles ---- */

/*
 * An unlock that ended a wait. Its thread may have had to wait for the lock, or not: then the lock is no event, and the
 * hold is taken for as long as the object's holds are on average.
 */
void rep_profile_release(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_object *o = &w->report->objects[e->object];
    struct rep_held *found = rep_held_find(t, e->object);
    uint64_t mean_ns = o->hold_n > 0 ? o->hold_ns / o->hold_n : 0;
    bool waited = found != NULL && cut(e->at_ns, found->since_ns) <= o->hold_max_ns + REP_SHORT_NS;
    struct rep_signal s = {.number = e->order,
                           .at_ns = e->at_ns,
                           .since_ns = waited ? found->since_ns : cut(e->at_ns, mean_ns),
                           .thread = thread,
                           .site = waited ? found->site : e->site,
                           .had_waited = waited};
    /* All work since the last event is taken for work of the hold, which is right or too much. The hold is taken to
     * have begun after that event. */
    if (waited)
        hold_work(w, e->object, cut(e->at_ns, found->since_ns), t->work_ns - found->work_ns);
    else
        hold_work(w, e->object, cut(e->at_ns, later(s.since_ns, t->ended_ns)), e->work_ns);
    if (found != NULL)
        rep_held_drop(t, found);
    rep_signal_put(w, e->object, s);
    w->locks[e->object].any = w->locks[e->object].write = rep_release_by(&s);
    hold_ring_push(rep_detail_of(w, e->object), (struct rep_hold){s.since_ns, e->at_ns, thread, s.site});
}

/* ---- convoys ---- */

static void convoy_end(struct rep_detail *d, uint64_t at_ns) {
    struct rep_rings *rings = d->rings;
    unsigned n_threads = (unsigned)__builtin_popcountll(rings->run.threads);
    struct rep_convoys *c = &d->convoys;
    if (n_threads >= 3 && rings->run.n >= 2 * (uint64_t)n_threads) {
        c->n++;
        c->n_acquisitions += rings->run.n;
        c->ns += cut(at_ns, rings->run.from_ns);
        c->longest = later(c->longest, rings->run.n);
        c->held_ns += rings->run.held_ns;
        c->handover_ns += rings->run.handover_ns;
        c->n_threads = n_threads > c->n_threads ? n_threads : c->n_threads;
    }
    memset(&rings->run, 0, sizeof rings->run);
}

static void convoy_step(struct rep_detail *d, const struct rep_waited *wait, uint64_t handover_ns) {
    struct rep_rings *rings = d->rings;
    if (!wait->by.had_waited) /* the one before did not have to wait: a run begins */
        convoy_end(d, wait->from_ns);
    if (rings->run.n++ == 0)
        rings->run.from_ns = wait->from_ns;
    else
        rings->run.held_ns += cut(wait->by.at_ns, wait->by.since_ns);
    rings->run.handover_ns += handover_ns;
    rings->run.threads |= UINT64_C(1) << wait->thread % 64;
}

void rep_locks_finish(struct rep_walk *w) {
    for (uint32_t i = 0; i < w->report->n_details; i++)
        if (w->report->details[i].rings != NULL)
            convoy_end(&w->report->details[i], w->locks[w->report->details[i].object].any.at_ns);
}

/* ---- getting ---- */

/* Each hold that the wait overlaps with has its part of the time until `end`, up to the beginning of the next one; the
 * rest is not known. */
static void share_until(struct rep_walk *w, const struct rep_waited *wait, uint64_t end) {
    struct rep_detail *d = rep_detail_of(w, wait->object);
    struct rep_rings *rings = d != NULL ? d->rings : NULL;
    bool exclusive = wait->kind != REP_RWLOCK; /* of holds at the same time the last one stands for all */
    for (uint64_t i = 0; exclusive && rings != NULL && i < rings->n_holds && i < REP_MOST_HOLDS && end > wait->from_ns;
         i++) {
        const struct rep_hold *hold = &rings->holds[(rings->n_holds - 1 - i) % REP_MOST_HOLDS];
        uint64_t from = later(hold->from_ns, wait->from_ns);
        if (hold->to_ns <= wait->from_ns)
            break;
        if (from >= end)
            continue;
        rep_pair_add(w, wait, hold->thread, hold->site, end - from);
        end = from;
    }
    if (end > wait->from_ns)
        rep_pair_add(w, wait, wait->by.thread, wait->by.site, end - wait->from_ns);
}

static void share_wait(struct rep_walk *w, const struct rep_waited *wait) {
    share_until(w, wait, wait->to_ns);
}

/* When the last hold ended that is known. */
static uint64_t last_release(struct rep_walk *w, uint32_t object) {
    const struct rep_detail *d = rep_detail_of(w, object);
    const struct rep_rings *rings = d != NULL ? d->rings : NULL;
    return rings != NULL && rings->n_holds > 0 ? rings->holds[(rings->n_holds - 1) % REP_MOST_HOLDS].to_ns : 0;
}

/* A thread that has the lock for reading; REP_NONE: there is none. */
static uint32_t reader_now(struct rep_walk *w, uint32_t object) {
    uint32_t thread = 0, n = w->report->info.n_threads;
    while (thread < n && rep_held_find(&w->walkers[thread], object) == NULL)
        thread++;
    return thread < n ? thread : REP_NONE;
}

/*
 * The hold that is not over at the end of the wait. In a profile a lock that was free is no event; there the recorder
 * has looked, and the thread may have had it since the last release.
 */
static struct rep_hold hold_now(struct rep_walk *w, const struct rep_waited *wait, const struct sbt_trace_event *e) {
    const bool is_profile = w->report->info.profile;
    struct rep_hold now = {last_release(w, wait->object), wait->to_ns, w->locks[wait->object].holder, REP_NONE};
    if (is_profile)
        now.thread = e->other < w->report->info.n_threads ? e->other : REP_NONE;
    else if (now.thread == REP_NONE && wait->kind == REP_RWLOCK)
        now.thread = reader_now(w, wait->object);
    if (now.thread == wait->thread)
        now.thread = REP_NONE;
    const struct rep_held *held = now.thread != REP_NONE ? rep_held_find(&w->walkers[now.thread], wait->object) : NULL;
    if (held != NULL && !is_profile)
        now.from_ns = held->since_ns;
    if (held != NULL)
        now.site = held->site;
    return now;
}

uint32_t rep_holder(struct rep_walk *w, const struct rep_waited *wait, const struct sbt_trace_event *e) {
    return hold_now(w, wait, e).thread;
}

void rep_timed_out(struct rep_walk *w, const struct rep_waited *wait, const struct sbt_trace_event *e) {
    const struct rep_hold now = hold_now(w, wait, e);
    uint64_t end = wait->to_ns;
    if (now.thread != REP_NONE) {
        end = later(now.from_ns, wait->from_ns);
        end = end < wait->to_ns ? end : wait->from_ns;
        rep_pair_add(w, wait, now.thread, now.site, wait->to_ns - end);
    }
    share_until(w, wait, end);
}

void rep_lock_failed(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    const struct rep_waited wait = {.thread = thread,
                                    .object = e->object,
                                    .site = e->site,
                                    .stack = e->stack,
                                    .kind = rep_kind_of(e->type),
                                    .from_ns = e->at_ns,
                                    .to_ns = e->at_ns + e->took_ns,
                                    .by = {.thread = REP_NONE, .site = REP_NONE},
                                    .timed_out = e->result == ETIMEDOUT};
    w->report->objects[e->object].n_failed++;
    rep_waited(w, &wait);
    if (wait.timed_out)
        rep_timed_out(w, &wait, e);
}

/* Did the call wait, and for which release? profile_by: what a profile says, in which such calls are events because
 * they waited; NULL: it is none. */
static bool has_waited(const struct rep_lock *lock, uint32_t thread, const struct sbt_trace_event *e, uint64_t number,
                       uint64_t from_ns, uint64_t to_ns, const struct rep_release *profile_by, struct rep_release *by) {
    bool shared = rep_is_shared(e->op);
    *by = shared ? lock->write : lock->any;
    if (profile_by != NULL) {
        *by = *profile_by;
        if (by->thread == thread)
            by->thread = REP_NONE;
        return to_ns > from_ns;
    }
    if (rep_is_trylock(e->op))
        return false;
    if (by->thread != REP_NONE && by->thread != thread && by->at_ns > from_ns)
        return true;
    bool unseen = !shared && number > lock->number + 1; /* acquisitions that the trace does not have */
    if (lock->holder != REP_NONE && lock->holder != thread) {
        /* Its release is behind this, by the clocks' difference. */
        *by = (struct rep_release){.at_ns = to_ns, .thread = lock->holder, .site = REP_NONE};
        return to_ns - from_ns >= REP_SHORT_NS;
    }
    if (unseen)
        *by = (struct rep_release){.thread = REP_NONE, .site = REP_NONE};
    return unseen && to_ns - from_ns >= 10 * REP_SHORT_NS;
}

void rep_begin_hold(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e,
                    uint64_t from_ns, uint64_t to_ns, bool waited) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_lock *lock = &w->locks[object];
    struct rep_held *held = w->report->info.profile ? rep_held_find(t, object) : NULL;
    if (held != NULL) /* given back by a call that is no event */
        rep_held_drop(t, held);
    bool first = t->n_held == 0;
    held = held_push(t);
    if (first) {
        t->section_ns = from_ns;
        t->union_ns = to_ns;
    }
    if (held != NULL)
        *held = (struct rep_held){.object = object,
                                  .site = e->site,
                                  .shared = rep_is_shared(e->op),
                                  .waited = waited,
                                  .began_ns = from_ns,
                                  .since_ns = to_ns,
                                  .work_ns = t->work_ns};
    if (!rep_is_shared(e->op))
        lock->holder = thread;
}

void rep_acquire(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e,
                 uint64_t from_ns, bool relock) {
    struct rep_lock *lock = &w->locks[object];
    struct rep_object *o = &w->report->objects[object];
    struct rep_detail *d = rep_detail_of(w, object);
    uint64_t number = relock ? e->relock : e->order, to_ns = e->at_ns + e->took_ns;
    struct rep_waited wait = {.thread = thread,
                              .object = object,
                              .site = e->site,
                              .kind = relock ? REP_RELOCK : rep_kind_of(o->type),
                              .from_ns = from_ns,
                              .to_ns = to_ns};
    o->n++;
    if (!rep_is_trylock(e->op) && !w->report->info.profile) /* there they are counted */
        rep_order_add(w, thread, object, e);
    const struct rep_release profile_by = rep_release_by(rep_signal_find(w, object, number));
    bool waited =
        has_waited(lock, thread, e, number, from_ns, to_ns, w->report->info.profile ? &profile_by : NULL, &wait.by);
    if (waited) {
        uint64_t handover_ns = wait.by.thread != REP_NONE ? cut(to_ns, wait.by.at_ns) : 0;
        o->handover_ns += handover_ns;
        rep_waited(w, &wait);
        share_wait(w, &wait);
        if (d != NULL && d->rings != NULL && !rep_is_shared(e->op))
            convoy_step(d, &wait, handover_ns);
    } else {
        rep_not_waited(w, thread, object, to_ns - from_ns);
        if (d != NULL && d->rings != NULL && d->rings->run.n > 0)
            convoy_end(d, from_ns);
    }
    rep_begin_hold(w, thread, object, e, from_ns, to_ns, waited);
    if (!rep_is_shared(e->op))
        lock->number = number;
}

/* ---- polling ---- */

void rep_trylock_failed(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    w->report->objects[e->object].n_failed++;
    rep_not_waited(w, thread, e->object, e->took_ns);
    if (!t->polls || t->polled != e->object) {
        t->polled = e->object;
        t->poll_from_ns = e->at_ns;
        t->poll_work_ns = t->work_ns;
        t->n_polls = 0;
    }
    t->n_polls++;
    t->polls = true;
}

/* The next call after failed trylocks: how many they were, and whether they waited in vain or got the lock. */
void rep_poll_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_object *o = &w->report->objects[t->polled];
    bool got = e->object == t->polled && rep_is_lock(e->op) && e->result == 0;
    t->polls = false;
    if (t->n_polls < REP_LEAST_POLLS)
        return;
    o->polls += t->n_polls;
    o->poll_ns += t->work_ns - t->poll_work_ns;
    const struct rep_release *by = &w->locks[t->polled].any;
    if (got && by->thread != REP_NONE && by->thread != thread && by->at_ns > t->poll_from_ns) {
        struct rep_waited wait = {.thread = thread,
                                  .object = t->polled,
                                  .site = e->site,
                                  .kind = REP_SPIN,
                                  .from_ns = t->poll_from_ns,
                                  .to_ns = e->at_ns + e->took_ns,
                                  .by = *by};
        rep_waited(w, &wait);
        share_wait(w, &wait);
    }
}
