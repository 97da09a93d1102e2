/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report as text, at most 100 columns wide: the summary and the advice first, then the tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_print.h"
#include "table.h"

enum { WIDTH = 100, NAME_WIDTH = 30, CLASS_WIDTH = 38, PLACE_WIDTH = 26 };

struct text {
    const struct report_page *page;
    const struct rep_report *r;
    FILE *out;
};

/* ---- words ---- */

/* Shortened in the middle, so that the beginning and the line number stay. */
static const char *cut(char buffer[static 64], const char *text, size_t width) {
    size_t n = strlen(text), tail = width / 2 - 1;
    if (n <= width)
        return text;
    snprintf(buffer, 64, "%.*s..%s", (int)(width - tail - 2), text, text + n - tail);
    return buffer;
}

/* Words of `text` on lines of at most WIDTH columns; the first line begins behind `first`, the others behind blanks. */
static void paragraph(FILE *out, const char *first, const char *text) {
    size_t indent = strlen(first), column = indent;
    fputs(first, out);
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (column > indent && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)n, at);
        column += n;
        at += n;
        at += strspn(at, " ");
    }
    fputc('\n', out);
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void heading(const struct text *t, const char *words) {
    fprintf(t->out, "\n%s\n", words);
}

static void ns_cell(struct table *table, double ns) {
    char buffer[32];
    table_add(table, "%s", format_ns(buffer, ns));
}

static void name_cell(struct table *table, const char *name, size_t width) {
    char buffer[64];
    table_add(table, "%s", cut(buffer, name, width));
}

static unsigned most(const struct text *t, size_t n) {
    return n < t->page->top ? (unsigned)n : t->page->top;
}

/* ---- the summary ---- */

static void origin(const struct text *t) {
    const struct sbt_trace_info *info = &t->r->info;
    char *lost = info->n_lost > 0 ? cmd_format(", %ju events lost", (uintmax_t)info->n_lost) : cmd_format("%s", "");
    char *line = cmd_format("%s: %s", t->page->path, info->command);
    paragraph(t->out, "", line);
    free(line);
    line = info->generated
               ? cmd_format("generated, %ju events", (uintmax_t)info->n_events)
               : cmd_format("process %ju, engine %s, %s%ju events%s%s", (uintmax_t)info->process_id, info->engine,
                            info->profile ? "a profile, " : "", (uintmax_t)info->n_events, lost,
                            info->whole ? "" : "; not whole: the program was killed, and the end is missing");
    paragraph(t->out, "", line);
    free(line);
    free(lost);
}

/* In user code of sections, on average. */
static char *misses_of(const struct sbt_trace_info *info) {
    if (!info->profile)
        return cmd_format("counted in profiles only");
    if (!info->whole)
        return cmd_format("not known, the program was killed");
    if (!info->counts_misses)
        return cmd_format("not available here");
    if (info->n_counted_holds == 0)
        return cmd_format("counted in no section");
    return cmd_format("%.1f a section", (double)info->n_misses / (double)info->n_counted_holds);
}

static void summary(const struct text *t) {
    const struct rep_times *s = &t->r->times;
    char wall[32], cpu[32];
    double life = (double)s->life_ns;
    char *line = cmd_format("wall %s, CPU %s, %u threads, %.2f running at a time",
                            format_ns(wall, (double)t->r->wall_ns), format_ns(cpu, (double)s->cpu_ns), t->r->n_live,
                            t->r->wall_ns > 0 ? (double)s->cpu_ns / (double)t->r->wall_ns : 0);
    paragraph(t->out, "", line);
    free(line);
    fprintf(t->out, "\n");
    struct table table = {.n_columns = 4, .alignment = "lrrl"};
    const struct {
        const char *name;
        double ns;
        const char *note;
    } rows[] = {
        {"work", (double)s->cpu_ns, "CPU time between calls"},
        {"off CPU", (double)s->off_cpu_ns, "between calls: input, output, sleep, preemption"},
        {"- outside", (double)s->outside_ns, "of that, in calls that waited for other processes, devices or time"},
        {"contention", (double)rep_contention_ns(s), "waiting for locks, and for what threads use as locks"},
        {"barriers", (double)s->waiting[REP_BARRIER].ns, ""},
        {"waiting, not idle", (double)(rep_event_waits_ns(s) - s->idle_ns),
         "for conditions, semaphores, futexes: other threads wait too, or waking up"},
        {"idle", (double)s->idle_ns, "the same, and no other thread waits for it: no contention"},
        {"joins", (double)s->waiting[REP_JOIN].ns, ""},
        {"calls", (double)s->calls_ns, "that waited for no thread"},
    };
    table_add(&table, "threads' time");
    table_add(&table, "sum");
    table_add(&table, "share");
    table_add(&table, "%s", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].ns <= 0)
            continue;
        table_add(&table, "%s", rows[i].name);
        ns_cell(&table, rows[i].ns);
        table_add(&table, "%.1f %%", percent(rows[i].ns, life));
        table_add(&table, "%s", rows[i].note);
    }
    table_print(&table, t->out);
    char *misses = misses_of(&t->r->info);
    line = cmd_format(
        "In critical sections, with waits for them: %.1f %% of the threads' time, %.1f %% without idle time; "
        "with a lock held: %.1f %%. Cache misses: %s.",
        percent((double)s->sections.ns, life), percent((double)s->sections.ns, (double)rep_active_ns(s)),
        percent((double)s->sections.held_ns, life), misses);
    paragraph(t->out, "", line);
    free(misses);
    free(line);
}

static char *gain_of(const struct text *t, const struct rep_advice *a) {
    char ns[32];
    char *not = a->unsimulated != NULL ? cmd_format(" Not simulated: %s.", a->unsimulated) : cmd_format("%s", "");
    if (a->basis == REP_BASIS_NONE)
        return not ;
    const char *what = a->basis == REP_BASIS_PATH ? "At most" : a->gain_ns < 0 ? "It would cost" : "Gain";
    char *gain = cmd_format(" %s: %s, %.1f %% of the time (%s).%s", what, format_ns(ns, fabs(a->gain_ns)),
                            percent(fabs(a->gain_ns), (double)t->r->wall_ns),
                            a->basis == REP_BASIS_PATH ? "a bound, by the critical path" : "simulated", not );
    free(not );
    return gain;
}

/* What was measured, and beside it the gain as a ratio. */
static void measured(const struct text *t, const struct rep_advice *a, const char *command) {
    const struct report_tried *tried = t->page->tried;
    double predicted = report_advice_ratio(t->page, a);
    if (tried == NULL)
        return;
    char *line = cmd_format("measured, times as fast as glibc in %d runs:", tried->n_runs), *longer;
    for (size_t i = 0; i < tried->n_engines; i++) {
        if (strstr(command, tried->engines[i].name) == NULL) /* of another advice */
            continue;
        longer = cmd_format("%s%s %s %.2f (%.2f to %.2f)", line, i > 0 ? "," : "", tried->engines[i].name,
                            tried->engines[i].ratio, tried->engines[i].ratio_min, tried->engines[i].ratio_max);
        free(line);
        line = longer;
    }
    char *whole = cmd_format("%s; outputs %s", line, tried->identical ? "identical" : "DIFFER");
    paragraph(t->out, "    ", whole);
    if (isfinite(predicted))
        fprintf(t->out, "    predicted: %s%.2f times as fast\n", a->basis == REP_BASIS_PATH ? "at most " : "",
                predicted);
    free(whole);
    free(line);
}

static void advice(const struct text *t) {
    heading(t, "Advice");
    if (t->r->n_advice == 0)
        paragraph(t->out, "  ",
                  "None: no lock, barrier or condition has a part of the critical path that is worth a change.");
    for (unsigned i = 0; i < most(t, t->r->n_advice); i++) {
        const struct rep_advice *a = &t->r->advice[i];
        char *command, *words = report_advice_text(t->page, a, &command), *gain = gain_of(t, a);
        char *first = cmd_format("%2u. ", i + 1),
             *whole = cmd_format("[%s] %s%s", rep_cause_name(a->cause), words, gain);
        paragraph(t->out, first, whole);
        if (command != NULL) {
            fprintf(t->out, "    try: %s\n", command);
            measured(t, a, command);
        }
        free(whole);
        free(first);
        free(gain);
        free(words);
        free(command);
    }
}

/* ---- tables ---- */

static void critical_path(const struct text *t) {
    const struct rep_path *p = &t->r->path;
    char total[32];
    double ns = (double)p->ns;
    heading(t, "Critical path");
    char *line =
        cmd_format("%s: %.1f %% work outside of locks, %.1f %% with a lock held, %.1f %% wake-ups and hand-overs, "
                   "%.1f %% waits for what is not known, %.1f %% calls, %.1f %% off the processor",
                   format_ns(total, ns), percent((double)p->work_ns, ns), percent((double)p->held_ns, ns),
                   percent((double)p->wakeup_ns, ns), percent((double)p->waiting_ns, ns),
                   percent((double)p->calls_ns, ns), percent((double)p->off_cpu_ns, ns));
    paragraph(t->out, "  ", line);
    free(line);
}

static void object_row(const struct text *t, struct table *table, const struct report_row *row) {
    const struct rep_object *o = &t->r->objects[row->object];
    const struct rep_detail *d = !row->is_class && o->detail != REP_NONE ? &t->r->details[o->detail] : NULL;
    char *name = report_row_name(t->page, row);
    name_cell(table, name, row->is_class ? CLASS_WIDTH : NAME_WIDTH);
    free(name);
    table_add(table, "%ju", (uintmax_t)row->n);
    table_add(table, "%ju", (uintmax_t)row->n_contended);
    ns_cell(table, (double)row->wait_ns);
    ns_cell(table, row->n_contended > 0 ? (double)row->wait_ns / (double)row->n_contended : (double)NAN);
    ns_cell(table, d != NULL && d->wait.n > 0 ? rep_histogram_quantile(&d->wait, 0.99) : (double)NAN);
    ns_cell(table, row->hold_n > 0 ? (double)row->hold_ns : (double)NAN);
    ns_cell(table, row->hold_n > 0 ? (double)row->hold_ns / (double)row->hold_n : (double)NAN);
    ns_cell(table, d != NULL && row->hold_n > 0 ? rep_histogram_quantile(&d->hold, 0.99) : (double)NAN);
    table_add(table, "%.1f %%", percent((double)row->path_ns, (double)t->r->path.ns));
}

/* What to type for a lock of the table that has another name in its file. */
static void names_to_type(const struct text *t, const struct report_row *row) {
    const char *symbol = names_delegated(t->page->names, row->object),
               *name = names_object(t->page->names, row->object);
    if (row->is_class || symbol == NULL || names_symbol(t->page->names, row->object) == NULL ||
        strcmp(symbol, name) == 0)
        return;
    char *line = cmd_format("%s: --delegate calls it %s", name, symbol);
    paragraph(t->out, "  ", line);
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
    for (uint32_t i = 0; i < most(t, n); i++)
        object_row(t, &table, &rows[i]);
    if (n > 0)
        heading(t, "Objects");
    table_print(&table, t->out);
    for (uint32_t i = 0; i < most(t, n); i++)
        names_to_type(t, &rows[i]);
    free(rows);
}

static void waits_for(const struct text *t) {
    struct table table = {.n_columns = 6, .alignment = "llllrr"};
    if (t->r->n_pairs == 0)
        return;
    heading(t, "Which thread waited for which");
    static const char *const headings[] = {"waiter", "for", "at", "kind", "times", "sum"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (size_t i = 0, rows = 0; i < t->r->n_pairs && rows < t->page->top; i++) {
        const struct rep_pair *p = &t->r->pairs[i];
        if (p->kind == REP_JOIN)
            continue;
        rows++;
        name_cell(&table, names_thread(t->page->names, p->waiter), 18);
        name_cell(&table, p->holder != REP_NONE ? names_thread(t->page->names, p->holder) : "?", 18);
        name_cell(&table, names_object(t->page->names, p->object), NAME_WIDTH);
        table_add(&table, "%s", rep_kind_name(p->kind));
        table_add(&table, "%ju", (uintmax_t)p->sum.n);
        ns_cell(&table, (double)p->sum.ns);
    }
    table_print(&table, t->out);
}

static void site_waits(const struct text *t) {
    struct table table = {.n_columns = 5, .alignment = "lllrr"};
    if (t->r->n_site_pairs == 0)
        return;
    heading(t, "Which place waited for which");
    static const char *const headings[] = {"waits at", "for the one at", "object", "times", "sum"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (size_t i = 0, rows = 0; i < t->r->n_site_pairs && rows < t->page->top; i++) {
        const struct rep_site_pair *p = &t->r->site_pairs[i];
        if (p->kind == REP_JOIN)
            continue;
        rows++;
        name_cell(&table, names_place(t->page->names, p->waiter_site), PLACE_WIDTH);
        name_cell(&table, names_place(t->page->names, p->holder_site), PLACE_WIDTH);
        name_cell(&table, names_object(t->page->names, p->object), PLACE_WIDTH);
        table_add(&table, "%ju", (uintmax_t)p->sum.n);
        ns_cell(&table, (double)p->sum.ns);
    }
    table_print(&table, t->out);
}

static void chains(const struct text *t) {
    if (t->r->n_chains == 0)
        return;
    heading(t, "Chains: a thread waited for one that waited itself");
    for (unsigned i = 0; i < most(t, t->r->n_chains); i++) {
        const struct rep_chain *c = &t->r->chains[i];
        char ns[32], *line = cmd_format("%s", format_ns(ns, (double)c->sum.ns));
        for (unsigned k = 0; k < c->n_links; k++) {
            char *longer = cmd_format("%s%s %s", line, k == 0 ? "," : " <-",
                                      c->link[k].object != REP_NONE ? names_object(t->page->names, c->link[k].object)
                                                                    : rep_kind_name(c->link[k].kind));
            free(line);
            line = longer;
        }
        paragraph(t->out, "  ", line);
        free(line);
    }
}

static void tasks(const struct text *t) {
    struct table table = {.n_columns = 5, .alignment = "lrrrr"};
    static const char *const headings[] = {"task", "times", "sum", "mean", "max"};
    if (t->r->n_tasks == 0)
        return;
    heading(t, "Tasks, by their functions");
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (unsigned i = 0; i < most(t, t->r->n_tasks); i++) {
        const struct rep_task *task = &t->r->tasks[i];
        name_cell(&table, names_place(t->page->names, task->site), PLACE_WIDTH);
        table_add(&table, "%ju", (uintmax_t)task->sum.n);
        ns_cell(&table, (double)task->sum.ns);
        ns_cell(&table, (double)task->sum.ns / (double)task->sum.n);
        ns_cell(&table, (double)task->max_ns);
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
        name_cell(&table, names_object(t->page->names, b->object), PLACE_WIDTH);
        table_add(&table, "%u", b->count);
        table_add(&table, "%ju", (uintmax_t)b->n_generations);
        ns_cell(&table, rep_histogram_mean(&b->imbalance));
        table_add(&table, "%.1f %%", percent((double)b->imbalance.ns, (double)t->r->path.ns));
        ns_cell(&table, rep_histogram_quantile(&b->release, 0.5));
        if (last != NULL)
            table_add(&table, "%s (%.0f %%)", names_thread(t->page->names, last->thread),
                      percent((double)last->n_last, (double)b->n_generations));
        else
            table_add(&table, "-");
    }
    if (any)
        heading(t, "Barriers");
    if (any)
        table_print(&table, t->out);
}

static void threads(const struct text *t) {
    struct table table = {.n_columns = 7, .alignment = "lrrrrrr"};
    uint32_t rows = 0;
    heading(t, "Threads");
    static const char *const headings[] = {"thread", "life", "work", "in sections", "contention", "idle", "path"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(&table, "%s", headings[i]);
    for (uint32_t i = 0; i < t->r->info.n_threads && rows < t->page->top; i++) {
        const struct rep_thread *thread = &t->r->threads[i];
        double life = (double)thread->times.life_ns;
        if (thread->n_events == 0)
            continue;
        rows++;
        name_cell(&table, names_thread(t->page->names, i), NAME_WIDTH);
        ns_cell(&table, life);
        table_add(&table, "%.1f %%", percent((double)thread->times.cpu_ns, life));
        table_add(&table, "%.1f %%", percent((double)thread->times.sections.ns, life));
        table_add(&table, "%.1f %%", percent((double)rep_contention_ns(&thread->times), life));
        table_add(&table, "%.1f %%", percent((double)thread->times.idle_ns, life));
        table_add(&table, "%.1f %%", percent((double)thread->path_ns, (double)t->r->path.ns));
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
    paragraph(t->out, "    ", line);
    free(line);
    free(stack);
}

static void lock_order(const struct text *t) {
    bool has_stacks = false;
    for (unsigned k = 0; t->r->n_circles > 0 && k < t->r->circles[0].n; k++)
        has_stacks |= t->r->circles[0].order[k]->stack != 0;
    if (t->r->n_circles < 2 && !has_stacks) /* the first one is in the advice */
        return;
    heading(t, "Locks taken in different orders");
    for (unsigned i = 0; i < most(t, t->r->n_circles); i++) {
        const struct rep_circle *c = &t->r->circles[i];
        char *line = cmd_format("%s", names_object(t->page->names, c->order[0]->held));
        for (unsigned k = 0; k < c->n; k++) {
            char *longer = cmd_format("%s -> %s (%s)", line, names_object(t->page->names, c->order[k]->taken),
                                      names_place(t->page->names, c->order[k]->taken_site));
            free(line);
            line = longer;
        }
        paragraph(t->out, "  ", line);
        free(line);
        for (unsigned k = 0; k < c->n; k++)
            order_stack(t, c->order[k]);
    }
}

void report_text(const struct report_page *page, FILE *out) {
    struct text t = {page, page->report, out};
    origin(&t);
    if (t.r->empty != NULL) {
        char *line = cmd_format("Nothing to report: %s.", t.r->empty);
        paragraph(out, "", line);
        free(line);
        return;
    }
    summary(&t);
    advice(&t);
    critical_path(&t);
    objects(&t);
    waits_for(&t);
    site_waits(&t);
    chains(&t);
    barriers(&t);
    tasks(&t);
    lock_order(&t);
    threads(&t);
}
