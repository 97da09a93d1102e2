/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events to a timeline; see lanes.h. A thread's time is cut into spans, each of one activity with one object: what lies
 * between two calls, and each call. A span adds to the cells that it touches. Only one cell is open at a time, since
 * spans come in the order of time; its sums are in a small table, and it is closed when a span leaves it.
 */
#include "lanes.h"

#include <string.h>

enum {
    N_SUMS = 32, /* activities of one cell; if there are more the smallest is given up */
    N_HELD = 128 /* locks that a thread holds at the same time; further ones are not seen as held */
};

struct sum {
    uint64_t ns;
    uint32_t object;
    uint8_t activity;
};

struct held {
    uint64_t since_ns;
    uint32_t object;
    uint32_t layer; /* n_layers: none */
};

struct lane {
    const struct sbt_trace_lanes *wanted;
    uint32_t number;
    bool ends_are_known; /* of holds. A profile has no event of an unlock that no thread waited for */
    uint64_t now_ns;     /* the spans before this are in the cells */
    uint32_t cell;       /* that is open */
    struct sum sums[N_SUMS];
    unsigned n_sums;
    struct held held[N_HELD];
    unsigned n_held;
};

/* The cell, of n, that `ns` is in. Times have 64 bits and cells few: no product leaves 128 bits. */
static uint32_t cell_of(const struct sbt_trace_lanes *w, uint64_t ns, uint32_t n) {
    if (ns <= w->from_ns)
        return 0;
    if (ns >= w->to_ns)
        return n - 1;
    return (uint32_t)((unsigned __int128)(ns - w->from_ns) * n / (w->to_ns - w->from_ns));
}

/* Where cell `cell` begins: the first nanosecond that cell_of puts into it. */
static uint64_t cell_begin(const struct sbt_trace_lanes *w, uint32_t cell) {
    unsigned __int128 length = w->to_ns - w->from_ns;
    return w->from_ns + (uint64_t)((length * cell + w->n_cells - 1) / w->n_cells);
}

static void close_cell(struct lane *l) {
    const struct sum *most = NULL;
    for (unsigned i = 0; i < l->n_sums; i++)
        if (most == NULL || l->sums[i].ns > most->ns)
            most = &l->sums[i];
    size_t at = (size_t)l->number * l->wanted->n_cells + l->cell;
    if (l->wanted->activity != NULL)
        l->wanted->activity[at] = most != NULL ? most->activity : SBT_TRACE_ABSENT;
    if (l->wanted->object != NULL)
        l->wanted->object[at] = most != NULL ? most->object : SBT_TRACE_NONE;
    l->n_sums = 0;
    l->cell++;
}

static void add(struct lane *l, uint8_t activity, uint32_t object, uint64_t ns) {
    struct sum *least = &l->sums[0];
    for (unsigned i = 0; i < l->n_sums; i++) {
        struct sum *s = &l->sums[i];
        if (s->activity == activity && s->object == object) {
            s->ns += ns;
            return;
        }
        if (s->ns < least->ns)
            least = s;
    }
    if (l->n_sums < N_SUMS)
        least = &l->sums[l->n_sums++];
    *least = (struct sum){ns, object, activity};
}

/* The thread did this from l->now_ns until `end_ns`. */
static void span(struct lane *l, uint8_t activity, uint32_t object, uint64_t end_ns) {
    const struct sbt_trace_lanes *w = l->wanted;
    if (end_ns <= l->now_ns)
        return;
    if (end_ns > w->from_ns && l->now_ns < w->to_ns && w->n_cells > 0) {
        uint64_t at = l->now_ns > w->from_ns ? l->now_ns : w->from_ns, end = end_ns < w->to_ns ? end_ns : w->to_ns;
        while (at < end) {
            while (l->cell < cell_of(w, at, w->n_cells))
                close_cell(l);
            uint64_t next = l->cell + 1 < w->n_cells ? cell_begin(w, l->cell + 1) : w->to_ns;
            uint64_t until = next < end ? next : end;
            add(l, activity, object, until - at);
            at = until;
        }
    }
    l->now_ns = end_ns;
}

/* ---- objects: their layers ---- */

static uint32_t layer_of(const struct sbt_trace_lanes *w, uint32_t object) {
    uint32_t low = 0, high = w->n_layers;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->layer_object[middle] < object)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->n_layers && w->layer_object[low] == object ? low : w->n_layers;
}

static void mark(const struct lane *l, uint32_t layer, uint8_t bit, uint64_t from_ns, uint64_t to_ns) {
    const struct sbt_trace_lanes *w = l->wanted;
    if (w->layer == NULL || layer == w->n_layers || w->n_layer_cells == 0 || to_ns <= w->from_ns || from_ns >= w->to_ns)
        return;
    uint8_t *cells = w->layer + ((size_t)layer * w->n_lanes + l->number) * w->n_layer_cells;
    uint32_t last = cell_of(w, to_ns > from_ns ? to_ns - 1 : from_ns, w->n_layer_cells);
    for (uint32_t c = cell_of(w, from_ns, w->n_layer_cells); c <= last; c++)
        cells[c] |= bit;
}

static void hold(struct lane *l, uint32_t object, uint64_t since_ns) {
    if (l->ends_are_known && l->n_held < N_HELD)
        l->held[l->n_held++] = (struct held){since_ns, object, layer_of(l->wanted, object)};
}

static void let_go(struct lane *l, uint32_t object, uint64_t at_ns) {
    for (unsigned i = l->n_held; i-- > 0;) {
        struct held *h = &l->held[i];
        if (h->object != object)
            continue;
        mark(l, h->layer, SBT_TRACE_LAYER_HELD, h->since_ns, at_ns);
        memmove(h, h + 1, (--l->n_held - i) * sizeof *h);
        return;
    }
}

/* ---- events ---- */

enum { TAKES = 1, GIVES = 2, MAY_WAIT = 4 };

static const uint8_t does[SBT_TRACE_N_OPS] = {
    [SBT_TRACE_THREAD_JOIN] = MAY_WAIT,   [SBT_TRACE_MUTEX_LOCK] = TAKES | MAY_WAIT,
    [SBT_TRACE_MUTEX_TRYLOCK] = TAKES,    [SBT_TRACE_MUTEX_UNLOCK] = GIVES,
    [SBT_TRACE_COND_WAIT] = MAY_WAIT, /* and gives its mutex and takes it again */
    [SBT_TRACE_BARRIER_WAIT] = MAY_WAIT,  [SBT_TRACE_RWLOCK_RDLOCK] = TAKES | MAY_WAIT,
    [SBT_TRACE_RWLOCK_TRYRDLOCK] = TAKES, [SBT_TRACE_RWLOCK_WRLOCK] = TAKES | MAY_WAIT,
    [SBT_TRACE_RWLOCK_TRYWRLOCK] = TAKES, [SBT_TRACE_RWLOCK_UNLOCK] = GIVES,
    [SBT_TRACE_SEM_WAIT] = MAY_WAIT,      [SBT_TRACE_SPIN_LOCK] = TAKES | MAY_WAIT,
    [SBT_TRACE_SPIN_TRYLOCK] = TAKES,     [SBT_TRACE_SPIN_UNLOCK] = GIVES,
    [SBT_TRACE_FUTEX_WAIT] = MAY_WAIT,    [SBT_TRACE_OUTSIDE_WAIT] = MAY_WAIT,
};

enum { OFF_LEAST_NS = 10000 }; /* shorter gaps may be the recorder's */

static void run(struct lane *l, uint64_t until_ns) {
    if (l->n_held > 0)
        span(l, SBT_TRACE_SECTION, l->held[l->n_held - 1].object, until_ns);
    else
        span(l, SBT_TRACE_RUNNING, SBT_TRACE_NONE, until_ns);
}

/* Between two calls: it is not known when in that time the thread worked. */
static void pass(struct lane *l, const struct sbt_trace_event *e) {
    uint64_t gap_ns = e->at_ns > l->now_ns ? e->at_ns - l->now_ns : 0;
    if (l->n_held == 0 && gap_ns >= OFF_LEAST_NS && e->work_ns < gap_ns / 2)
        span(l, SBT_TRACE_OFF_CPU, SBT_TRACE_NONE, e->at_ns);
    else
        run(l, e->at_ns);
}

static void wait_for(struct lane *l, const struct sbt_trace_event *e) {
    uint64_t end_ns = e->at_ns + e->took_ns;
    if (e->op == SBT_TRACE_THREAD_JOIN) {
        span(l, SBT_TRACE_JOINING, e->other, end_ns);
        return;
    }
    if (e->op == SBT_TRACE_OUTSIDE_WAIT) {
        span(l, SBT_TRACE_OUTSIDE, SBT_TRACE_NONE, end_ns);
        return;
    }
    mark(l, layer_of(l->wanted, e->object), SBT_TRACE_LAYER_WAITED, e->at_ns, end_ns);
    span(l, (uint8_t)(SBT_TRACE_WAITING + e->type - 1), e->object, end_ns);
}

/* What the thread was in when the trace ended. If it is not known at what it waited the lane ends where that began. */
static void add_last_wait(struct lane *l, const struct sbt_trace_event *e) {
    struct sbt_trace_event wait = *e;
    wait.op = (uint8_t)sbt_trace_waits_in(e);
    pass(l, e);
    if (wait.op == SBT_TRACE_COND_WAIT && l->n_held > 0) /* without the mutex, which it took last */
        let_go(l, l->held[l->n_held - 1].object, e->at_ns);
    if (wait.op < SBT_TRACE_N_OPS &&
        (wait.op == SBT_TRACE_OUTSIDE_WAIT || wait.op == SBT_TRACE_THREAD_JOIN || wait.type != SBT_TRACE_NO_OBJECT))
        wait_for(l, &wait);
}

static void add_event(struct lane *l, const struct sbt_trace_event *e) {
    uint64_t end_ns = e->at_ns + e->took_ns;
    pass(l, e);
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE)
        let_go(l, e->other, e->at_ns);
    if ((does[e->op] & GIVES) != 0 && e->result == 0)
        let_go(l, e->object, e->at_ns);
    bool has_object =
        e->type != SBT_TRACE_NO_OBJECT || e->op == SBT_TRACE_THREAD_JOIN || e->op == SBT_TRACE_OUTSIDE_WAIT;
    if ((does[e->op] & MAY_WAIT) != 0 && e->took_ns >= SBT_TRACE_WAIT_NS && has_object)
        wait_for(l, e);
    else
        run(l, end_ns);
    if ((does[e->op] & TAKES) != 0 && e->result == 0)
        hold(l, e->object, end_ns);
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE)
        hold(l, e->other, end_ns);
}

/* A generated trace's clock is the sum of what came before. 1, 0 at the end, -1 and *error. */
static int next(struct sbt_trace_cursor *cursor, uint64_t *clock_ns, struct sbt_trace_event *event,
                struct sbt_trace_error *error) {
    int r = sbt_trace_next(cursor, event, error);
    if (r == 1 && sbt_trace_info(cursor->trace)->generated)
        event->at_ns = *clock_ns + event->work_ns;
    if (r == 1)
        *clock_ns = event->at_ns + event->took_ns;
    return r;
}

static int read_lane(const struct sbt_trace *trace, struct lane *l, struct sbt_trace_error *error) {
    const struct sbt_trace_lanes *w = l->wanted;
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    uint64_t clock_ns = 0;
    int r;
    sbt_trace_cursor_begin(trace, w->thread[l->number], &cursor);
    for (bool first = true; (r = next(&cursor, &clock_ns, &event, error)) == 1; first = false) {
        if (first) /* the thread began with the work before it */
            l->now_ns = event.at_ns - (event.work_ns < event.at_ns ? event.work_ns : event.at_ns);
        if (sbt_trace_still_runs(&event))
            add_last_wait(l, &event);
        else
            add_event(l, &event);
    }
    while (l->n_held > 0) /* what the trace's end cut off */
        let_go(l, l->held[l->n_held - 1].object, l->now_ns);
    while (l->cell < w->n_cells)
        close_cell(l);
    return r;
}

int sbt_trace_read_lanes(const struct sbt_trace *trace, const struct sbt_trace_lanes *lanes,
                         struct sbt_trace_error *error) {
    for (uint32_t i = 0; i < lanes->n_lanes; i++) {
        struct lane lane = {.wanted = lanes, .number = i, .ends_are_known = !sbt_trace_info(trace)->profile};
        if (read_lane(trace, &lane, error) < 0)
            return -1;
    }
    return 0;
}

int sbt_trace_end(const struct sbt_trace *trace, uint64_t *end_ns, struct sbt_trace_error *error) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    *end_ns = info->duration_ns;
    if (info->whole && !info->generated)
        return 0;
    for (uint32_t t = 0; t < info->n_threads; t++) {
        uint64_t clock_ns = 0;
        int r;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = next(&cursor, &clock_ns, &event, error)) == 1)
            ;
        if (r < 0)
            return -1;
        if (clock_ns > *end_ns)
            *end_ns = clock_ns;
    }
    return 0;
}
