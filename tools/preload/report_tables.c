/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of the text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_text.h"

enum { NAME_WIDTH = 30, CLASS_WIDTH = 38, PLACE_WIDTH = 26 };

static void critical_path(const struct text *t) {
    const struct rep_path *p = &t->r->path;
    char total[32];
    double ns = (double)p->ns;
    text_heading(t, "Critical path");
    char *unknown = p->unknown_ns > 0 ? cmd_format(", %.1f %% not known", text_percent((double)p->unknown_ns, ns))
                                      : cmd_format("%s", "");
    char *line =
        cmd_format("%s: %.1f %% work outside of locks, %.1f %% with a lock held, %.1f %% wake-ups and hand-overs, "
                   "%.1f %% waits that no known call ended, %.1f %% calls, %.1f %% off the processor%s",
                   format_ns(total, ns), text_percent((double)p->work_ns, ns), text_percent((double)p->held_ns, ns),
                   text_percent((double)p->wakeup_ns, ns), text_percent((double)p->waiting_ns, ns),
                   text_percent((double)p->calls_ns, ns), text_percent((double)p->off_cpu_ns, ns), unknown);
    text_paragraph(t->out, "  ", line);
    free(unknown);
    free(line);
}

static void object_row(const struct text *t, struct table *table, const struct report_row *row) {
    const struct rep_object *o = &t->r->objects[row->object];
    const struct rep_detail *d = !row->is_class && o->detail != REP_NONE ? &t->r->details[o->detail] : NULL;
    char *name = report_row_name(t->page, row);
    text_name(table, name, row->is_class ? CLASS_WIDTH : NAME_WIDTH);
    free(name);
    table_add(table, "%ju", (uintmax_t)row->n);
    table_add(table, "%ju", (uintmax_t)row->n_contended);
    text_ns(table, (double)row->wait_ns);
    text_ns(table, row->n_contended > 0 ? (double)row->wait_ns / (double)row->n_contended : (double)NAN);
    text_ns(table, d != NULL && d->wait.n > 0 ? rep_histogram_quantile(&d->wait, 0.99) : (double)NAN);
    text_ns(table, row->hold_n > 0 ? (double)row->hold_ns : (double)NAN);
    text_ns(table, row->hold_n > 0 ? (double)row->hold_ns / (double)row->hold_n : (double)NAN);
    text_ns(table, d != NULL && row->hold_n > 0 ? rep_histogram_quantile(&d->hold, 0.99) : (double)NAN);
    table_add(table, "%.1f %%", text_percent((double)row->path_ns, (double)t->r->path.ns));
}

/* What to type for a lock of the table, or for those of a class, that have another name there, or are cut. */
static void names_to_type(const struct text *t, const struct report_row *row) {
    const char *symbol = names_delegated(t->page->names, row->object);
    bool has_none = row->is_class &&
                    (!t->r->objects[row->object].made_by_init || names_symbol(t->page->names, row->object) != NULL);
    if (symbol == NULL || has_none)
        return;
    char *name = report_row_name(t->page, row);
    bool is_cut = row->n_contended > 0 && strlen(name) > (row->is_class ? CLASS_WIDTH : NAME_WIDTH);
    if (is_cut || !names_says_delegated(t->page->names, row->object)) {
        char *line = cmd_format("%s: --delegate calls %s %s", name, row->is_class ? "them" : "it", symbol);
        text_paragraph(t->out, "  ", line);
        free(line);
    }
    free(name);
}

/* What its row leaves out. */
static void holds_left_out(const struct text *t, const struct report_row *row) {
    const struct rep_object *o = &t->r->objects[row->object];
    if (row->is_class || !rep_holds_waited(t->r, o))
        return;
    char *line = cmd_format("%s: %s; its holds are those alone that began with a wait",
                            names_object(t->page->names, row->object),
                            o->type == SBT_TRACE_FUTEX ? "a lock made of a futex, which no call takes while it is free"
                                                       : "a semaphore used as a lock");
    text_paragraph(t->out, "  ", line);
    free(line);
}

static void objects(const struct text *t) {
    uint32_t n;
    struct report_row *rows = report_rows(t->page, &n);
    struct table table = {.n_columns = 10, .alignment = "lrrrrrrrrr"};
    static const char *const headings[] = {"object", "used",      "waited", "wait, sum", "mean",
                                           "p99",    "hold, sum", "mean",   "p99",       "path"};
    for (size_t i = 0; n > 0 && i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (uint32_t i = 0; i < text_most(t, n); i++)
        object_row(t, &table, &rows[i]);
    if (n > 0)
        text_heading(t, "Objects");
    table_print(&table, t->out);
    for (uint32_t i = 0; i < text_most(t, n); i++)
        names_to_type(t, &rows[i]);
    for (uint32_t i = 0; i < text_most(t, n); i++)
        holds_left_out(t, &rows[i]);
    free(rows);
}

/* Waits for the ends of threads are in the summary only. */
static bool has_pairs(const struct rep_report *r) {
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].kind != REP_JOIN)
            return true;
    return false;
}

/* A wait that no thread ended: its time was over. */
static bool timed_out(const struct text *t, uint32_t object, uint32_t flag) {
    return flag != 0 && !names_is_openmps(t->page->names, object);
}

static void waits_for(const struct text *t) {
    struct table table = {.n_columns = 6, .alignment = "llllrr"};
    if (!has_pairs(t->r))
        return;
    text_heading(t, "Which thread waited for which");
    static const char *const headings[] = {"waiter", "for", "at", "kind", "times", "sum"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (size_t i = 0, rows = 0; i < t->r->n_pairs && rows < t->page->top; i++) {
        const struct rep_pair *p = &t->r->pairs[i];
        if (p->kind == REP_JOIN)
            continue;
        rows++;
        text_name(&table, names_thread(t->page->names, p->waiter), 18);
        const bool is_over = timed_out(t, p->object, p->timed_out);
        text_name(&table,
                  p->holder != REP_NONE ? names_thread(t->page->names, p->holder)
                  : is_over             ? "timed out"
                                        : "?",
                  18);
        text_name(&table, names_object(t->page->names, p->object), NAME_WIDTH);
        table_add(&table, "%s%s", rep_kind_name(p->kind), is_over && p->holder != REP_NONE ? ", timed out" : "");
        table_add(&table, "%ju", (uintmax_t)p->sum.n);
        text_ns(&table, (double)p->sum.ns);
    }
    table_print(&table, t->out);
}

/* Threads that were in a wait when the trace ended: those that waited alike in one row. */
struct alike {
    const struct rep_unended *first;
    uint32_t thread, n;
    uint64_t since_ns, ns;
};

static bool is_alike(const struct rep_unended *a, const struct rep_unended *b) {
    return a->kind == b->kind && a->object == b->object && a->site == b->site && a->other == b->other &&
           a->holder == b->holder;
}

/* In rows[]; the result is how many rows. All that is beyond `most` is in the last one, of which `first` is NULL. */
static unsigned find_alike(const struct text *t, struct alike *rows, unsigned most) {
    unsigned n = 0;
    for (uint32_t i = 0; i < t->r->info.n_threads; i++) {
        const struct rep_unended *u = &t->r->threads[i].unended;
        unsigned at = 0;
        if (u->kind == REP_N_KINDS)
            continue;
        while (at < n && rows[at].first != NULL && !is_alike(rows[at].first, u))
            at++;
        if (at == n) {
            rows[n] = (struct alike){n + 1 < most ? u : NULL, i, 0, u->since_ns, 0};
            n++;
        }
        rows[at].n++;
        rows[at].ns += u->ns;
        rows[at].since_ns = u->since_ns < rows[at].since_ns ? u->since_ns : rows[at].since_ns;
    }
    return n;
}

static void unended_row(const struct text *t, struct table *table, const struct alike *row) {
    const struct rep_unended *u = row->first;
    const char *thread = names_thread(t->page->names, row->thread);
    char *waiters = row->n == 1 ? cmd_format("%s", thread) : cmd_format("%s and %u more", thread, row->n - 1);
    const char *at = u == NULL               ? "others"
                     : u->object != REP_NONE ? names_object(t->page->names, u->object)
                     : u->other != REP_NONE  ? names_thread(t->page->names, u->other)
                                             : "?";
    text_name(table, waiters, NAME_WIDTH);
    table_add(table, "%s", u != NULL ? rep_kind_name(u->kind) : "");
    text_name(table, at, PLACE_WIDTH);
    text_name(table, u != NULL && u->site != REP_NONE ? names_place(t->page->names, u->site) : "?", PLACE_WIDTH);
    if (table->n_columns == 7)
        text_name(table, u != NULL && u->holder != REP_NONE ? names_thread(t->page->names, u->holder) : "-", 18);
    text_ns(table, (double)row->since_ns);
    text_ns(table, (double)row->ns);
    free(waiters);
}

/*
 * No call ended these waits, so no thread is to blame for them: a worker that waited for work until the end, or threads
 * that would have waited for ever.
 */
static void unended(const struct text *t) {
    enum { MOST = 12 };
    struct alike rows[MOST];
    static const char *const headings[] = {"waiting", "kind", "at", "place", "held by", "since", "sum"};
    unsigned n = find_alike(t, rows, MOST);
    bool is_held = false;
    for (unsigned i = 0; i < n; i++)
        is_held |= rows[i].first != NULL && rows[i].first->holder != REP_NONE;
    struct table table = {.n_columns = 6, .alignment = "llllrr"};
    if (is_held)
        table = (struct table){.n_columns = 7, .alignment = "lllllrr"};
    if (n == 0)
        return;
    text_heading(t, "Waits that had not ended when the program did, and count until then");
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        if (is_held || strcmp(headings[i], "held by") != 0)
            table_add(&table, "%s", headings[i]);
    for (unsigned i = 0; i < n; i++)
        unended_row(t, &table, &rows[i]);
    table_print(&table, t->out);
}

static void site_waits(const struct text *t) {
    struct table table = {.n_columns = 5, .alignment = "lllrr"};
    if (!has_pairs(t->r))
        return;
    text_heading(t, "Which place waited for which");
    static const char *const headings[] = {"waits at", "for the one at", "object", "times", "sum"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (size_t i = 0, rows = 0; i < t->r->n_site_pairs && rows < t->page->top; i++) {
        const struct rep_site_pair *p = &t->r->site_pairs[i];
        if (p->kind == REP_JOIN)
            continue;
        rows++;
        text_name(&table, names_place(t->page->names, p->waiter_site), PLACE_WIDTH);
        text_name(&table,
                  p->holder_site == REP_NONE && timed_out(t, p->object, p->timed_out)
                      ? "timed out"
                      : names_place(t->page->names, p->holder_site),
                  PLACE_WIDTH);
        text_name(&table, names_object(t->page->names, p->object), PLACE_WIDTH);
        table_add(&table, "%ju", (uintmax_t)p->sum.n);
        text_ns(&table, (double)p->sum.ns);
    }
    table_print(&table, t->out);
}

static void chains(const struct text *t) {
    if (t->r->n_chains == 0)
        return;
    text_heading(t, "Chains: a thread waited for one that waited itself");
    for (unsigned i = 0; i < text_most(t, t->r->n_chains); i++) {
        const struct rep_chain *c = &t->r->chains[i];
        char ns[32], *line = cmd_format("%s", format_ns(ns, (double)c->sum.ns));
        for (unsigned k = 0; k < c->n_links; k++) {
            char *longer = cmd_format("%s%s %s", line, k == 0 ? "," : " <-",
                                      c->link[k].object != REP_NONE ? names_object(t->page->names, c->link[k].object)
                                                                    : rep_kind_name(c->link[k].kind));
            free(line);
            line = longer;
        }
        text_paragraph(t->out, "  ", line);
        free(line);
    }
}

static void tasks(const struct text *t) {
    struct table table = {.n_columns = 5, .alignment = "lrrrr"};
    static const char *const headings[] = {"task", "times", "sum", "mean", "max"};
    if (t->r->n_tasks == 0)
        return;
    text_heading(t, "Tasks, by their functions");
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (unsigned i = 0; i < text_most(t, t->r->n_tasks); i++) {
        const struct rep_task *task = &t->r->tasks[i];
        text_name(&table, names_place(t->page->names, task->site), PLACE_WIDTH);
        table_add(&table, "%ju", (uintmax_t)task->sum.n);
        text_ns(&table, (double)task->sum.ns);
        text_ns(&table, (double)task->sum.ns / (double)task->sum.n);
        text_ns(&table, (double)task->max_ns);
    }
    table_print(&table, t->out);
}

static void barriers(const struct text *t) {
    struct table table = {.n_columns = 7, .alignment = "lrrrrrl"};
    bool any = false;
    static const char *const headings[] = {"barrier",     "threads",         "rounds",         "imbalance",
                                           "of the time", "release, median", "last most often"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (uint32_t i = 0; i < t->r->n_details; i++) {
        const struct rep_barrier *b = t->r->details[i].barrier;
        const struct rep_barrier_thread *last = NULL;
        if (b == NULL || b->n_generations == 0)
            continue;
        any = true;
        for (uint32_t k = 0; k < b->n_threads; k++)
            if (last == NULL || b->threads[k].n_last > last->n_last)
                last = &b->threads[k];
        text_name(&table, names_object(t->page->names, b->object), PLACE_WIDTH);
        table_add(&table, "%u", b->count);
        table_add(&table, "%ju", (uintmax_t)b->n_generations);
        text_ns(&table, rep_histogram_mean(&b->imbalance));
        table_add(&table, "%.1f %%", text_percent((double)b->imbalance.ns, (double)t->r->path.ns));
        text_ns(&table, rep_histogram_quantile(&b->release, 0.5));
        if (last != NULL)
            table_add(&table, "%s (%.0f %%)", names_thread(t->page->names, last->thread),
                      text_percent((double)last->n_last, (double)b->n_generations));
        else
            table_add(&table, "-");
    }
    if (any)
        text_heading(t, "Barriers");
    if (any)
        table_print(&table, t->out);
}

static void threads(const struct text *t) {
    struct table table = {.n_columns = 9, .alignment = "lrrrrrrrr"};
    uint32_t rows = 0;
    text_heading(t, "Threads");
    static const char *const headings[] = {"thread", "life",    "work",   "in sections", "contention",
                                           "idle",   "no core", "asleep", "path"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (uint32_t i = 0; i < t->r->info.n_threads && rows < t->page->top; i++) {
        const struct rep_thread *thread = &t->r->threads[i];
        double life = (double)thread->times.life_ns;
        if (thread->n_events == 0)
            continue;
        rows++;
        text_name(&table, names_thread(t->page->names, i), NAME_WIDTH);
        text_ns(&table, life);
        table_add(&table, "%.1f %%", text_percent((double)thread->times.cpu_ns, life));
        table_add(&table, "%.1f %%", text_percent((double)thread->times.sections.ns, life));
        table_add(&table, "%.1f %%", text_percent((double)rep_contention_ns(&thread->times), life));
        table_add(&table, "%.1f %%", text_percent((double)thread->times.idle_ns, life));
        const double no_core = (double)thread->times.no_core_ns, off = (double)thread->times.off_cpu_ns;
        if (thread->queued_is_known) {
            table_add(&table, "%.1f %%", text_percent(no_core, life));
            table_add(&table, "%.1f %%", text_percent(off - no_core, life));
        } else {
            table_add(&table, "-");
            table_add(&table, "-");
        }
        table_add(&table, "%.1f %%", text_percent((double)thread->path_ns, (double)t->r->path.ns));
    }
    table_print(&table, t->out);
    if (rows < t->r->n_live)
        fprintf(t->out, "and %u more (--top)\n", t->r->n_live - rows);
}

static void order_stack(const struct text *t, const struct rep_order *o) {
    char *stack = names_stack(t->page->names, o->stack, NAMES_MOST_FRAMES);
    if (stack == NULL)
        return;
    char *line = cmd_format("%s and then %s, by %s: %s", names_object(t->page->names, o->held),
                            names_object(t->page->names, o->taken), names_thread(t->page->names, o->thread), stack);
    text_paragraph(t->out, "    ", line);
    free(line);
    free(stack);
}

static void lock_order(const struct text *t) {
    bool has_stacks = false;
    for (unsigned k = 0; t->r->n_circles > 0 && k < t->r->circles[0].n; k++)
        has_stacks |= t->r->circles[0].order[k]->stack != 0;
    if (t->r->n_circles < 2 && !has_stacks) /* the first one is in the advice */
        return;
    text_heading(t, "Locks taken in different orders");
    for (unsigned i = 0; i < text_most(t, t->r->n_circles); i++) {
        const struct rep_circle *c = &t->r->circles[i];
        char *line = cmd_format("%s", names_object(t->page->names, c->order[0]->held));
        for (unsigned k = 0; k < c->n; k++) {
            char *longer = cmd_format("%s -> %s (%s)", line, names_object(t->page->names, c->order[k]->taken),
                                      names_place(t->page->names, c->order[k]->taken_site));
            free(line);
            line = longer;
        }
        text_paragraph(t->out, "  ", line);
        free(line);
        for (unsigned k = 0; k < c->n; k++)
            order_stack(t, c->order[k]);
    }
}

void text_tables(const struct text *t) {
    unended(t);
    critical_path(t);
    objects(t);
    waits_for(t);
    site_waits(t);
    chains(t);
    barriers(t);
    tasks(t);
    lock_order(t);
    threads(t);
}
