/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report as one JSON document; docs/report.md describes it, member by member. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_json.h"

enum { FORMAT_VERSION = 1 };

/* ---- trace and summary ---- */

static void trace(struct doc *d) {
    const struct sbt_trace_info *info = &d->r->info;
    doc_member(d, "trace", '{');
    json_text(&d->j, "path", d->page->path);
    json_text(&d->j, "command", info->command);
    json_text(&d->j, "engine", info->engine);
    json_uint(&d->j, "process", info->process_id);
    json_bool(&d->j, "whole", info->whole);
    json_bool(&d->j, "profile", info->profile);
    json_uint(&d->j, "events", info->n_events);
    json_uint(&d->j, "lost", info->n_lost);
    json_uint(&d->j, "threads", info->n_threads);
    json_uint(&d->j, "objects", info->n_objects);
    json_uint(&d->j, "sites", info->n_sites);
    json_close(&d->j, '}');
    json_line(&d->j);
    json_text(&d->j, "empty", d->r->empty);
}

static void sections(struct doc *d, const struct rep_times *t, bool program) {
    json_open(&d->j, "sections", '{');
    json_uint(&d->j, "ns", t->sections.ns);
    json_uint(&d->j, "held_ns", t->sections.held_ns);
    doc_share(d, "share", (double)t->sections.ns, (double)t->life_ns);
    doc_share(d, "active_share", (double)t->sections.ns, (double)rep_active_ns(t));
    if (program && d->r->info.n_counted_holds > 0)
        doc_share(d, "cache_misses", (double)d->r->info.n_misses, (double)d->r->info.n_counted_holds);
    else if (program)
        doc_null(d, "cache_misses");
    json_close(&d->j, '}');
}

static void waiting(struct doc *d, const struct rep_times *t) {
    json_open(&d->j, "waiting", '{');
    for (unsigned k = 0; k < REP_N_KINDS; k++) {
        json_open(&d->j, rep_kind_name(k), '{');
        json_uint(&d->j, "n", t->waiting[k].n);
        json_uint(&d->j, "ns", t->waiting[k].ns);
        doc_share(d, "share", (double)t->waiting[k].ns, (double)t->life_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, '}');
}

static void part_of_life(struct doc *d, const char *key, uint64_t ns) {
    json_open(&d->j, key, '{');
    json_uint(&d->j, "ns", ns);
    doc_share(d, "share", (double)ns, (double)d->r->times.life_ns);
    json_close(&d->j, '}');
}

static void summary(struct doc *d) {
    const struct rep_times *t = &d->r->times;
    doc_member(d, "summary", '{');
    json_uint(&d->j, "wall_ns", d->r->wall_ns);
    json_uint(&d->j, "cpu_ns", t->cpu_ns);
    json_uint(&d->j, "life_ns", t->life_ns);
    json_uint(&d->j, "off_cpu_ns", t->off_cpu_ns);
    json_uint(&d->j, "outside_ns", t->outside_ns);
    json_uint(&d->j, "calls_ns", t->calls_ns);
    doc_share(d, "parallelism", (double)t->cpu_ns, (double)d->r->wall_ns);
    json_uint(&d->j, "threads", d->r->n_live);
    sections(d, t, true);
    waiting(d, t);
    part_of_life(d, "contention", rep_contention_ns(t));
    part_of_life(d, "idle", t->idle_ns);
    part_of_life(d, "event_waits_kept", rep_event_waits_ns(t) - t->idle_ns);
    json_close(&d->j, '}');
}

/* ---- advice ---- */

static void gain(struct doc *d, const struct rep_advice *a) {
    static const char *const bases[] = {
        [REP_BASIS_NONE] = "none", [REP_BASIS_PATH] = "critical-path", [REP_BASIS_SIMULATED] = "simulated"};
    json_open(&d->j, "gain", '{');
    if (a->basis == REP_BASIS_NONE) {
        doc_null(d, "ns");
        doc_null(d, "share");
    } else {
        json_int(&d->j, "ns", (int64_t)a->gain_ns);
        doc_share(d, "share", a->gain_ns, (double)d->r->wall_ns);
    }
    json_real(&d->j, "ratio", report_advice_ratio(d->page, a), DOC_SHARE_DIGITS);
    json_text(&d->j, "basis", bases[a->basis]);
    json_text(&d->j, "not_simulated", a->unsimulated);
    json_close(&d->j, '}');
}

static void measured(struct doc *d, const char *command) {
    const struct report_tried *tried = d->page->tried;
    if (command == NULL || tried == NULL) {
        doc_null(d, "measured");
        return;
    }
    json_open(&d->j, "measured", '{');
    json_int(&d->j, "runs", tried->n_runs);
    json_bool(&d->j, "identical", tried->identical);
    json_real(&d->j, "base_ns", tried->base_ns, 0);
    json_open(&d->j, "engines", '[');
    for (size_t i = 0; i < tried->n_engines; i++) {
        if (strstr(command, tried->engines[i].name) == NULL) /* of another advice */
            continue;
        json_open(&d->j, NULL, '{');
        json_text(&d->j, "engine", tried->engines[i].name);
        json_real(&d->j, "ns", tried->engines[i].ns, 0);
        json_real(&d->j, "ratio", tried->engines[i].ratio, DOC_SHARE_DIGITS);
        json_real(&d->j, "ratio_min", tried->engines[i].ratio_min, DOC_SHARE_DIGITS);
        json_real(&d->j, "ratio_max", tried->engines[i].ratio_max, DOC_SHARE_DIGITS);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    json_close(&d->j, '}');
}

static void advice(struct doc *d, unsigned i) {
    static const char *const units[] = {
        [REP_SHARE] = "share", [REP_NS] = "ns", [REP_COUNT] = "count", [REP_RATIO] = "ratio"};
    const struct rep_advice *a = &d->r->advice[i];
    char *command, *text = report_advice_text(d->page, a, &command);
    json_line(&d->j);
    json_open(&d->j, NULL, '{');
    json_uint(&d->j, "rank", i + 1);
    json_text(&d->j, "cause", rep_cause_name(a->cause));
    doc_id(d, "object", a->object);
    doc_id(d, "group", a->group);
    doc_id(d, "thread", a->thread);
    doc_site(d, "site", a->site);
    json_open(&d->j, "objects", '[');
    for (unsigned k = 0; k < a->n_objects; k++)
        json_uint(&d->j, NULL, a->objects[k]);
    json_close(&d->j, ']');
    json_open(&d->j, "figure", '{');
    json_text(&d->j, "name", a->figure);
    json_real(&d->j, "value", a->value, DOC_SHARE_DIGITS);
    json_text(&d->j, "unit", units[a->unit]);
    json_close(&d->j, '}');
    gain(d, a);
    json_text(&d->j, "text", text);
    json_text(&d->j, "command", command);
    measured(d, command);
    json_close(&d->j, '}');
    free(text);
    free(command);
}

/* ---- threads ---- */

static void thread(struct doc *d, uint32_t number) {
    const struct rep_thread *t = &d->r->threads[number];
    json_line(&d->j);
    json_open(&d->j, NULL, '{');
    json_uint(&d->j, "id", number);
    json_text(&d->j, "name", names_thread(d->page->names, number));
    json_text(&d->j, "routine", names_routine(d->page->names, number));
    doc_site(d, "created_at", t->created_at);
    doc_id(d, "creator", t->creator);
    json_uint(&d->j, "begin_ns", t->begin_ns);
    json_uint(&d->j, "end_ns", t->end_ns);
    json_uint(&d->j, "life_ns", t->times.life_ns);
    json_uint(&d->j, "cpu_ns", t->times.cpu_ns);
    json_uint(&d->j, "off_cpu_ns", t->times.off_cpu_ns);
    json_uint(&d->j, "outside_ns", t->times.outside_ns);
    json_uint(&d->j, "calls_ns", t->times.calls_ns);
    json_uint(&d->j, "events", t->n_events);
    sections(d, &t->times, false);
    waiting(d, &t->times);
    json_uint(&d->j, "idle_ns", t->times.idle_ns);
    json_uint(&d->j, "path_ns", t->path_ns);
    json_close(&d->j, '}');
}

/* ---- objects ---- */

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

static void whole_histogram(struct doc *d, const char *key, const struct rep_histogram *h) {
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

static void object_counts(struct doc *d, const struct rep_object *o) {
    bool gives = o->type == SBT_TRACE_COND || o->type == SBT_TRACE_SEM || o->type == SBT_TRACE_FUTEX;
    json_uint(&d->j, "acquisitions", o->n);
    json_uint(&d->j, "contended", o->n_contended);
    json_uint(&d->j, "failed", o->n_failed);
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

static void object(struct doc *d, uint32_t number) {
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
    json_bool(&d->j, "as_lock", o->gives_back || o->beside_lock);
    doc_site(d, "made", o->made);
    doc_id(d, "group", o->group);
    object_counts(d, o);
    times(d, "wait", o->n_contended, o->wait_ns, o->wait_max_ns, detail != NULL ? &detail->wait : NULL, NULL);
    if (is_lock(o->type) || o->gives_back)
        times(d, "hold", o->hold_n, o->hold_ns, o->hold_max_ns, detail != NULL ? &detail->hold : NULL,
              &o->hold_work_ns);
    else
        doc_null(d, "hold");
    json_uint(&d->j, "handover_ns", o->handover_ns);
    doc_share(d, "section_share", (double)o->section_ns, (double)rep_active_ns(&d->r->times));
    json_uint(&d->j, "idle_ns", o->idle_ns);
    json_uint(&d->j, "path_ns", rep_path_of(o));
    doc_share(d, "path_share", (double)rep_path_of(o), (double)d->r->path.ns);
    sites_of(d, "wait_sites", detail, false);
    sites_of(d, "hold_sites", detail, true);
    json_close(&d->j, '}');
}

static void groups(struct doc *d) {
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

static void sites(struct doc *d) {
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

/* ---- which thread waited for which ---- */

static void sum(struct doc *d, const struct rep_sum *s) {
    json_uint(&d->j, "n", s->n);
    json_uint(&d->j, "ns", s->ns);
}

static void waits_for(struct doc *d) {
    doc_member(d, "waits_for", '[');
    for (size_t i = 0; i < d->r->n_pairs && i < 16 * (size_t)d->page->top; i++) {
        const struct rep_pair *p = &d->r->pairs[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "waiter", p->waiter);
        doc_id(d, "holder", p->holder);
        doc_id(d, "object", p->object);
        json_text(&d->j, "kind", rep_kind_name(p->kind));
        sum(d, &p->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    doc_member(d, "site_waits", '[');
    for (unsigned i = 0; i < doc_most(d, d->r->n_site_pairs); i++) {
        const struct rep_site_pair *p = &d->r->site_pairs[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "object", p->object);
        json_text(&d->j, "kind", rep_kind_name(p->kind));
        doc_site(d, "waiter_site", p->waiter_site);
        doc_site(d, "holder_site", p->holder_site);
        sum(d, &p->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void chains(struct doc *d) {
    doc_member(d, "chains", '[');
    for (unsigned i = 0; i < doc_most(d, d->r->n_chains); i++) {
        const struct rep_chain *c = &d->r->chains[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_open(&d->j, "links", '[');
        for (unsigned k = 0; k < c->n_links; k++) {
            json_open(&d->j, NULL, '{');
            doc_id(d, "object", c->link[k].object);
            json_text(&d->j, "kind", rep_kind_name(c->link[k].kind));
            doc_site(d, "site", c->link[k].site);
            json_close(&d->j, '}');
        }
        json_close(&d->j, ']');
        sum(d, &c->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

/* ---- convoys, orders, barriers ---- */

static void convoys(struct doc *d) {
    doc_member(d, "convoys", '[');
    for (uint32_t i = 0; i < d->r->n_details; i++) {
        const struct rep_convoys *c = &d->r->details[i].convoys;
        if (c->n == 0)
            continue;
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "object", d->r->details[i].object);
        json_uint(&d->j, "n", c->n);
        json_uint(&d->j, "acquisitions", c->n_acquisitions);
        json_uint(&d->j, "ns", c->ns);
        json_uint(&d->j, "longest", c->longest);
        json_uint(&d->j, "threads", c->n_threads);
        json_uint(&d->j, "held_ns", c->held_ns);
        json_uint(&d->j, "handover_ns", c->handover_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void stack(struct doc *d, uint32_t number) {
    uint32_t sites[NAMES_MOST_FRAMES];
    uint32_t n = number != 0 ? sbt_trace_stack(d->page->trace, number, sites, NAMES_MOST_FRAMES) : 0;
    json_open(&d->j, "stack", '[');
    for (uint32_t i = 0; i < n && i < NAMES_MOST_FRAMES; i++)
        doc_site(d, NULL, sites[i]);
    json_close(&d->j, ']');
}

static void lock_order(struct doc *d) {
    doc_member(d, "lock_order", '[');
    for (size_t i = 0; i < d->r->n_circles; i++) {
        const struct rep_circle *c = &d->r->circles[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_open(&d->j, "orders", '[');
        for (unsigned k = 0; k < c->n; k++) {
            json_open(&d->j, NULL, '{');
            doc_id(d, "held", c->order[k]->held);
            doc_id(d, "taken", c->order[k]->taken);
            doc_site(d, "held_site", c->order[k]->held_site);
            doc_site(d, "taken_site", c->order[k]->taken_site);
            doc_id(d, "thread", c->order[k]->thread);
            json_uint(&d->j, "n", c->order[k]->n);
            stack(d, c->order[k]->stack);
            json_close(&d->j, '}');
        }
        json_close(&d->j, ']');
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void barrier_thread(struct doc *d, const struct rep_barrier_thread *t) {
    json_open(&d->j, NULL, '{');
    json_uint(&d->j, "thread", t->thread);
    json_uint(&d->j, "n", t->n);
    json_uint(&d->j, "last", t->n_last);
    json_uint(&d->j, "first", t->n_first);
    json_uint(&d->j, "late_mean_ns", t->n > 0 ? t->late_ns / t->n : 0);
    json_uint(&d->j, "delay_mean_ns", (uint64_t)rep_histogram_mean(&t->delay));
    json_uint(&d->j, "delay_median_ns", (uint64_t)rep_histogram_quantile(&t->delay, 0.5));
    json_uint(&d->j, "delay_max_ns", t->delay.max_ns);
    json_close(&d->j, '}');
}

static void barrier(struct doc *d, const struct rep_barrier *b) {
    json_line(&d->j);
    json_open(&d->j, NULL, '{');
    doc_id(d, "object", b->object);
    json_uint(&d->j, "count", b->count);
    json_uint(&d->j, "generations", b->n_generations);
    whole_histogram(d, "imbalance", &b->imbalance);
    whole_histogram(d, "release", &b->release);
    whole_histogram(d, "delay", &b->delay);
    json_open(&d->j, "threads", '[');
    for (uint32_t i = 0; i < b->n_threads; i++)
        barrier_thread(d, &b->threads[i]);
    json_close(&d->j, ']');
    json_open(&d->j, "worst", '[');
    for (unsigned i = 0; i < b->n_worst; i++) {
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "generation", b->worst[i].number);
        json_uint(&d->j, "first_ns", b->worst[i].first_ns);
        json_uint(&d->j, "last_ns", b->worst[i].last_ns);
        json_uint(&d->j, "end_ns", b->worst[i].end_ns);
        doc_id(d, "last_thread", b->worst[i].last_thread);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    json_close(&d->j, '}');
}

static void tasks(struct doc *d) {
    doc_member(d, "tasks", '[');
    for (size_t i = 0; i < d->r->n_tasks; i++) {
        json_open(&d->j, NULL, '{');
        doc_site(d, "site", d->r->tasks[i].site);
        json_uint(&d->j, "n", d->r->tasks[i].sum.n);
        json_uint(&d->j, "ns", d->r->tasks[i].sum.ns);
        json_uint(&d->j, "max_ns", d->r->tasks[i].max_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void limits(struct doc *d, uint32_t n_shown) {
    doc_member(d, "limits", '{');
    json_uint(&d->j, "objects_shown", n_shown);
    json_uint(&d->j, "objects", d->r->info.n_objects);
    json_uint(&d->j, "detailed", d->r->n_details);
    json_uint(&d->j, "dropped_waits", d->r->dropped.waits);
    json_uint(&d->j, "dropped_pairs", d->r->dropped.pairs);
    json_uint(&d->j, "dropped_chains", d->r->dropped.chains);
    json_uint(&d->j, "dropped_orders", d->r->dropped.orders);
    json_close(&d->j, '}');
}

void report_json(const struct report_page *page, FILE *out) {
    struct doc d = {.j = json_on(out), .page = page, .r = page->report};
    uint32_t n, *shown = report_objects(page, &n);
    json_open(&d.j, NULL, '{');
    json_text(&d.j, "format", "subutai-report");
    json_uint(&d.j, "version", FORMAT_VERSION);
    trace(&d);
    summary(&d);
    doc_member(&d, "advice", '[');
    for (unsigned i = 0; i < d.r->n_advice; i++)
        advice(&d, i);
    json_close(&d.j, ']');
    doc_member(&d, "threads", '[');
    for (uint32_t i = 0; i < d.r->info.n_threads; i++)
        if (d.r->threads[i].n_events > 0)
            thread(&d, i);
    json_close(&d.j, ']');
    doc_member(&d, "objects", '[');
    for (uint32_t i = 0; i < n; i++)
        object(&d, shown[i]);
    json_close(&d.j, ']');
    groups(&d);
    waits_for(&d);
    chains(&d);
    report_json_path(&d);
    convoys(&d);
    lock_order(&d);
    doc_member(&d, "barriers", '[');
    for (uint32_t i = 0; i < d.r->n_details; i++)
        if (d.r->details[i].barrier != NULL)
            barrier(&d, d.r->details[i].barrier);
    json_close(&d.j, ']');
    tasks(&d);
    sites(&d); /* last: all that were mentioned are known */
    limits(&d, n);
    json_close(&d.j, '}');
    json_end(&d.j);
    free(shown);
}
