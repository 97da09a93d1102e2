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
    json_bool(&d->j, "completed", info->completed);
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

static void no_core(struct doc *d, const struct rep_times *t, bool is_known) {
    if (is_known) {
        json_uint(&d->j, "no_core_ns", t->no_core_ns);
        json_uint(&d->j, "queued_ns", t->queued_ns);
    } else {
        doc_null(d, "no_core_ns");
        doc_null(d, "queued_ns");
    }
}

static void summary(struct doc *d) {
    const struct rep_times *t = &d->r->times;
    doc_member(d, "summary", '{');
    json_uint(&d->j, "wall_ns", d->r->wall_ns);
    json_uint(&d->j, "cpu_ns", t->cpu_ns);
    json_uint(&d->j, "life_ns", t->life_ns);
    json_uint(&d->j, "off_cpu_ns", t->off_cpu_ns);
    json_uint(&d->j, "unknown_ns", t->unknown_ns);
    json_uint(&d->j, "outside_ns", t->outside_ns);
    json_uint(&d->j, "calls_ns", t->calls_ns);
    no_core(d, t, d->r->n_queued > 0);
    doc_share(d, "parallelism", (double)t->cpu_ns, (double)d->r->wall_ns);
    json_uint(&d->j, "threads", d->r->n_live);
    sections(d, t, true);
    waiting(d, t);
    part_of_life(d, "contention", rep_contention_ns(t));
    part_of_life(d, "idle", t->idle_ns);
    part_of_life(d, "event_waits_kept", rep_event_waits_ns(t) - t->idle_ns);
    part_of_life(d, "unended", d->r->unended.ns);
    json_close(&d->j, '}');
}

/* ---- advice ---- */

static void gain(struct doc *d, const struct rep_advice *a) {
    static const char *const bases[] = {[REP_BASIS_NONE] = "none",
                                        [REP_BASIS_PATH] = "critical-path",
                                        [REP_BASIS_COUNTED] = "counted",
                                        [REP_BASIS_SIMULATED] = "simulated"};
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
    json_uint(&d->j, "unknown_ns", t->times.unknown_ns);
    json_uint(&d->j, "outside_ns", t->times.outside_ns);
    json_uint(&d->j, "calls_ns", t->times.calls_ns);
    no_core(d, &t->times, t->queued_is_known);
    json_uint(&d->j, "events", t->n_events);
    sections(d, &t->times, false);
    waiting(d, &t->times);
    json_uint(&d->j, "idle_ns", t->times.idle_ns);
    json_uint(&d->j, "path_ns", t->path_ns);
    json_close(&d->j, '}');
}

/* ---- the document ---- */

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
        report_json_object(&d, shown[i]);
    json_close(&d.j, ']');
    report_json_groups(&d);
    report_json_waits(&d);
    report_json_path(&d);
    report_json_patterns(&d);
    report_json_sites(&d); /* last: all that were mentioned are known */
    limits(&d, n);
    json_close(&d.j, '}');
    json_end(&d.j);
    free(shown);
}
