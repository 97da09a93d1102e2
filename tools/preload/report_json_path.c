/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The critical path in the JSON document: its parts, each object's, site's and thread's share, its longest segments. */
#include <stdlib.h>

#include "command.h"
#include "report_json.h"

enum { MOST_SEGMENTS = 2000 };

struct ranked {
    uint64_t ns;
    size_t number;
};

static int more(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : x->number < y->number ? -1 : x->number > y->number;
}

/* Those that are not zero, the most first; their number in *n. Allocated. */
static struct ranked *rank(size_t n_all, uint64_t (*value)(const struct rep_report *r, size_t i),
                           const struct rep_report *r, size_t *n) {
    struct ranked *ranked = cmd_allocate(n_all, sizeof *ranked);
    *n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (value(r, i) > 0)
            ranked[(*n)++] = (struct ranked){value(r, i), i};
    qsort(ranked, *n, sizeof *ranked, more);
    return ranked;
}

static uint64_t object_path(const struct rep_report *r, size_t i) {
    return rep_path_of(&r->objects[i]);
}

static uint64_t site_path(const struct rep_report *r, size_t i) {
    return r->path.site_ns != NULL ? r->path.site_ns[i] : 0;
}

static uint64_t thread_path(const struct rep_report *r, size_t i) {
    return r->threads[i].path_ns;
}

static uint64_t segment_length(const struct rep_report *r, size_t i) {
    return r->path.segments[i].to_ns - r->path.segments[i].from_ns;
}

static int earlier(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void path_objects(struct doc *d) {
    size_t n;
    struct ranked *ranked = rank(d->r->info.n_objects, object_path, d->r, &n);
    json_open(&d->j, "objects", '[');
    for (unsigned i = 0; i < doc_most(d, n); i++) {
        const struct rep_path_part *p = &d->r->objects[ranked[i].number].path;
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "object", ranked[i].number);
        json_uint(&d->j, "ns", ranked[i].ns);
        json_uint(&d->j, "held_ns", p->held_ns);
        json_uint(&d->j, "wakeup_ns", p->wakeup_ns);
        json_uint(&d->j, "waiting_ns", p->waiting_ns);
        json_uint(&d->j, "calls_ns", p->calls_ns);
        doc_share(d, "share", (double)ranked[i].ns, (double)d->r->path.ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    free(ranked);
}

static void path_parts(struct doc *d, const char *key, const char *what, struct ranked *ranked, size_t n) {
    json_open(&d->j, key, '[');
    for (unsigned i = 0; i < doc_most(d, n); i++) {
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, what, ranked[i].number);
        if (what[0] == 's')
            names_site(d->page->names, (uint32_t)ranked[i].number);
        json_uint(&d->j, "ns", ranked[i].ns);
        doc_share(d, "share", (double)ranked[i].ns, (double)d->r->path.ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    free(ranked);
}

static void path_segments(struct doc *d) {
    size_t n;
    struct ranked *ranked = rank(d->r->path.n_segments, segment_length, d->r, &n);
    json_uint(&d->j, "n_segments", d->r->path.n_segments);
    n = n < MOST_SEGMENTS ? n : MOST_SEGMENTS;
    qsort(ranked, n, sizeof *ranked, earlier);
    json_open(&d->j, "segments", '[');
    for (size_t i = 0; i < n; i++) {
        const struct rep_segment *s = &d->r->path.segments[ranked[i].number];
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "thread", s->thread);
        json_uint(&d->j, "from_ns", s->from_ns);
        json_uint(&d->j, "to_ns", s->to_ns);
        doc_id(d, "object", s->object);
        json_text(&d->j, "kind", rep_kind_name(s->kind));
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    free(ranked);
}

void report_json_path(struct doc *d) {
    const struct rep_path *p = &d->r->path;
    size_t n;
    doc_member(d, "critical_path", '{');
    json_uint(&d->j, "ns", p->ns);
    json_uint(&d->j, "work_ns", p->work_ns);
    json_uint(&d->j, "off_cpu_ns", p->off_cpu_ns);
    json_uint(&d->j, "unknown_ns", p->unknown_ns);
    json_uint(&d->j, "calls_ns", p->calls_ns);
    json_uint(&d->j, "held_ns", p->held_ns);
    json_uint(&d->j, "wakeup_ns", p->wakeup_ns);
    json_uint(&d->j, "waiting_ns", p->waiting_ns);
    path_objects(d);
    struct ranked *ranked = rank(p->site_ns != NULL ? d->r->info.n_sites : 0, site_path, d->r, &n);
    path_parts(d, "sites", "site", ranked, n);
    ranked = rank(d->r->info.n_threads, thread_path, d->r, &n);
    path_parts(d, "threads", "thread", ranked, n);
    path_segments(d);
    json_close(&d->j, '}');
}
