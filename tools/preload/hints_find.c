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

enum { THREADS = 16384, HELD = 256 /* so many last times that a turn was kept are looked at */ };

struct last {
    uint32_t site;
    uint64_t end_ns; /* when its operation, or the wait in it, was over */
};

struct held {
    uint64_t begin_ns, end_ns;
    uint32_t site, thread; /* the thread has not lost it */
    bool is_passing;
};

struct reading {
    struct hints_profile profile;
    uint64_t (*seen)[THREADS / 64]; /* of each site: the threads that made operations there */
    size_t n_known;                 /* sites; [0] is that of operations without one */
    struct last last[THREADS];
    struct held held[HELD];
    size_t n_held; /* all of them */
    uint64_t given_ns;
    uint32_t giver; /* plus 1: the thread of the event then; 0: there was none */
};

static struct hints_site *site_of(struct reading *r, const struct schedule_log *log, uint32_t site) {
    while (r->n_known <= site) {
        r->profile.sites = cmd_reallocate(r->profile.sites, r->n_known + 1, sizeof *r->profile.sites);
        r->seen = cmd_reallocate(r->seen, r->n_known + 1, sizeof *r->seen);
        memset(r->seen[r->n_known], 0, sizeof *r->seen);
        r->profile.sites[r->n_known] = (struct hints_site){.name = schedule_site(log, (uint32_t)r->n_known)};
        r->n_known++;
    }
    return &r->profile.sites[site];
}

/* The event's thread has waited from `from` on: for which sites? */
static void share_loss(struct reading *r, const struct schedule_event *e, uint64_t from) {
    size_t oldest = r->n_held > HELD ? r->n_held - HELD : 0;
    for (size_t i = r->n_held; i > oldest; i--) {
        const struct held *h = &r->held[(i - 1) % HELD];
        if (h->end_ns <= from)
            break;
        uint64_t begin = h->begin_ns > from ? h->begin_ns : from, end = h->end_ns < e->real_ns ? h->end_ns : e->real_ns;
        if (h->thread == e->thread || end <= begin)
            continue;
        struct hints_site *site = &r->profile.sites[h->site];
        *(h->is_passing ? &site->passed_ns : &site->lost_ns) += (double)(end - begin);
        r->profile.lost_ns += (double)(end - begin);
    }
}

/* The event's thread had come at that time, or before it was given the turn. */
static void take_pass(struct reading *r, const struct schedule_event *e, uint64_t came) {
    uint64_t begin = came > r->given_ns ? came : r->given_ns;
    uint32_t site = r->giver != 0 ? r->last[r->giver - 1].site : 0;
    if (site != 0 && r->giver != e->thread + 1 && e->real_ns > begin)
        r->held[r->n_held++ % HELD] = (struct held){begin, e->real_ns, site, r->giver - 1, true};
}

static void take_op(struct reading *r, const struct schedule_log *log, const struct schedule_event *e) {
    struct last *last = &r->last[e->thread];
    uint64_t came = e->real_ns > e->waited_ns ? e->real_ns - e->waited_ns : 0;
    site_of(r, log, e->site);
    if (last->site != 0) {
        struct hints_site *site = site_of(r, log, last->site);
        uint64_t begin = r->given_ns > last->end_ns ? r->given_ns : last->end_ns;
        site->n++;
        site->compute_ns += came > last->end_ns ? came - last->end_ns : 0;
        if (came > begin)
            r->held[r->n_held++ % HELD] = (struct held){begin, came, last->site, e->thread, false};
    }
    take_pass(r, e, came);
    if (e->waited_ns > 0)
        share_loss(r, e, came);
    last->site = e->site;
    last->end_ns = e->real_ns;
    r->seen[e->site][e->thread / 64] |= UINT64_C(1) << e->thread % 64;
    r->profile.n_ops++;
}

static int by_loss(const void *a, const void *b) {
    const struct hints_site *p = a, *q = b;
    double of_p = p->lost_ns + p->passed_ns, of_q = q->lost_ns + q->passed_ns;
    return (of_p < of_q) - (of_p > of_q);
}

/* The site 0 is none. */
static void finish(struct reading *r) {
    struct symbols *symbols = symbols_new();
    struct hints_profile *p = &r->profile;
    for (size_t i = 1; i < r->n_known; i++) {
        for (size_t w = 0; w < THREADS / 64; w++)
            p->sites[i].n_threads += (uint32_t)__builtin_popcountll(r->seen[i][w]);
        p->sites[i].place = cmd_format("%s", symbols_name(symbols, p->sites[i].name));
    }
    symbols_free(symbols);
    free(r->seen);
    if (r->n_known == 0)
        return;
    free(p->sites[0].name);
    p->n_sites = r->n_known - 1;
    memmove(p->sites, p->sites + 1, p->n_sites * sizeof *p->sites);
    qsort(p->sites, p->n_sites, sizeof *p->sites, by_loss);
}

struct hints_profile hints_profile(const char *subcommand, const char *path) {
    struct schedule_log *log = schedule_take(subcommand, path);
    struct reading *r = cmd_allocate(1, sizeof *r);
    struct schedule_event e;
    while (schedule_read(subcommand, log, &e)) {
        if (!e.has_real || e.thread >= THREADS)
            continue;
        if (e.kind == SCHEDULE_EVENT_OP) {
            take_op(r, log, &e);
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
    finish(r);
    schedule_close(log);
    struct hints_profile p = r->profile;
    free(r);
    return p;
}

void hints_profile_free(struct hints_profile *p) {
    for (size_t i = 0; i < p->n_sites; i++) {
        free(p->sites[i].name);
        free(p->sites[i].place);
    }
    free(p->sites);
}
