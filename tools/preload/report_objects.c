/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which objects a report shows, the table of them as CSV, and stacks of waits for flame graphs. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_print.h"

struct ranked {
    uint64_t ns, n;
    uint32_t object;
};

static int more(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static void mark(bool *named, const struct rep_report *r, uint32_t object) {
    if (object < r->info.n_objects)
        named[object] = true;
}

/* All objects that another part of the report names. */
static bool *mark_named(const struct report_page *page) {
    const struct rep_report *r = page->report;
    bool *named = cmd_allocate(r->info.n_objects, sizeof *named);
    for (unsigned i = 0; i < r->n_advice; i++)
        for (unsigned k = 0; k < r->advice[i].n_objects; k++)
            mark(named, r, r->advice[i].objects[k]);
    for (size_t i = 0; i < r->n_pairs && i < 16 * (size_t)page->top; i++)
        mark(named, r, r->pairs[i].object);
    for (size_t i = 0; i < r->n_site_pairs && i < page->top; i++)
        mark(named, r, r->site_pairs[i].object);
    for (size_t i = 0; i < r->n_chains && i < page->top; i++)
        for (unsigned k = 0; k < r->chains[i].n_links; k++)
            mark(named, r, r->chains[i].link[k].object);
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        mark(named, r, r->threads[i].unended.object);
    for (size_t i = 0; i < r->n_circles; i++)
        for (unsigned k = 0; k < r->circles[i].n; k++)
            mark(named, r, r->circles[i].order[k]->held);
    for (uint32_t i = 0; i < r->n_details; i++)
        if (r->details[i].barrier != NULL || r->details[i].convoys.n > 0)
            mark(named, r, r->details[i].object);
    return named;
}

/* All objects, those with the most on the critical path first; `waits`: or the most waiting. The result is how many. */
static uint32_t rank(const struct rep_report *r, bool waits, struct ranked *ranked) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        const struct rep_object *o = &r->objects[i];
        uint64_t path_ns = rep_path_of(o);
        if (o->type != SBT_TRACE_NO_OBJECT)
            ranked[n++] = (struct ranked){waits && o->wait_ns > path_ns ? o->wait_ns : path_ns, o->n, i};
    }
    qsort(ranked, n, sizeof *ranked, more);
    return n;
}

uint32_t *report_objects(const struct report_page *page, uint32_t *n) {
    const struct rep_report *r = page->report;
    struct ranked *ranked = cmd_allocate(r->info.n_objects, sizeof *ranked);
    uint32_t *shown = cmd_allocate(r->info.n_objects, sizeof *shown);
    bool *named = mark_named(page);
    uint32_t n_ranked = rank(r, false, ranked);
    for (uint32_t i = 0; i < n_ranked && i < page->top; i++) /* as the JSON document's critical path does */
        if (ranked[i].ns > 0)
            mark(named, r, ranked[i].object);
    n_ranked = rank(r, true, ranked);
    *n = 0;
    for (uint32_t i = 0; i < n_ranked; i++)
        if (i < page->top || named[ranked[i].object])
            shown[(*n)++] = ranked[i].object;
    free(named);
    free(ranked);
    return shown;
}

/* ---- CSV ---- */

void report_csv_heading(FILE *out) {
    fputs("file,id,type,name,symbol,made,acquisitions,contended,failed,wait_ns,wait_mean_ns,wait_max_ns,wait_p99_ns,"
          "hold_ns,hold_mean_ns,hold_max_ns,hold_p99_ns,hold_work_ns,handover_ns,idle_ns,section_share,path_ns,timed_"
          "out,timed_out_ns\n",
          out);
}

/* RFC 4180: in quotes, with quotes doubled. */
static void text_cell(FILE *out, const char *text) {
    fputc('"', out);
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void number_cell(FILE *out, uint64_t number) {
    fprintf(out, ",%ju", (uintmax_t)number);
}

static void quantile_cell(FILE *out, const struct rep_histogram *h) {
    if (h != NULL && h->n > 0)
        number_cell(out, (uint64_t)rep_histogram_quantile(h, 0.99));
    else
        fputc(',', out);
}

void report_csv(const struct report_page *page, FILE *out) {
    const struct rep_report *r = page->report;
    uint32_t n, *shown = report_objects(page, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct rep_object *o = &r->objects[shown[i]];
        const struct rep_detail *d = o->detail != REP_NONE ? &r->details[o->detail] : NULL;
        text_cell(out, page->path);
        fprintf(out, ",%u,%s,", shown[i], sbt_trace_type_name(o->type));
        text_cell(out, names_object(page->names, shown[i]));
        fputc(',', out);
        text_cell(out, names_symbol(page->names, shown[i]));
        fputc(',', out);
        text_cell(out, names_site(page->names, o->made)->place);
        number_cell(out, o->n);
        number_cell(out, o->n_contended);
        number_cell(out, o->n_failed);
        number_cell(out, o->wait_ns);
        number_cell(out, o->n_contended > 0 ? o->wait_ns / o->n_contended : 0);
        number_cell(out, o->wait_max_ns);
        quantile_cell(out, d != NULL ? &d->wait : NULL);
        number_cell(out, o->hold_ns);
        number_cell(out, o->hold_n > 0 ? o->hold_ns / o->hold_n : 0);
        number_cell(out, o->hold_max_ns);
        quantile_cell(out, d != NULL ? &d->hold : NULL);
        number_cell(out, o->hold_work_ns);
        number_cell(out, o->handover_ns);
        number_cell(out, o->idle_ns);
        fprintf(out, ",%.6f", (double)o->section_ns / (double)rep_active_ns(&r->times));
        number_cell(out, rep_path_of(o));
        const bool is_known = !names_is_openmps(page->names, shown[i]);
        number_cell(out, is_known ? o->timed_out.n : 0);
        number_cell(out, is_known ? o->timed_out.ns : 0);
        fputc('\n', out);
    }
    free(shown);
}

/* ---- folded stacks ---- */

struct stack_sum {
    uint32_t stack, site, object, op;
    uint64_t ns;
};

struct stack_sums {
    struct stack_sum *sums;
    size_t n, capacity;
};

static int by_key(const void *a, const void *b) {
    return memcmp(a, b, offsetof(struct stack_sum, ns));
}

/* Sums with the same key become one. */
static void fold(struct stack_sums *s) {
    size_t n = 0;
    qsort(s->sums, s->n, sizeof *s->sums, by_key);
    for (size_t i = 0; i < s->n; i++) {
        if (n > 0 && by_key(&s->sums[n - 1], &s->sums[i]) == 0)
            s->sums[n - 1].ns += s->sums[i].ns;
        else
            s->sums[n++] = s->sums[i];
    }
    s->n = n;
}

static void add(struct stack_sums *s, const struct sbt_trace_event *e) {
    if (s->n == s->capacity) {
        fold(s);
        if (2 * s->n >= s->capacity) {
            s->capacity = s->capacity == 0 ? 4096 : 2 * s->capacity;
            s->sums = cmd_reallocate(s->sums, s->capacity, sizeof *s->sums);
        }
    }
    s->sums[s->n++] = (struct stack_sum){e->stack, e->site, e->object, e->op, e->took_ns};
}

/* A frame of a folded stack has neither blanks at its ends nor semicolons. */
static void frame(FILE *out, const char *text) {
    for (; *text != '\0'; text++)
        fputc(*text == ';' || *text == '\n' ? ',' : *text, out);
}

static void print_stack(const struct report_page *page, FILE *out, const struct stack_sum *s) {
    uint32_t sites[NAMES_MOST_FRAMES];
    uint32_t n = s->stack != 0 ? sbt_trace_stack(page->trace, s->stack, sites, NAMES_MOST_FRAMES) : 0;
    if (n == 0) {
        sites[0] = s->site;
        n = 1;
    }
    for (uint32_t i = n < NAMES_MOST_FRAMES ? n : NAMES_MOST_FRAMES; i > 0; i--) {
        const struct site_name *name = names_site(page->names, sites[i - 1]);
        frame(out, n > 1 && name->function != NULL ? name->function : names_place(page->names, sites[i - 1]));
        fputc(';', out);
    }
    frame(out, s->object != SBT_TRACE_NONE ? names_object(page->names, s->object) : sbt_trace_op_name(s->op));
    fprintf(out, " %ju\n", (uintmax_t)s->ns);
}

static bool is_wait(const struct sbt_trace_event *e) {
    switch (e->op) {
    case SBT_TRACE_THREAD_JOIN:
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_COND_WAIT:
    case SBT_TRACE_BARRIER_WAIT:
    case SBT_TRACE_RWLOCK_RDLOCK:
    case SBT_TRACE_RWLOCK_WRLOCK:
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SPIN_LOCK:
    case SBT_TRACE_FUTEX_WAIT:
        return e->took_ns >= 1000;
    default:
        return false;
    }
}

/* Half of the way is reading the trace, and half is naming what is printed. */
bool report_folded(const struct report_page *page, FILE *out, struct progress *progress,
                   struct sbt_trace_error *error) {
    struct stack_sums sums = {0};
    uint64_t n_read = 0, n_events = page->report->info.n_events;
    int got = 0;
    for (uint32_t t = 0; t < page->report->info.n_threads && got >= 0; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e;
        sbt_trace_cursor_begin(page->trace, t, &cursor);
        while ((got = sbt_trace_next(&cursor, &e, error)) == 1) {
            if (is_wait(&e))
                add(&sums, &e);
            if ((++n_read & 0x3FFF) == 0)
                progress_show(progress, 0.5 * (double)n_read / (double)n_events);
        }
    }
    fold(&sums);
    for (size_t i = 0; got >= 0 && i < sums.n; i++) {
        progress_show(progress, 0.5 + 0.5 * (double)i / (double)sums.n);
        print_stack(page, out, &sums.sums[i]);
    }
    free(sums.sums);
    return got >= 0;
}
