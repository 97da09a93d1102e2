/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces changed as an advice says; see change.h. One pass over each thread's events; what the pass remembers of a
 * thread is in struct pass. The simulator gives locks to the thread that asks first, so the numbers of acquisitions
 * need not be right, and those of a split lock are left out.
 *
 * A sleep is written as a join that timed out: the simulator lets a thread do nothing for as long as that took.
 */
#include "change.h"

#include <errno.h>
#include <stdlib.h>

#define SLEEP_LEAST_NS 100000 /* shorter gaps between events are the system's */

/* A thread's work and sleep since it was last at the barrier, and what it would be if all had the mean. */
struct loads {
    uint64_t *own; /* by the thread's arrivals */
    uint64_t *generation;
    size_t n, room;
};

struct pass {
    const struct sbt_trace *trace;
    const struct rep_report *report;
    const struct rep_advice *advice;
    struct sbt_trace_writer *writer;
    bool changed;
    int error;
    /* of the thread */
    uint32_t thread, part;      /* part: which of a split lock's it holds */
    uint64_t ended_ns, n_taken; /* the last event's end; acquisitions of the object or group */
    uint64_t owed_ns;           /* sleep that has been moved behind the section */
    uint64_t poll_work_ns;      /* work before the first of the failed trylocks that were left out */
    uint32_t skipped;           /* the lock that was left out and is held; REP_NONE: none */
    bool held, polls;
    size_t arrival;
    /* barriers: of all threads */
    struct loads *loads; /* [n_threads] */
    double *mean;        /* [generation] */
    uint64_t n_generations;
};

const char *rep_change_refused(const struct rep_report *r, const struct rep_advice *a) {
    switch (a->cause) {
    case REP_HOT_LOCK:
        for (uint32_t i = 0; i < r->info.n_objects; i++)
            if (r->objects[i].type == SBT_TRACE_COND && r->objects[i].mutex == a->object)
                return "a condition is waited for with this lock, so it cannot be split";
        return NULL;
    case REP_LOCK_OVER_IO:
    case REP_BARRIER_IMBALANCE:
    case REP_FALSE_SPIN:
    case REP_MANY_LOCKS:
        return NULL;
    case REP_BROADCAST_STORM:
    case REP_FUTILE_WAKEUPS:
        return "a trace does not say which thread a signal should have woken";
    case REP_IDLE:
        return "threads that wait for work cost no time";
    case REP_OFF_CPU:
        return "a trace does not say what a thread sleeps for";
    case REP_LOCK_ORDER:
        return "the change makes nothing faster";
    case REP_TOO_MANY_THREADS:
    case REP_SERIAL:
        return "a trace does not say how other threads would share the work";
    default:
        return "the program stays as it is";
    }
}

static bool is_lock(uint8_t op) {
    return op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_TRYLOCK || op == SBT_TRACE_SPIN_LOCK ||
           op == SBT_TRACE_SPIN_TRYLOCK || op == SBT_TRACE_RWLOCK_WRLOCK || op == SBT_TRACE_RWLOCK_RDLOCK ||
           op == SBT_TRACE_RWLOCK_TRYWRLOCK || op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

static bool is_trylock(uint8_t op) {
    return op == SBT_TRACE_MUTEX_TRYLOCK || op == SBT_TRACE_SPIN_TRYLOCK || op == SBT_TRACE_RWLOCK_TRYWRLOCK ||
           op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

static bool is_unlock(uint8_t op) {
    return op == SBT_TRACE_MUTEX_UNLOCK || op == SBT_TRACE_SPIN_UNLOCK || op == SBT_TRACE_RWLOCK_UNLOCK;
}

static void put(struct pass *p, const struct sbt_trace_event *e) {
    if (p->error == 0)
        p->error = sbt_trace_append(p->writer, p->thread, e);
}

static void put_sleep(struct pass *p, uint64_t ns) {
    struct sbt_trace_event e = {.op = SBT_TRACE_THREAD_JOIN,
                                .result = ETIMEDOUT,
                                .object = SBT_TRACE_NONE,
                                .other = p->thread,
                                .site = SBT_TRACE_NONE,
                                .took_ns = ns};
    if (ns > 0)
        put(p, &e);
}

/* ---- each change: true if the event stays ---- */

static bool split(struct pass *p, struct sbt_trace_event *e) {
    if (e->object != p->advice->object)
        return true;
    if (is_lock(e->op))
        p->part = (uint32_t)(p->thread + p->n_taken++) % REP_SPLIT;
    e->object = p->part == 0 ? e->object : p->report->info.n_objects + p->part - 1;
    e->order = 0;
    return true;
}

/* Trylocks in a row, or a spin lock, become a lock of a mutex. */
static bool block(struct pass *p, struct sbt_trace_event *e) {
    static const uint8_t as_mutex[SBT_TRACE_N_OPS] = {[SBT_TRACE_SPIN_LOCK] = SBT_TRACE_MUTEX_LOCK,
                                                      [SBT_TRACE_SPIN_TRYLOCK] = SBT_TRACE_MUTEX_LOCK,
                                                      [SBT_TRACE_SPIN_UNLOCK] = SBT_TRACE_MUTEX_UNLOCK,
                                                      [SBT_TRACE_MUTEX_TRYLOCK] = SBT_TRACE_MUTEX_LOCK};
    if (e->object != p->advice->object)
        return true;
    if (is_trylock(e->op) && e->result != 0) {
        if (!p->polls)
            p->poll_work_ns = e->work_ns;
        p->polls = true;
        return false;
    }
    if (p->polls)
        e->work_ns = p->poll_work_ns;
    p->polls = false;
    e->type = e->type == SBT_TRACE_SPIN ? SBT_TRACE_MUTEX : e->type;
    e->op = as_mutex[e->op] != 0 ? as_mutex[e->op] : e->op;
    return true;
}

/* One section in so many takes the lock. The work of the others is done within it. */
static bool batch(struct pass *p, struct sbt_trace_event *e) {
    if (e->object >= p->report->info.n_objects || p->report->objects[e->object].group != p->advice->group)
        return true;
    if (is_unlock(e->op) && e->object == p->skipped) {
        p->skipped = REP_NONE;
        return false;
    }
    if (!is_lock(e->op) || e->result != 0 || p->skipped != REP_NONE || p->n_taken++ % REP_BATCH == 0)
        return true;
    p->skipped = e->object;
    return false;
}

/* Sleeps with the lock held are made up for behind its section. */
static uint64_t sleep_in_place(struct pass *p, uint64_t gap_ns) {
    if (p->changed && p->advice->cause == REP_LOCK_OVER_IO && p->held) {
        p->owed_ns += gap_ns;
        return 0;
    }
    return gap_ns;
}

/* By how much longer or shorter a thread works for a barrier's generation if all work for the same time. */
static double balance(const struct pass *p) {
    const struct loads *l = p->loads != NULL ? &p->loads[p->thread] : NULL;
    if (!p->changed || l == NULL || p->arrival >= l->n || l->own[p->arrival] == 0)
        return 1;
    return p->mean[l->generation[p->arrival]] / (double)l->own[p->arrival];
}

static bool change(struct pass *p, struct sbt_trace_event *e) {
    switch (p->advice->cause) {
    case REP_HOT_LOCK:
        return split(p, e);
    case REP_FALSE_SPIN:
        return block(p, e);
    case REP_MANY_LOCKS:
        return batch(p, e);
    default:
        return true;
    }
}

/* ---- a thread ---- */

bool rep_change_has_sleeps(const struct rep_advice *a) {
    return a->cause == REP_LOCK_OVER_IO || a->cause == REP_BARRIER_IMBALANCE;
}

static uint64_t gap_before(const struct pass *p, const struct sbt_trace_event *e) {
    uint64_t ready_ns = p->ended_ns + e->work_ns;
    uint64_t gap_ns = p->ended_ns > 0 && e->at_ns > ready_ns ? e->at_ns - ready_ns : 0;
    return rep_change_has_sleeps(p->advice) && gap_ns >= SLEEP_LEAST_NS ? gap_ns : 0;
}

static void step(struct pass *p, struct sbt_trace_event *e, uint64_t *kept_work_ns) {
    double scale = balance(p);
    uint64_t gap_ns = sleep_in_place(p, (uint64_t)(scale * (double)gap_before(p, e)));
    bool own = e->object == p->advice->object;
    p->ended_ns = e->at_ns + e->took_ns;
    e->work_ns = (uint64_t)(scale * (double)e->work_ns) + *kept_work_ns;
    *kept_work_ns = 0;
    if (own && e->op == SBT_TRACE_BARRIER_WAIT)
        p->arrival++;
    uint8_t op = e->op, result = e->result != 0;
    put_sleep(p, gap_ns);
    if (p->changed && !change(p, e)) {
        *kept_work_ns = p->advice->cause == REP_MANY_LOCKS ? e->work_ns : 0; /* of a poll it is the wait */
        return;
    }
    put(p, e);
    if (own && is_lock(op) && !result)
        p->held = true;
    if (own && is_unlock(op)) {
        p->held = false;
        put_sleep(p, p->owed_ns);
        p->owed_ns = 0;
    }
}

static void walk(struct pass *p, uint32_t thread) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    struct sbt_trace_error error;
    uint64_t kept_work_ns = 0;
    int more;
    p->thread = thread;
    p->part = 0;
    p->ended_ns = p->n_taken = p->owed_ns = p->poll_work_ns = 0;
    p->skipped = REP_NONE;
    p->held = p->polls = false;
    p->arrival = 0;
    sbt_trace_cursor_begin(p->trace, thread, &cursor);
    while (p->error == 0 && (more = sbt_trace_next(&cursor, &e, &error)) != 0) {
        if (more < 0)
            p->error = EILSEQ;
        else
            step(p, &e, &kept_work_ns);
    }
}

/* ---- barriers ---- */

static bool add_load(struct loads *l, uint64_t own, uint64_t generation) {
    if (l->n == l->room) {
        size_t room = 2 * l->room + 16;
        uint64_t *longer = realloc(l->own, room * sizeof *longer);
        l->own = longer != NULL ? longer : l->own;
        uint64_t *other = longer != NULL ? realloc(l->generation, room * sizeof *other) : NULL;
        if (other == NULL)
            return false;
        l->generation = other;
        l->room = room;
    }
    l->own[l->n] = own;
    l->generation[l->n++] = generation;
    return true;
}

static void load_of(struct pass *p, uint32_t thread) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    struct sbt_trace_error error;
    uint64_t own = 0;
    int more;
    p->ended_ns = 0;
    sbt_trace_cursor_begin(p->trace, thread, &cursor);
    while (p->error == 0 && (more = sbt_trace_next(&cursor, &e, &error)) != 0) {
        if (more < 0) {
            p->error = EILSEQ;
            return;
        }
        own += e.work_ns + gap_before(p, &e);
        p->ended_ns = e.at_ns + e.took_ns;
        if (e.op != SBT_TRACE_BARRIER_WAIT || e.object != p->advice->object)
            continue;
        if (e.order == UINT64_MAX) /* there is no room for one more */
            p->error = EILSEQ;
        else if (!add_load(&p->loads[thread], own, e.order))
            p->error = ENOMEM;
        p->n_generations = e.order > p->n_generations ? e.order : p->n_generations;
        own = 0;
    }
}

static void find_loads(struct pass *p) {
    uint32_t n_threads = p->report->info.n_threads;
    p->loads = calloc(n_threads, sizeof *p->loads);
    for (uint32_t t = 0; t < n_threads && p->loads != NULL; t++)
        load_of(p, t);
    p->mean = calloc(p->n_generations + 1, sizeof *p->mean);
    uint32_t *n = calloc(p->n_generations + 1, sizeof *n);
    if (p->loads == NULL || p->mean == NULL || n == NULL)
        p->error = ENOMEM;
    for (uint32_t t = 0; t < n_threads && p->error == 0; t++)
        for (size_t i = 0; i < p->loads[t].n; i++) {
            uint64_t g = p->loads[t].generation[i];
            p->mean[g] += ((double)p->loads[t].own[i] - p->mean[g]) / ++n[g];
        }
    free(n);
}

static void free_loads(struct pass *p) {
    for (uint32_t t = 0; p->loads != NULL && t < p->report->info.n_threads; t++) {
        free(p->loads[t].own);
        free(p->loads[t].generation);
    }
    free(p->loads);
    free(p->mean);
}

int rep_change_write(const struct sbt_trace *trace, const struct rep_report *report, const struct rep_advice *advice,
                     bool changed, const char *path) {
    struct pass p = {.trace = trace, .report = report, .advice = advice, .changed = changed};
    p.writer = sbt_trace_create(path, report->info.command);
    if (p.writer == NULL)
        return errno;
    if (changed && advice->cause == REP_BARRIER_IMBALANCE)
        find_loads(&p);
    for (uint32_t t = 0; t < report->info.n_threads; t++)
        walk(&p, t);
    free_loads(&p);
    int error = sbt_trace_finish(p.writer);
    return p.error != 0 ? p.error : error;
}
