/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second reading, in the order of time: a heap of the threads by their next steps. Of steps at the same time,
 * beginnings of calls come first, since they give what ends of calls get.
 */
#include <errno.h>
#include <stdlib.h>

#include "walk.h"

enum rep_kind rep_kind_of(unsigned type) {
    static const uint8_t kinds[SBT_TRACE_N_TYPES] = {
        [SBT_TRACE_NO_OBJECT] = REP_JOIN,  [SBT_TRACE_MUTEX] = REP_MUTEX,   [SBT_TRACE_COND] = REP_COND,
        [SBT_TRACE_BARRIER] = REP_BARRIER, [SBT_TRACE_RWLOCK] = REP_RWLOCK, [SBT_TRACE_SEM] = REP_SEM,
        [SBT_TRACE_SPIN] = REP_SPIN,       [SBT_TRACE_FUTEX] = REP_FUTEX};
    return type < SBT_TRACE_N_TYPES ? (enum rep_kind)kinds[type] : REP_JOIN;
}

/* ---- steps ---- */

static void between_calls(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    struct rep_times *times = &w->report->threads[thread].times;
    uint64_t gap_ns = e->at_ns > t->ended_ns ? e->at_ns - t->ended_ns : 0;
    if (gap_ns > e->work_ns + REP_SHORT_NS)
        *(rep_is_unknown(w->report, e) ? &times->unknown_ns : &times->off_cpu_ns) += gap_ns - e->work_ns;
    t->work_ns += e->work_ns;
}

/* A thread that waits for a condition when the trace ends has given back the mutex that it took last. */
static void begin_last_wait(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_walker *t = &w->walkers[thread];
    if (sbt_trace_waits_in(e) == SBT_TRACE_COND_WAIT && t->n_held > 0 && !w->report->info.profile)
        rep_release(w, thread, t->held[t->n_held - 1].object, e->at_ns, e->at_ns);
}

static enum rep_kind kind_of_call(unsigned op) {
    static const uint8_t kinds[SBT_TRACE_N_OPS] = {
        [SBT_TRACE_THREAD_JOIN] = REP_JOIN,     [SBT_TRACE_MUTEX_LOCK] = REP_MUTEX,
        [SBT_TRACE_COND_WAIT] = REP_COND,       [SBT_TRACE_BARRIER_WAIT] = REP_BARRIER,
        [SBT_TRACE_RWLOCK_RDLOCK] = REP_RWLOCK, [SBT_TRACE_RWLOCK_WRLOCK] = REP_RWLOCK,
        [SBT_TRACE_SEM_WAIT] = REP_SEM,         [SBT_TRACE_SPIN_LOCK] = REP_SPIN,
        [SBT_TRACE_FUTEX_WAIT] = REP_FUTEX};
    return (enum rep_kind)kinds[op];
}

/* A wait without an end is no acquisition, and as a call that gets something it counts. */
static void count_unended(struct rep_walk *w, const struct rep_waited *wait) {
    struct rep_unended *u = &w->report->threads[wait->thread].unended;
    u->since_ns = wait->from_ns;
    u->ns = wait->to_ns - wait->from_ns;
    u->kind = (uint8_t)wait->kind;
    w->report->unended.n++;
    w->report->unended.ns += u->ns;
    if (wait->object == REP_NONE)
        return;
    if (rep_is_lock_type(w->report->objects[wait->object].type))
        w->report->objects[wait->object].n_failed++;
    else
        w->report->objects[wait->object].n++;
}

/* Nothing ended the wait that the thread was in when the trace ended. */
static void end_last_wait(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    unsigned op = sbt_trace_waits_in(e);
    struct rep_thread *t = &w->report->threads[thread];
    if (op == SBT_TRACE_N_OPS || op == SBT_TRACE_OUTSIDE_WAIT) {
        t->times.off_cpu_ns += e->took_ns;
        t->times.outside_ns += e->took_ns;
        return;
    }
    struct rep_waited wait = {.thread = thread,
                              .object = e->object,
                              .site = e->site,
                              .kind = kind_of_call(op),
                              .from_ns = e->at_ns,
                              .to_ns = e->at_ns + e->took_ns,
                              .by = {.thread = REP_NONE, .site = REP_NONE}};
    t->unended.object = e->object;
    t->unended.site = e->site;
    t->unended.other = op == SBT_TRACE_THREAD_JOIN && e->other < w->report->info.n_threads ? e->other : REP_NONE;
    if (!w->report->info.profile && wait.object != REP_NONE && rep_is_held(&w->report->objects[wait.object]))
        t->unended.holder = rep_holder(w, &wait, e);
    count_unended(w, &wait);
    rep_waited(w, &wait);
}

static void begin_call(struct rep_walk *w, uint32_t thread) {
    struct rep_walker *t = &w->walkers[thread];
    const struct sbt_trace_event *e = &t->event;
    uint64_t end_ns = e->at_ns + e->took_ns;
    between_calls(w, thread, e);
    if (t->polls && !(rep_is_trylock(e->op) && e->object == t->polled && e->result != 0))
        rep_poll_end(w, thread, e);
    if (rep_is_unlock(e->op) && e->result == 0) {
        if (t->woken_cond != REP_NONE && w->report->objects[t->woken_cond].mutex == e->object)
            t->woken_cond = REP_NONE;
        if (w->report->info.profile)
            rep_profile_release(w, thread, e);
        else
            rep_release(w, thread, e->object, e->at_ns, end_ns);
    } else if (e->op == SBT_TRACE_COND_WAIT) {
        rep_cond_begin(w, thread, e);
    } else if (e->op == SBT_TRACE_COND_SIGNAL || e->op == SBT_TRACE_COND_BROADCAST || e->op == SBT_TRACE_SEM_POST ||
               e->op == SBT_TRACE_FUTEX_WAKE) {
        rep_give(w, thread, e);
    } else if (e->op == SBT_TRACE_FUTEX_WAIT) {
        rep_permit_wait(w, thread, e);
    } else if (e->op == SBT_TRACE_BARRIER_WAIT) {
        rep_arrive(w, thread, e);
    } else if (sbt_trace_still_runs(e)) {
        begin_last_wait(w, thread, e);
    }
}

/* The thread that was to be joined still ran. */
static void joined_none(struct rep_walk *w, struct rep_waited *wait, uint32_t other) {
    wait->timed_out = true;
    rep_waited(w, wait);
    rep_pair_add(w, wait, other, REP_NONE, wait->to_ns - wait->from_ns);
}

static void joined(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_waited wait = {.thread = thread,
                              .object = REP_NONE,
                              .site = e->site,
                              .kind = REP_JOIN,
                              .from_ns = e->at_ns,
                              .to_ns = e->at_ns + e->took_ns,
                              .by = {.thread = REP_NONE, .site = REP_NONE}};
    bool known = e->other < w->report->info.n_threads && w->report->threads[e->other].n_events > 0;
    if (known)
        wait.by =
            (struct rep_release){.at_ns = w->report->threads[e->other].end_ns, .thread = e->other, .site = REP_NONE};
    if (e->result == ETIMEDOUT && e->took_ns >= 10 * REP_SHORT_NS) {
        wait.by = (struct rep_release){.thread = REP_NONE, .site = REP_NONE};
        joined_none(w, &wait, known ? e->other : REP_NONE);
        return;
    }
    if (e->result != 0 || (known ? wait.by.at_ns <= e->at_ns : e->took_ns < 10 * REP_SHORT_NS)) {
        rep_not_waited(w, thread, REP_NONE, e->took_ns);
        return;
    }
    rep_waited(w, &wait);
    rep_pair_add(w, &wait, wait.by.thread, REP_NONE, wait.to_ns - wait.from_ns);
}

static void end_lock(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    if (e->result == 0) {
        rep_acquire(w, thread, e->object, e, e->at_ns, false);
    } else if (rep_is_trylock(e->op)) {
        rep_trylock_failed(w, thread, e);
    } else {
        rep_lock_failed(w, thread, e);
    }
}

static void end_call(struct rep_walk *w, uint32_t thread) {
    struct rep_walker *t = &w->walkers[thread];
    const struct sbt_trace_event *e = &t->event;
    if (rep_is_lock(e->op))
        end_lock(w, thread, e);
    else if (e->op == SBT_TRACE_COND_WAIT)
        rep_cond_end(w, thread, e);
    else if (e->op == SBT_TRACE_SEM_WAIT || e->op == SBT_TRACE_SEM_TRYWAIT || e->op == SBT_TRACE_FUTEX_WAIT)
        rep_event_end(w, thread, e);
    else if (e->op == SBT_TRACE_BARRIER_WAIT)
        rep_leave(w, thread, e);
    else if (e->op == SBT_TRACE_THREAD_JOIN)
        joined(w, thread, e);
    else if (sbt_trace_still_runs(e))
        end_last_wait(w, thread, e);
    else
        rep_not_waited(w, thread, e->object, e->took_ns);
    t->ended_ns = e->at_ns + e->took_ns;
}

/* ---- the heap ---- */

struct heap {
    const struct rep_walk *walk;
    uint32_t *threads;
    uint32_t n;
};

static bool before(const struct heap *h, uint32_t a, uint32_t b) {
    const struct rep_walker *x = &h->walk->walkers[a], *y = &h->walk->walkers[b];
    if (x->due_ns != y->due_ns)
        return x->due_ns < y->due_ns;
    if (x->in_call != y->in_call)
        return y->in_call;
    return a < b;
}

static void sift_down(struct heap *h, uint32_t at) {
    uint32_t moved = h->threads[at];
    for (uint32_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && before(h, h->threads[child + 1], h->threads[child]))
            child++;
        if (!before(h, h->threads[child], moved))
            break;
        h->threads[at] = h->threads[child];
    }
    h->threads[at] = moved;
}

/* Reads the thread's next event. 1, 0 at its end, -1 and the error. */
static int next_event(struct rep_walk *w, uint32_t thread) {
    struct rep_walker *t = &w->walkers[thread];
    uint64_t outside_ns;
    int got = rep_next_of(&t->cursor, &t->event, &outside_ns, w->error);
    t->in_call = false;
    t->due_ns = t->event.at_ns;
    if (got == 1) {
        w->report->threads[thread].times.outside_ns += outside_ns;
        rep_tick(w);
    }
    return got;
}

/* One step of the thread. As next_event. */
static int step(struct rep_walk *w, uint32_t thread) {
    struct rep_walker *t = &w->walkers[thread];
    if (!t->in_call) {
        begin_call(w, thread);
        t->in_call = true;
        t->due_ns = t->event.at_ns + t->event.took_ns;
        return 1;
    }
    end_call(w, thread);
    return next_event(w, thread);
}

static bool begin_threads(struct rep_walk *w, struct heap *h) {
    struct rep_report *r = w->report;
    for (uint32_t i = 0; i < r->info.n_threads; i++) {
        struct rep_walker *t = &w->walkers[i];
        if (r->threads[i].n_events == 0)
            continue;
        sbt_trace_cursor_begin(w->trace, i, &t->cursor);
        t->ended_ns = r->threads[i].begin_ns;
        if (r->threads[i].creator != REP_NONE) {
            struct rep_release by = {.at_ns = r->threads[i].begin_ns, .thread = r->threads[i].creator};
            rep_created(w, i, &by, r->threads[i].begin_ns);
        }
        if (next_event(w, i) < 0)
            return false;
        h->threads[h->n++] = i;
    }
    for (uint32_t i = h->n / 2; i > 0; i--)
        sift_down(h, i - 1);
    return true;
}

static bool run(struct rep_walk *w, struct heap *h) {
    while (h->n > 0) {
        int got = step(w, h->threads[0]);
        if (got < 0)
            return false;
        if (got == 0)
            h->threads[0] = h->threads[--h->n];
        if (h->n > 0)
            sift_down(h, 0);
    }
    return true;
}

/*
 * A thread that has been woken waits for a core within its call. What the kernel has counted beyond that was between
 * calls: there the thread was preempted, or woke up from a sleep that is not recorded.
 */
static void divide_off_cpu(struct rep_walk *w, uint32_t thread) {
    struct rep_thread *t = &w->report->threads[thread];
    uint64_t queued_ns;
    if (t->n_events == 0 || !sbt_trace_thread_queued(w->trace, thread, &queued_ns))
        return;
    uint64_t most_ns = t->times.off_cpu_ns,
             between_ns = queued_ns > t->times.wakeup_ns ? queued_ns - t->times.wakeup_ns : 0;
    t->queued_is_known = true;
    t->times.queued_ns = queued_ns;
    t->times.no_core_ns = between_ns < most_ns ? between_ns : most_ns;
    w->report->n_queued++;
}

static void finish(struct rep_walk *w) {
    for (uint32_t i = 0; i < w->report->info.n_threads; i++) {
        struct rep_walker *t = &w->walkers[i];
        while (t->n_held > 0 && !w->report->info.profile) { /* held when the trace ended */
            uint64_t end_ns = w->report->threads[i].end_ns;
            rep_release(w, i, t->held[t->n_held - 1].object, end_ns, end_ns);
        }
        rep_idle_finish(w, i);
        divide_off_cpu(w, i);
    }
    rep_locks_finish(w);
    rep_barriers_finish(w);
}

bool rep_walk_all(struct rep_walk *w) {
    struct heap heap = {.walk = w, .threads = malloc(((size_t)w->report->info.n_threads + 1) * sizeof *heap.threads)};
    if (heap.threads == NULL)
        return rep_no_memory(w->error);
    bool whole = begin_threads(w, &heap) && run(w, &heap);
    free(heap.threads);
    if (whole)
        finish(w);
    return whole;
}
