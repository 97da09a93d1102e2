/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces changed as an advice says; see change.h. One pass over each thread's events; what the pass remembers of a
 * thread is in struct passed.
 *
 * The simulator gives locks to the thread that asks first, but lets no thread come long before its turn to a mutex with
 * which threads wait for conditions (sim/owner.h). So of such a mutex the numbers of acquisitions have no gap: where
 * some are left out the others are counted anew. Of locks that are split, or taken for more work, there are no numbers.
 *
 * A sleep is written as a join that timed out: the simulator lets a thread do nothing for as long as that took.
 */
#include "change.h"

#include <errno.h>
#include <stdlib.h>

#include "walk.h"

#define SLEEP_LEAST_NS 100000 /* shorter gaps between events are the system's */

/* A thread's work and sleep since it was last at the barrier, and what it would be if all had the mean. */
struct loads {
    uint64_t *own; /* by the thread's arrivals */
    uint64_t *generation;
    size_t n, room;
};

/* What the pass remembers of the thread that it goes through. */
struct passed {
    uint32_t number;
    uint32_t depth;      /* how often the thread holds the advice's lock: read-write locks can be held twice */
    uint32_t part;       /* of a split lock: which it holds, or held last */
    uint64_t ended_ns;   /* the last event's end */
    uint64_t n_taken;    /* acquisitions of the lock, or of the group's */
    uint64_t owed_ns;    /* sleep that comes behind the section */
    uint64_t work_ns;    /* before calls that were left out: the next event has it */
    uint64_t n_polls;    /* failed trylocks in a row that were left out */
    uint64_t poll_ns[2]; /* the work before the first of them, and before all */
    uint32_t skipped;    /* the lock that is held, but left out; REP_NONE: none */
    uint32_t skipped_depth;
    bool keeps; /* a wait for the condition, which may have been in vain */
    struct sbt_trace_event kept;
    size_t arrival;
};

/* An acquisition that the changed trace does not have, by its number. */
struct left_out {
    uint64_t mutex, number;
};

struct pass {
    const struct sbt_trace *trace;
    const struct rep_report *report;
    const struct rep_advice *advice;
    struct sbt_trace_writer *writer;
    bool changed;
    int error;
    rep_progress *progress;
    void *progress_to;
    uint64_t n_read, n_to_read; /* events */
    struct passed thread;
    /* barriers: of all threads */
    struct loads *loads; /* [n_threads] */
    double *mean;        /* [generation] */
    uint64_t n_generations;
    /* a condition: how many waits each signal ended that were not in vain, by its number; 2: two or more */
    uint8_t *n_woken;
    uint64_t n_signals;
    struct left_out *left_out; /* with the waits that were in vain; in order */
    size_t n_left_out, left_out_room;
};

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

static bool gets(const struct sbt_trace_event *e) {
    return is_lock(e->op) && (e->result == 0 || e->result == EOWNERDEAD);
}

static bool gives(const struct sbt_trace_event *e) {
    return is_unlock(e->op) && e->result == 0;
}

static void put(struct pass *p, const struct sbt_trace_event *e) {
    if (p->error == 0)
        p->error = sbt_trace_append(p->writer, p->thread.number, e);
}

/* Work, and then sleep. */
static void put_sleep(struct pass *p, uint64_t work_ns, uint64_t ns) {
    struct sbt_trace_event e = {.op = SBT_TRACE_THREAD_JOIN,
                                .result = ETIMEDOUT,
                                .object = SBT_TRACE_NONE,
                                .other = p->thread.number,
                                .site = SBT_TRACE_NONE,
                                .work_ns = work_ns,
                                .took_ns = ns};
    if (work_ns + ns > 0)
        put(p, &e);
}

/* ---- each change: true if the event stays ---- */

static uint32_t part_object(const struct pass *p) {
    return p->thread.part == 0 ? p->advice->object : p->report->info.n_objects + p->thread.part - 1;
}

/*
 * The thread takes the parts in turn. It keeps one for as long as it holds it, and a call that fails takes none. Its
 * trylocks fail at the part that it would take.
 */
static bool split(struct pass *p, struct sbt_trace_event *e) {
    struct passed *t = &p->thread;
    if (e->object != p->advice->object || !(is_lock(e->op) || is_unlock(e->op)))
        return true;
    if (is_lock(e->op) && t->depth == 0)
        t->part = (uint32_t)((t->number + t->n_taken) % REP_SPLIT);
    t->n_taken += gets(e) && t->depth == 0;
    e->object = part_object(p);
    e->order = 0;
    return true;
}

/*
 * The run of failed trylocks that were left out is over. If the lock was got, the work between them was the wait;
 * otherwise the thread did something else meanwhile, and so it did if there were only a few (rep_poll_end).
 */
static uint64_t work_of_polls(struct passed *t, bool got) {
    uint64_t ns = got && t->n_polls >= REP_LEAST_POLLS ? t->poll_ns[0] : t->poll_ns[1];
    t->n_polls = t->poll_ns[0] = t->poll_ns[1] = 0;
    return ns;
}

/* Trylocks in a row, or a spin lock, become a lock that waits. */
static bool block(struct pass *p, struct sbt_trace_event *e) {
    static const uint8_t waits[SBT_TRACE_N_OPS] = {
        [SBT_TRACE_SPIN_LOCK] = SBT_TRACE_MUTEX_LOCK,           [SBT_TRACE_SPIN_TRYLOCK] = SBT_TRACE_MUTEX_LOCK,
        [SBT_TRACE_SPIN_UNLOCK] = SBT_TRACE_MUTEX_UNLOCK,       [SBT_TRACE_MUTEX_TRYLOCK] = SBT_TRACE_MUTEX_LOCK,
        [SBT_TRACE_RWLOCK_TRYRDLOCK] = SBT_TRACE_RWLOCK_RDLOCK, [SBT_TRACE_RWLOCK_TRYWRLOCK] = SBT_TRACE_RWLOCK_WRLOCK};
    struct passed *t = &p->thread;
    bool own = e->object == p->advice->object;
    if (own && is_trylock(e->op) && !gets(e)) {
        if (t->n_polls++ == 0)
            t->poll_ns[0] = e->work_ns;
        t->poll_ns[1] += e->work_ns;
        return false;
    }
    bool got = own && gets(e);
    if (got && t->n_polls >= REP_LEAST_POLLS)
        e->work_ns = 0;
    e->work_ns += work_of_polls(t, got);
    if (own) {
        e->type = e->type == SBT_TRACE_SPIN ? SBT_TRACE_MUTEX : e->type;
        e->op = waits[e->op] != 0 ? waits[e->op] : e->op;
    }
    return true;
}

/* A section that waits for a condition cannot do without its lock. */
static void take_skipped(struct pass *p) {
    struct sbt_trace_event e = {.op = SBT_TRACE_MUTEX_LOCK,
                                .type = SBT_TRACE_MUTEX,
                                .object = p->thread.skipped,
                                .other = SBT_TRACE_NONE,
                                .site = SBT_TRACE_NONE};
    put(p, &e);
    p->thread.skipped = REP_NONE;
}

static bool is_of_group(const struct pass *p, uint32_t object) {
    return object < p->report->info.n_objects && p->report->objects[object].group == p->advice->group;
}

/* One section in so many takes the lock. The work of the others is done within it. */
static bool batch(struct pass *p, struct sbt_trace_event *e) {
    struct passed *t = &p->thread;
    if (e->op == SBT_TRACE_COND_WAIT && e->other == t->skipped && t->skipped != REP_NONE)
        take_skipped(p);
    if (e->op == SBT_TRACE_COND_WAIT && is_of_group(p, e->other))
        e->relock = 0;
    if (!is_of_group(p, e->object))
        return true;
    if (t->skipped == REP_NONE && gets(e) && t->n_taken++ % REP_BATCH != 0) {
        t->skipped = e->object;
        t->skipped_depth = 0;
    }
    if (!(is_lock(e->op) || is_unlock(e->op)))
        return true;
    if (e->object != t->skipped) {
        e->order = 0;
        return true;
    }
    t->skipped_depth += gets(e);
    if (gives(e) && --t->skipped_depth == 0)
        t->skipped = REP_NONE;
    return false;
}

/* ---- waits that were in vain ---- */

/* How many of the mutex's acquisitions that are left out come before this number? */
static size_t place_of(const struct pass *p, uint64_t mutex, uint64_t number) {
    size_t from = 0, to = p->n_left_out;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct left_out *l = &p->left_out[middle];
        if (l->mutex < mutex || (l->mutex == mutex && l->number < number))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static uint64_t counted_anew(const struct pass *p, uint32_t mutex, uint64_t number) {
    uint64_t n = place_of(p, mutex, number) - place_of(p, mutex, 0);
    return n < number ? number - n : number; /* a damaged trace may have a number twice */
}

static bool is_of_condition(const struct pass *p, const struct sbt_trace_event *e, unsigned op) {
    return e->object == p->advice->object && e->op == op;
}

/*
 * Waits that ended in vain go on until a signal that did not: the thread that waits for the condition again without a
 * call between was woken for nothing. A broadcast that ended one other wait becomes a signal for that.
 */
static bool wake_needed(struct pass *p, struct sbt_trace_event *e) {
    struct passed *t = &p->thread;
    bool waits = is_of_condition(p, e, SBT_TRACE_COND_WAIT);
    if (e->type == SBT_TRACE_MUTEX && is_lock(e->op))
        e->order = counted_anew(p, e->object, e->order);
    else if (e->op == SBT_TRACE_COND_WAIT)
        e->relock = counted_anew(p, e->other, e->relock);
    if (t->keeps && waits)
        e->work_ns = t->kept.work_ns;
    else if (t->keeps)
        put(p, &t->kept);
    t->keeps = waits && e->result == 0;
    t->kept = *e;
    if (is_of_condition(p, e, SBT_TRACE_COND_BROADCAST) && (e->order >= p->n_signals || p->n_woken[e->order] < 2))
        e->op = SBT_TRACE_COND_SIGNAL;
    return !t->keeps;
}

/*
 * Sleeps with the lock held are made up for behind its section, or at the thread's end. A wait for a condition gives
 * the lock back and takes it again, so they come behind the section that follows it.
 */
static uint64_t sleep_in_place(struct pass *p, const struct sbt_trace_event *e, uint64_t gap_ns) {
    struct passed *t = &p->thread;
    if (!p->changed || p->advice->cause != REP_LOCK_OVER_IO || t->depth == 0)
        return gap_ns;
    t->owed_ns += gap_ns;
    gap_ns = e->op == SBT_TRACE_THREAD_END ? t->owed_ns : 0;
    t->owed_ns -= gap_ns;
    return gap_ns;
}

/* By how much longer or shorter a thread works for a barrier's generation if all work for the same time. */
static double balance(const struct pass *p) {
    const struct passed *t = &p->thread;
    const struct loads *l = p->loads != NULL ? &p->loads[t->number] : NULL;
    if (!p->changed || l == NULL || t->arrival >= l->n || l->own[t->arrival] == 0)
        return 1;
    return p->mean[l->generation[t->arrival]] / (double)l->own[t->arrival];
}

/* The work before an arrival of a thread that has not worked for the generation at all. */
static uint64_t work_of_the_idle(const struct pass *p) {
    const struct passed *t = &p->thread;
    const struct loads *l = p->loads != NULL ? &p->loads[t->number] : NULL;
    bool idle = p->changed && l != NULL && t->arrival < l->n && l->own[t->arrival] == 0;
    return idle ? (uint64_t)p->mean[l->generation[t->arrival]] : 0;
}

static bool change(struct pass *p, struct sbt_trace_event *e) {
    switch (p->advice->cause) {
    case REP_HOT_LOCK:
        return split(p, e);
    case REP_FALSE_SPIN:
        return block(p, e);
    case REP_MANY_LOCKS:
        return batch(p, e);
    case REP_BROADCAST_STORM:
    case REP_FUTILE_WAKEUPS:
        return wake_needed(p, e);
    default:
        return true;
    }
}

/* ---- a thread ---- */

/* The thread's next event; false: there is none, or the trace is damaged. */
static bool next(struct pass *p, struct sbt_trace_cursor *cursor, struct sbt_trace_event *e) {
    struct sbt_trace_error error;
    int got = p->error == 0 ? rep_next(cursor, e, &error) : 0;
    if (got < 0)
        p->error = EILSEQ;
    if ((++p->n_read & 0x3FFF) == 0 && p->progress != NULL)
        p->progress(p->progress_to, (double)p->n_read / (double)(p->n_to_read + 1));
    return got > 0;
}

bool rep_change_has_sleeps(const struct rep_advice *a) {
    return a->cause == REP_LOCK_OVER_IO || a->cause == REP_BARRIER_IMBALANCE;
}

static uint64_t gap_before(const struct pass *p, const struct sbt_trace_event *e) {
    uint64_t ended_ns = p->thread.ended_ns, ready_ns = ended_ns + e->work_ns;
    uint64_t gap_ns = ended_ns > 0 && e->at_ns > ready_ns ? e->at_ns - ready_ns : 0;
    return rep_change_has_sleeps(p->advice) && gap_ns >= SLEEP_LEAST_NS ? gap_ns : 0;
}

/* The event is of the advice's lock: how often does the thread hold it now? */
static void count_depth(struct pass *p, bool got, bool gave) {
    struct passed *t = &p->thread;
    t->depth += got;
    if (!gave)
        return;
    t->depth -= t->depth > 0;
    if (t->depth > 0)
        return;
    put_sleep(p, 0, t->owed_ns);
    t->owed_ns = 0;
}

static void step(struct pass *p, struct sbt_trace_event *e) {
    struct passed *t = &p->thread;
    double scale = balance(p);
    bool own = e->object == p->advice->object, got = gets(e), gave = gives(e);
    put_sleep(p, 0, sleep_in_place(p, e, (uint64_t)(scale * (double)gap_before(p, e))));
    t->ended_ns = e->at_ns + e->took_ns;
    e->work_ns = (uint64_t)(scale * (double)e->work_ns) + t->work_ns;
    t->work_ns = 0;
    if (own && e->op == SBT_TRACE_BARRIER_WAIT) {
        e->work_ns += work_of_the_idle(p);
        t->arrival++;
    }
    if (!p->changed || change(p, e))
        put(p, e);
    else if (p->advice->cause == REP_MANY_LOCKS)
        t->work_ns = e->work_ns;
    if (own)
        count_depth(p, got, gave);
}

static void walk(struct pass *p, uint32_t thread) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    p->thread = (struct passed){.number = thread, .skipped = REP_NONE};
    sbt_trace_cursor_begin(p->trace, thread, &cursor);
    while (next(p, &cursor, &e))
        step(p, &e);
    if (p->thread.keeps)
        put(p, &p->thread.kept);
    /* Not every thread's last event is its end. */
    put_sleep(p, p->thread.work_ns + work_of_polls(&p->thread, false), p->thread.owed_ns);
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
    uint64_t own = 0;
    p->thread.ended_ns = 0;
    sbt_trace_cursor_begin(p->trace, thread, &cursor);
    while (next(p, &cursor, &e)) {
        own += e.work_ns + gap_before(p, &e);
        p->thread.ended_ns = e.at_ns + e.took_ns;
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

/* More of what calls are numbered by are in no trace, even of a program that was killed. */
static uint64_t most_numbers(const struct pass *p) {
    return 16 * p->report->info.n_events + 1024;
}

static void find_loads(struct pass *p) {
    uint32_t n_threads = p->report->info.n_threads;
    p->loads = calloc(n_threads, sizeof *p->loads);
    for (uint32_t t = 0; t < n_threads && p->loads != NULL; t++)
        load_of(p, t);
    if (p->error == 0 && p->n_generations > most_numbers(p))
        p->error = EILSEQ;
    bool counts = p->error == 0 && p->loads != NULL;
    p->mean = counts ? calloc(p->n_generations + 1, sizeof *p->mean) : NULL;
    uint32_t *n = counts ? calloc(p->n_generations + 1, sizeof *n) : NULL;
    if (p->error == 0 && (p->mean == NULL || n == NULL))
        p->error = ENOMEM;
    for (uint32_t t = 0; t < n_threads && p->error == 0; t++)
        for (size_t i = 0; i < p->loads[t].n; i++) {
            uint64_t g = p->loads[t].generation[i];
            p->mean[g] += ((double)p->loads[t].own[i] - p->mean[g]) / ++n[g];
        }
    free(n);
}

/* ---- conditions ---- */

/* All of the thread's waits for the condition that a signal ended. */
static void look_at_waits_of(struct pass *p, uint32_t thread,
                             void (*look)(struct pass *p, const struct sbt_trace_event *wait, bool in_vain)) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e, wait = {0};
    bool keeps = false;
    sbt_trace_cursor_begin(p->trace, thread, &cursor);
    while (next(p, &cursor, &e)) {
        bool waits = is_of_condition(p, &e, SBT_TRACE_COND_WAIT);
        if (keeps)
            look(p, &wait, waits);
        keeps = waits && e.result == 0;
        wait = e;
    }
    if (keeps)
        look(p, &wait, false);
}

static void count_most(struct pass *p, const struct sbt_trace_event *wait, bool in_vain) {
    if (wait->order == UINT64_MAX) /* there is no room for one more */
        p->error = EILSEQ;
    else if (!in_vain && wait->order >= p->n_signals)
        p->n_signals = wait->order + 1;
}

static void leave_out(struct pass *p, uint64_t mutex, uint64_t number) {
    if (p->n_left_out == p->left_out_room) {
        size_t room = 2 * p->left_out_room + 16;
        struct left_out *longer = realloc(p->left_out, room * sizeof *longer);
        if (longer == NULL) {
            p->error = ENOMEM;
            return;
        }
        p->left_out = longer;
        p->left_out_room = room;
    }
    p->left_out[p->n_left_out++] = (struct left_out){mutex, number};
}

static void count_woken(struct pass *p, const struct sbt_trace_event *wait, bool in_vain) {
    if (in_vain && wait->relock != 0)
        leave_out(p, wait->other, wait->relock);
    if (!in_vain && wait->order != 0)
        p->n_woken[wait->order] += p->n_woken[wait->order] < 2;
}

static int left_out_order(const void *a, const void *b) {
    const struct left_out *x = a, *y = b;
    if (x->mutex != y->mutex)
        return x->mutex < y->mutex ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void find_signals(struct pass *p) {
    for (uint32_t t = 0; t < p->report->info.n_threads && p->error == 0; t++)
        look_at_waits_of(p, t, count_most);
    if (p->error == 0 && p->n_signals > most_numbers(p))
        p->error = EILSEQ;
    p->n_woken = p->error == 0 ? calloc(p->n_signals + 1, 1) : NULL;
    if (p->n_woken == NULL && p->error == 0)
        p->error = ENOMEM;
    for (uint32_t t = 0; t < p->report->info.n_threads && p->error == 0; t++)
        look_at_waits_of(p, t, count_woken);
    if (p->n_left_out > 0)
        qsort(p->left_out, p->n_left_out, sizeof *p->left_out, left_out_order);
}

static void free_loads(struct pass *p) {
    for (uint32_t t = 0; p->loads != NULL && t < p->report->info.n_threads; t++) {
        free(p->loads[t].own);
        free(p->loads[t].generation);
    }
    free(p->loads);
    free(p->mean);
    free(p->n_woken);
    free(p->left_out);
}

int rep_change_write(const struct sbt_trace *trace, const struct rep_report *report, const struct rep_advice *advice,
                     bool changed, const char *path, rep_progress *progress, void *to) {
    struct pass p = {.trace = trace,
                     .report = report,
                     .advice = advice,
                     .changed = changed,
                     .progress = progress,
                     .progress_to = to};
    p.writer = sbt_trace_create(path, report->info.command);
    if (p.writer == NULL)
        return errno;
    bool balances = changed && advice->cause == REP_BARRIER_IMBALANCE;
    bool wakes = changed && (advice->cause == REP_BROADCAST_STORM || advice->cause == REP_FUTILE_WAKEUPS);
    p.n_to_read = (wakes ? 3 : balances ? 2 : 1) * report->info.n_events;
    if (balances)
        find_loads(&p);
    if (wakes)
        find_signals(&p);
    for (uint32_t t = 0; t < report->info.n_threads; t++)
        walk(&p, t);
    free_loads(&p);
    int error = sbt_trace_finish(p.writer);
    return p.error != 0 ? p.error : error;
}
