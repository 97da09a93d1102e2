/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of the text's table of objects: an object each, or a class. Objects of one type that were made at one call
 * site are a class if there are CLASS_LEAST of them: as the mutexes of a grid's cells, or one that each request makes
 * and destroys. An object for which threads waited several times, and longer than for all others of its class, has a
 * row of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_print.h"

enum { CLASS_LEAST = 16, WAITS_LEAST = 3 };

static void add(struct report_row *row, const struct rep_object *o) {
    row->n_objects++;
    row->n += o->n;
    row->n_contended += o->n_contended;
    row->wait_ns += o->wait_ns;
    row->hold_n += o->hold_n;
    row->hold_ns += o->hold_ns;
    row->path_ns += rep_path_of(o);
}

static bool stands_out(const struct rep_report *r, uint32_t object) {
    const struct rep_object *o = &r->objects[object];
    const struct rep_group *g = &r->groups[o->group];
    return o->n_contended >= WAITS_LEAST && 2 * o->wait_ns > g->wait_ns;
}

/* The row of the object's class, or NULL: it has its own. `classes`: by group, their rows' numbers plus 1. */
static struct report_row *class_of(const struct rep_report *r, uint32_t object, struct report_row *rows, uint32_t *n,
                                   uint32_t *classes) {
    uint32_t group = r->objects[object].group;
    if (group == REP_NONE || r->objects[object].made == REP_NONE || r->groups[group].n_objects < CLASS_LEAST ||
        stands_out(r, object))
        return NULL;
    if (classes[group] == 0) {
        rows[*n] = (struct report_row){.object = object, .is_class = true};
        classes[group] = ++*n;
    }
    return &rows[classes[group] - 1];
}

static uint64_t weight(const struct report_row *row) {
    return row->path_ns > row->wait_ns ? row->path_ns : row->wait_ns;
}

static int more(const void *a, const void *b) {
    const struct report_row *x = a, *y = b;
    if (weight(x) != weight(y))
        return weight(x) > weight(y) ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

struct report_row *report_rows(const struct report_page *page, uint32_t *n) {
    const struct rep_report *r = page->report;
    struct report_row *rows = cmd_allocate(r->info.n_objects, sizeof *rows);
    uint32_t *classes = cmd_allocate(r->n_groups, sizeof *classes);
    *n = 0;
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        const struct rep_object *o = &r->objects[i];
        if (o->type == SBT_TRACE_NO_OBJECT || (o->n == 0 && o->n_contended == 0))
            continue;
        struct report_row *class = class_of(r, i, rows, n, classes);
        if (class == NULL) {
            rows[*n] = (struct report_row){.object = i};
            class = &rows[(*n)++];
        }
        add(class, o);
    }
    free(classes);
    qsort(rows, *n, sizeof *rows, more);
    return rows;
}

/* "grid.c:160", or the best that there is. */
static char *place_of(const struct report_page *page, uint32_t site) {
    const struct site_name *s = names_site(page->names, site);
    if (s->file == NULL || s->line == 0)
        return cmd_format("%s", names_place(page->names, site));
    const char *slash = strrchr(s->file, '/');
    return cmd_format("%s:%d", slash != NULL ? slash + 1 : s->file, s->line);
}

char *report_row_name(const struct report_page *page, const struct report_row *row) {
    const struct rep_object *o = &page->report->objects[row->object];
    if (!row->is_class)
        return cmd_format("%s", names_object(page->names, row->object));
    char *place = place_of(page, o->made);
    char *name = cmd_format("%ju %s %s %s", (uintmax_t)row->n_objects, report_plural(o->type),
                            o->made_by_init ? "made at" : "used at", place);
    free(place);
    return name;
}

const char *report_plural(unsigned type) {
    static const char *const words[SBT_TRACE_N_TYPES] = {
        [SBT_TRACE_MUTEX] = "mutexes",  [SBT_TRACE_COND] = "conditions", [SBT_TRACE_BARRIER] = "barriers",
        [SBT_TRACE_RWLOCK] = "rwlocks", [SBT_TRACE_SEM] = "semaphores",  [SBT_TRACE_SPIN] = "spin locks",
        [SBT_TRACE_FUTEX] = "futexes"};
    return type < SBT_TRACE_N_TYPES && words[type] != NULL ? words[type] : "objects";
}
