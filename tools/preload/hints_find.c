/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The turn is kept waiting from when a thread was given it until the thread has computed and comes. A thread that comes
 * for the turn meanwhile, and has it later, has lost that time:
 *
 *     thread 1 | operation at S |  computes ................| next operation
 *     the turn |  goes round    | thread 1's: kept          |
 *     thread 2 |      computes      | waits: lost for S     | operation
 *
 * An event in the log has the time when it happened, R, and how long its thread had waited for the turn, W: the thread
 * came at R - W, and it was given the turn when the event before happened. If it had come by then, the time between the
 * two is what passing the turn on took after the event before, and is lost for the call site of that one.
 */
#include "hints_find.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "schedule_diff.h"

enum {
    HELD = 256,         /* so many last times that a turn was kept are looked at */
    TABLE = 1 << 16,    /* a power of 2 */
    WAYS_MOST = 1 << 15 /* further callers are not told apart */
};

struct last {
    uint32_t way;
    uint64_t end_ns; /* when its operation, or the wait in it, was over */
};

struct held {
    uint64_t begin_ns, end_ns;
    uint32_t way, thread; /* the thread has not lost it */
    bool is_passing;
};

struct reading {
    struct hints_profile profile;
    struct hints_way *ways; /* [0] is that of operations without a call site */
    size_t n_ways;
    uint32_t table[TABLE]; /* indices of ways; 0: free */
    struct last last[HINTS_THREADS];
    struct held held[HELD];
    size_t n_held; /* all of them */
    uint64_t given_ns;
    uint32_t giver; /* plus 1: the thread of the event then; 0: there was none */
};

static uint32_t add_way(struct reading *r, const uint32_t *calls) {
    if ((r->n_ways & (r->n_ways - 1)) == 0)
        r->ways = cmd_reallocate(r->ways, r->n_ways == 0 ? 1 : 2 * r->n_ways, sizeof *r->ways);
    memset(&r->ways[r->n_ways], 0, sizeof *r->ways);
    memcpy(r->ways[r->n_ways].calls, calls, sizeof r->ways->calls);
    return (uint32_t)r->n_ways++;
}

/* The index of its way. */
static uint32_t way_of(struct reading *r, const struct schedule_event *e) {
    uint32_t calls[HINTS_CALLS] = {e->site};
    uint64_t hash = e->site;
    for (size_t i = 1; i < HINTS_CALLS && e->site != 0 && r->n_ways < WAYS_MOST; i++) {
        calls[i] = e->caller[i - 1];
        hash = hash * SCHEDULE_HASH_FACTOR + calls[i];
    }
    uint32_t i = (uint32_t)(hash * SCHEDULE_HASH_FACTOR >> 40) % TABLE;
    if (e->site == 0)
        return 0;
    for (; r->table[i] != 0; i = (i + 1) % TABLE)
        if (memcmp(r->ways[r->table[i]].calls, calls, sizeof calls) == 0)
            return r->table[i];
    if (r->n_ways >= TABLE / 4 * 3)
        return 0;
    return r->table[i] = add_way(r, calls);
}

/* The event's thread has waited from `from` on: for which ways? */
static void share_loss(struct reading *r, const struct schedule_event *e, uint64_t from) {
    size_t oldest = r->n_held > HELD ? r->n_held - HELD : 0;
    for (size_t i = r->n_held; i > oldest; i--) {
        const struct held *h = &r->held[(i - 1) % HELD];
        if (h->end_ns <= from)
            break;
        uint64_t begin = h->begin_ns > from ? h->begin_ns : from, end = h->end_ns < e->real_ns ? h->end_ns : e->real_ns;
        if (h->thread == e->thread || end <= begin)
            continue;
        struct hints_way *way = &r->ways[h->way];
        *(h->is_passing ? &way->passed_ns : &way->lost_ns) += (double)(end - begin);
        r->profile.lost_ns += (double)(end - begin);
    }
}

/* The event's thread had come at that time, or before it was given the turn. */
static void take_pass(struct reading *r, const struct schedule_event *e, uint64_t came) {
    uint64_t begin = came > r->given_ns ? came : r->given_ns;
    uint32_t way = r->giver != 0 ? r->last[r->giver - 1].way : 0;
    if (way != 0 && r->giver != e->thread + 1 && e->real_ns > begin)
        r->held[r->n_held++ % HELD] = (struct held){begin, e->real_ns, way, r->giver - 1, true};
}

static void take_op(struct reading *r, const struct schedule_event *e) {
    struct last *last = &r->last[e->thread];
    uint64_t came = e->real_ns > e->waited_ns ? e->real_ns - e->waited_ns : 0;
    uint32_t here = way_of(r, e);
    if (last->way != 0) {
        struct hints_way *way = &r->ways[last->way];
        uint64_t begin = r->given_ns > last->end_ns ? r->given_ns : last->end_ns;
        uint64_t computed = came > last->end_ns ? came - last->end_ns : 0;
        way->n++;
        way->compute_ns += computed;
        way->buckets[hints_bucket_of(computed)]++;
        if (came > begin)
            r->held[r->n_held++ % HELD] = (struct held){begin, came, last->way, e->thread, false};
    }
    take_pass(r, e, came);
    if (e->waited_ns > 0)
        share_loss(r, e, came);
    last->way = here;
    last->end_ns = e->real_ns;
    r->ways[here].seen[e->thread / 64] |= UINT64_C(1) << e->thread % 64;
    r->profile.n_ops++;
}

struct hints_profile hints_profile(const char *subcommand, const char *path) {
    static const uint32_t no_calls[HINTS_CALLS];
    struct schedule_log *log = schedule_take(subcommand, path);
    struct reading *r = cmd_allocate(1, sizeof *r);
    struct schedule_event e;
    add_way(r, no_calls);
    while (schedule_read(subcommand, log, &e)) {
        if (!e.has_real || e.thread >= HINTS_THREADS)
            continue;
        if (e.kind == SCHEDULE_EVENT_OP) {
            take_op(r, &e);
        } else {
            take_pass(r, &e, 0);
            r->last[e.thread].end_ns = e.real_ns;
        }
        r->giver = e.thread + 1;
        r->given_ns = r->profile.wall_ns = e.real_ns;
    }
    if (schedule_is_full(log))
        cmd_refuse(
            "%s: the log of a run is not whole: its file could not grow (legal: TMPDIR, a folder with room for it)",
            subcommand);
    hints_group(&r->profile, log, r->ways, r->n_ways);
    schedule_close(log);
    struct hints_profile p = r->profile;
    free(r->ways);
    free(r);
    return p;
}

void hints_profile_free(struct hints_profile *p) {
    for (size_t i = 0; i < p->n_sites; i++) {
        for (size_t k = 0; k < p->sites[i].n_calls; k++)
            free(p->sites[i].calls[k]);
        free(p->sites[i].name);
        free(p->sites[i].place);
    }
    free(p->sites);
}
