/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events to columns; see columns.h. */
#include "columns.h"

#include <stdlib.h>

struct sbt_trace_reader *sbt_trace_reader_new(void) {
    return calloc(1, sizeof(struct sbt_trace_reader));
}

void sbt_trace_reader_free(struct sbt_trace_reader *reader) {
    free(reader);
}

void sbt_trace_reader_select(struct sbt_trace_reader *reader, uint64_t ops, uint64_t long_ops, uint64_t least_ns) {
    reader->selects = true;
    reader->ops = ops;
    reader->long_ops = long_ops;
    reader->least_ns = least_ns;
}

void sbt_trace_reader_limit(struct sbt_trace_reader *reader, uint32_t first, uint32_t end) {
    reader->thread = first;
    reader->begun = false;
    reader->ends_early = true;
    reader->n_threads = end;
}

static bool selected(const struct sbt_trace_reader *reader, const struct sbt_trace_event *e) {
    uint64_t bit = (uint64_t)1 << e->op;
    return !reader->selects ||
           ((reader->ops & bit) != 0 && ((reader->long_ops & bit) == 0 || e->took_ns >= reader->least_ns));
}

/* The branches are the same for all events of a call, so the processor predicts them. */
static void put(const struct sbt_trace_columns *c, uint64_t i, uint32_t thread, const struct sbt_trace_event *e) {
    if (c->thread != NULL)
        c->thread[i] = thread;
    if (c->op != NULL)
        c->op[i] = e->op;
    if (c->type != NULL)
        c->type[i] = e->type;
    if (c->result != NULL && (e->result != 0 || !c->zeroed))
        c->result[i] = e->result;
    if (c->object != NULL)
        c->object[i] = e->object;
    if (c->other != NULL)
        c->other[i] = e->other;
    if (c->site != NULL)
        c->site[i] = e->site;
    if (c->size != NULL && (e->size != 0 || !c->zeroed))
        c->size[i] = e->size;
    if (c->work_ns != NULL)
        c->work_ns[i] = e->work_ns;
    if (c->at_ns != NULL)
        c->at_ns[i] = e->at_ns;
    if (c->took_ns != NULL)
        c->took_ns[i] = e->took_ns;
    if (c->order != NULL)
        c->order[i] = e->order;
    if (c->relock != NULL && (e->relock != 0 || !c->zeroed))
        c->relock[i] = e->relock;
    if (c->stack != NULL && (e->stack != 0 || !c->zeroed))
        c->stack[i] = e->stack;
}

int64_t sbt_trace_read_columns(const struct sbt_trace *trace, struct sbt_trace_reader *reader,
                               const struct sbt_trace_columns *columns, uint64_t room, struct sbt_trace_error *error) {
    uint32_t n_threads = sbt_trace_info(trace)->n_threads;
    uint64_t n = 0;
    struct sbt_trace_event event;
    if (reader->ends_early && reader->n_threads < n_threads)
        n_threads = reader->n_threads;
    while (n < room && reader->thread < n_threads) {
        if (!reader->begun)
            sbt_trace_cursor_begin(trace, reader->thread, &reader->cursor);
        reader->begun = true;
        int r = sbt_trace_next(&reader->cursor, &event, error);
        if (r < 0)
            return -1;
        if (r == 1 && selected(reader, &event)) {
            put(columns, n++, reader->thread, &event);
        } else if (r == 0) {
            reader->thread++;
            reader->begun = false;
        }
    }
    return (int64_t)n;
}

void sbt_trace_read_counts(const struct sbt_trace *trace, uint64_t *n_events, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        n_events[i] = sbt_trace_thread_events(trace, i);
}

void sbt_trace_read_addresses(const struct sbt_trace *trace, uint64_t *address, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        address[i] = sbt_trace_object_address(trace, i);
}

void sbt_trace_read_routines(const struct sbt_trace *trace, uint32_t *site, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        site[i] = sbt_trace_thread_routine(trace, i);
}

/* All columns: tallies are few beside events. */
static void put_tally(const struct sbt_trace_tally_columns *c, uint64_t i, const struct sbt_trace_tally *t) {
    c->thread[i] = t->thread;
    c->op[i] = t->op;
    c->type[i] = t->type;
    c->object[i] = t->object;
    c->site[i] = t->site;
    c->n[i] = t->n;
    c->n_failed[i] = t->n_failed;
    c->n_timed[i] = t->n_timed;
    c->n_held[i] = t->n_held;
    c->held_ns[i] = t->held_ns;
    c->held_max_ns[i] = t->held_max_ns;
}

int64_t sbt_trace_read_tallies(const struct sbt_trace *trace, const struct sbt_trace_tally_columns *columns,
                               uint64_t room, struct sbt_trace_error *error) {
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally tally;
    uint64_t n = 0;
    sbt_trace_tally_begin(trace, &cursor);
    while (n < room) {
        int r = sbt_trace_tally_next(&cursor, &tally, error);
        if (r <= 0)
            return r < 0 ? -1 : (int64_t)n;
        put_tally(columns, n++, &tally);
    }
    return (int64_t)n;
}
