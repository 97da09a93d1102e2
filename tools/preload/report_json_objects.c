/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of the JSON document: objects, their groups, and call sites. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_json.h"

/* One class an octave: enough to draw. */
static void histogram(struct doc *d, const struct rep_histogram *h) {
    json_open(&d->j, "histogram", '[');
    for (uint64_t from = 0; h->n > 0 && from <= h->max_ns;) {
        uint64_t to = from == 0 ? 1 : 2 * from, n = rep_histogram_count(h, from, to);
        if (n > 0) {
            json_open(&d->j, NULL, '[');
            json_uint(&d->j, NULL, from);
            json_uint(&d->j, NULL, n);
            json_close(&d->j, ']');
        }
        if (from > UINT64_MAX / 4)
            break;
        from = to;
    }
    json_close(&d->j, ']');
}

static void quantiles(struct doc *d, const char *median, const struct rep_histogram *h) {
    json_uint(&d->j, median, (uint64_t)rep_histogram_quantile(h, 0.5));
    json_uint(&d->j, "p99_ns", (uint64_t)rep_histogram_quantile(h, 0.99));
}

void doc_histogram(struct doc *d, const char *key, const struct rep_histogram *h) {
    json_open(&d->j, key, '{');
    json_uint(&d->j, "n", h->n);
    json_uint(&d->j, "ns", h->ns);
    json_uint(&d->j, "mean_ns", (uint64_t)rep_histogram_mean(h));
    json_uint(&d->j, "max_ns", h->max_ns);
    quantiles(d, "median_ns", h);
    histogram(d, h);
    json_close(&d->j, '}');
}

static void times(struct doc *d, const char *key, uint64_t n, uint64_t ns, uint64_t max_ns,
                  const struct rep_histogram *h, const uint64_t *work_ns) {
    json_open(&d->j, key, '{');
    json_uint(&d->j, "n", n);
    json_uint(&d->j, "ns", ns);
    json_uint(&d->j, "mean_ns", n > 0 ? ns / n : 0);
    json_uint(&d->j, "max_ns", max_ns);
    if (h != NULL) {
        quantiles(d, "p50_ns", h);
        histogram(d, h);
    } else {
        doc_null(d, "p50_ns");
        doc_null(d, "p99_ns");
        doc_null(d, "histogram");
    }
    if (work_ns != NULL && !d->r->info.profile)
        json_uint(&d->j, "work_ns", *work_ns);
    else if (work_ns != NULL)
        doc_null(d, "work_ns");
    json_close(&d->j, '}');
}

static int more_wait(const void *a, const void *b) {
    const struct rep_site_use *x = a, *y = b;
    return x->wait.ns != y->wait.ns ? (x->wait.ns > y->wait.ns ? -1 : 1) : 0;
}

static int more_hold(const void *a, const void *b) {
    const struct rep_site_use *x = a, *y = b;
    return x->hold.ns != y->hold.ns ? (x->hold.ns > y->hold.ns ? -1 : 1) : 0;
}

static void sites_of(struct doc *d, const char *key, const struct rep_detail *detail, bool hold) {
    struct rep_site_use uses[REP_MOST_SITES];
    unsigned n = detail != NULL ? detail->n_sites : 0;
    for (unsigned i = 0; i < n; i++)
        uses[i] = detail->sites[i];
    qsort(uses, n, sizeof *uses, hold ? more_hold : more_wait);
    json_open(&d->j, key, '[');
    for (unsigned i = 0; i < n; i++) {
        const struct rep_sum *sum = hold ? &uses[i].hold : &uses[i].wait;
        if (sum->n == 0)
            continue;
        json_open(&d->j, NULL, '{');
        doc_site(d, "site", uses[i].site);
        json_uint(&d->j, "n", sum->n);
        json_uint(&d->j, "ns", sum->ns);
        if (hold && !d->r->info.profile)
            json_uint(&d->j, "work_ns", uses[i].hold_work_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static bool is_lock(unsigned type) {
    return type == SBT_TRACE_MUTEX || type == SBT_TRACE_RWLOCK || type == SBT_TRACE_SPIN;
}

static void object_counts(struct doc *d, uint32_t number) {
    const struct rep_object *o = &d->r->objects[number];
    bool gives = o->type == SBT_TRACE_COND || o->type == SBT_TRACE_SEM || o->type == SBT_TRACE_FUTEX;
    json_uint(&d->j, "acquisitions", o->n);
    json_uint(&d->j, "contended", o->n_contended);
    json_uint(&d->j, "failed", o->n_failed);
    json_open(&d->j, "timed_out", '{');
    json_uint(&d->j, "n", names_is_openmps(d->page->names, number) ? 0 : o->timed_out.n);
    json_uint(&d->j, "ns", names_is_openmps(d->page->names, number) ? 0 : o->timed_out.ns);
    json_close(&d->j, '}');
    if (gives)
        json_uint(&d->j, "signals", o->n_signals);
    else
        doc_null(d, "signals");
    if (o->type == SBT_TRACE_COND) {
        json_uint(&d->j, "broadcasts", o->n_broadcasts);
        json_uint(&d->j, "futile", o->n_futile_broadcast + o->n_futile_signal);
    } else {
        doc_null(d, "broadcasts");
        doc_null(d, "futile");
    }
}

void report_json_object(struct doc *d, uint32_t number) {
    const struct rep_object *o = &d->r->objects[number];
    const struct rep_detail *detail = o->detail != REP_NONE ? &d->r->details[o->detail] : NULL;
    uint64_t address = sbt_trace_object_address(d->page->trace, number);
    char text[32];
    snprintf(text, sizeof text, "0x%jx", (uintmax_t)address);
    json_line(&d->j);
    json_open(&d->j, NULL, '{');
    json_uint(&d->j, "id", number);
    json_text(&d->j, "type", sbt_trace_type_name(o->type));
    json_text(&d->j, "name", names_object(d->page->names, number));
    json_text(&d->j, "symbol", names_symbol(d->page->names, number));
    json_text(&d->j, "address", address != 0 ? text : NULL);
    json_bool(&d->j, "as_lock", o->gives_back || o->beside_lock || o->turns);
    doc_site(d, "made", o->made);
    doc_id(d, "group", o->group);
    object_counts(d, number);
    times(d, "wait", o->n_contended, o->wait_ns, o->wait_max_ns, detail != NULL ? &detail->wait : NULL, NULL);
    if (is_lock(o->type) || o->gives_back)
        times(d, "hold", o->hold_n, o->hold_ns, o->hold_max_ns, detail != NULL ? &detail->hold : NULL,
              &o->hold_work_ns);
    else
        doc_null(d, "hold");
    if (is_lock(o->type) || o->gives_back)
        json_text(&d->j, "hold_of", rep_holds_waited(d->r, o) ? "waited" : "all");
    else
        doc_null(d, "hold_of");
    json_uint(&d->j, "handover_ns", o->handover_ns);
    doc_share(d, "section_share", (double)o->section_ns, (double)rep_active_ns(&d->r->times));
    json_uint(&d->j, "idle_ns", o->idle_ns);
    json_uint(&d->j, "path_ns", rep_path_of(o));
    doc_share(d, "path_share", (double)rep_path_of(o), (double)d->r->path.ns);
    sites_of(d, "wait_sites", detail, false);
    sites_of(d, "hold_sites", detail, true);
    json_close(&d->j, '}');
}

void report_json_groups(struct doc *d) {
    doc_member(d, "groups", '[');
    for (uint32_t i = 0; i < d->r->n_groups && i < 4096; i++) {
        const struct rep_group *g = &d->r->groups[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "id", i);
        json_text(&d->j, "type", sbt_trace_type_name(g->type));
        doc_site(d, "made", g->made);
        json_uint(&d->j, "objects", g->n_objects);
        json_uint(&d->j, "acquisitions", g->n);
        json_uint(&d->j, "contended", g->n_contended);
        json_uint(&d->j, "wait_ns", g->wait_ns);
        json_uint(&d->j, "hold_ns", g->hold_ns);
        json_uint(&d->j, "calls_ns", g->calls_ns);
        json_uint(&d->j, "path_ns", g->path_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

void report_json_sites(struct doc *d) {
    doc_member(d, "sites", '[');
    for (uint32_t i = REP_NONE; (i = names_next_site(d->page->names, i)) != REP_NONE;) {
        const struct site_name *s = names_site(d->page->names, i);
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "id", i);
        json_text(&d->j, "place", s->place);
        json_text(&d->j, "file", s->file);
        if (s->line > 0)
            json_int(&d->j, "line", s->line);
        else
            doc_null(d, "line");
        json_text(&d->j, "function", s->function);
        json_text(&d->j, "symbol", s->symbol);
        json_text(&d->j, "module", s->module);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}
