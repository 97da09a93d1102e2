/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the threads of a killed process had counted (live_format.h), as tallies of its trace.
 *
 * A book has a block of tallies that is not full yet, and tables of what is in no tally yet. A count may just have
 * become a tally: then it is in the block, and its place in the table is read as zero. If the thread was writing the
 * block then that is in the file if the file has one more block of the thread's tallies than the encoder says.
 *
 * As in rest.c, nothing is believed. What cannot be is left out, and a block of which one tally cannot be read is lost.
 */
#include <stdlib.h>

#include "read.h"
#include "rest.h"

struct book {
    struct trace_rest *r;
    struct trace_live_book is; /* as the thread left it; the encoder goes on */
    bool was_put;              /* what `putting` says is in the block */
};

struct table {
    uint8_t *at; /* a copy, as of records in rest.c */
    uint64_t address;
    uint32_t n_places;
};

/* Without places if there is no such table. False: there is no memory. */
static bool read_table(const struct book *b, const struct trace_live_table *told, size_t place_bytes,
                       struct table *table) {
    unsigned log_places = told->at % 64;
    size_t n_bytes = place_bytes << (log_places <= LIVE_LOG_MOST ? log_places : 0);
    *table = (struct table){.address = told->address, .at = malloc(n_bytes)};
    if (table->at != NULL && log_places <= LIVE_LOG_MOST &&
        trace_rest_read(b->r, told->at - log_places, table->at, n_bytes))
        table->n_places = 1u << log_places;
    return table->at != NULL;
}

/* By the reader itself, as the only block of a trace. */
static bool is_readable(const uint8_t *block, const struct trace_block *header) {
    uint64_t at_first = 0;
    struct sbt_trace alone = {.bytes = block,
                              .size = sizeof *header + trace_payload_bytes(header),
                              .info = {.version = TRACE_VERSION},
                              .tallies = &at_first,
                              .n_tallies = 1};
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally tally;
    int found = 1;
    sbt_trace_tally_begin(&alone, &cursor);
    while (found == 1)
        found = sbt_trace_tally_next(&cursor, &tally, NULL);
    return found == 0;
}

/* False: there is no memory. */
static bool write_block(struct book *b) {
    struct trace_rest *r = b->r;
    struct trace_tally_encoder *e = &b->is.encoder;
    struct trace_block header;
    size_t at = r->n_bytes;
    if (e->n_tallies == 0)
        return true;
    e->sequence = r->n_written[1][e->thread];
    trace_tally_header(e, r->until_ns > r->header.start_ns ? r->until_ns - r->header.start_ns : 0, &header);
    if (!trace_rest_put(r, &header, sizeof header) || !trace_rest_put(r, e->bytes, e->n_bytes))
        return false;
    bool good =
        is_readable(r->bytes + at, &header) && header.n_objects <= r->bounds[0] && header.n_sites <= r->bounds[1];
    if (!good)
        r->n_bytes = at;
    trace_tally_next(e);
    return !good || trace_rest_count(r, &header);
}

static bool make_room(struct book *b) {
    return trace_tally_has_room(&b->is.encoder) || write_block(b);
}

static uint32_t number_below(uint32_t number, uint32_t bound) {
    return number < bound ? number : SBT_TRACE_NONE;
}

/* The holds of an entry. One that was being added may be in some of the figures only. */
static void take_holds(struct sbt_trace_tally *tally, const struct trace_live_held *held) {
    if (held->n_timed == 0)
        return;
    for (unsigned i = 0; i < SBT_TRACE_N_HOLD_BUCKETS; i++) {
        tally->held[i] = held->buckets[i];
        tally->n_held += held->buckets[i];
    }
    tally->n_timed = held->n_timed < tally->n_held ? held->n_timed : tally->n_held;
    tally->held_ns = tally->n_timed != 0 ? held->ns : 0;
    tally->held_max_ns = tally->n_timed != 0 ? held->max_ns : 0;
}

/* False: there is no memory. */
static bool put_entry(struct book *b, const struct trace_live_entry *e) {
    uint8_t op = e->op & (uint8_t)~LIVE_FAILS, type = e->type & LIVE_TYPE;
    if (op >= SBT_TRACE_N_OPS || type >= SBT_TRACE_N_TYPES)
        return true;
    struct sbt_trace_tally tally = {
        .object = number_below(e->number, b->r->bounds[0]),
        .site = e->site_number != LIVE_OTHER_SITE ? number_below(e->site_number, b->r->bounds[1]) : SBT_TRACE_NONE,
        .op = op,
        .type = type,
        .n = e->n,
        .n_failed = (e->op & LIVE_FAILS) != 0 ? e->n : 0};
    take_holds(&tally, &e->held);
    if (tally.n == 0 && tally.n_timed == 0)
        return true;
    if (!make_room(b))
        return false;
    trace_encode_tally(&b->is.encoder, &tally);
    return true;
}

static bool is_same(const struct trace_live_entry *a, const struct trace_live_entry *b) {
    return a->object == b->object && a->site == b->site && a->op == b->op;
}

/*
 * An entry that was moving is in two places, of which the first holds if they are not cut by the table's end; whichever
 * is taken, they are equal. Places between them are taken.
 */
static bool is_seen(const struct table *table, uint32_t place) {
    const struct trace_live_entry *entries = (const void *)table->at, *e = &entries[place];
    for (uint32_t back = 1; back < table->n_places; back++) {
        const struct trace_live_entry *before = &entries[(place - back) & (table->n_places - 1)];
        if (before->site == 0)
            return false;
        if (is_same(before, e))
            return true;
    }
    return false;
}

static bool put_entries(struct book *b, const struct table *table) {
    const struct trace_live_entry *entries = (const void *)table->at;
    for (uint32_t i = 0; i < table->n_places; i++) {
        struct trace_live_entry e = entries[i];
        if (e.site == 0 || is_seen(table, i))
            continue;
        if (b->was_put && table->address + i * sizeof e + offsetof(struct trace_live_entry, n) == b->is.putting) {
            e.n = 0;
            e.held.n_timed = 0;
        }
        if (!put_entry(b, &e))
            return false;
    }
    return true;
}

static bool add_entries(struct book *b, const struct trace_live_table *told) {
    struct table table;
    bool added = read_table(b, told, sizeof(struct trace_live_entry), &table) && put_entries(b, &table);
    free(table.at);
    return added;
}

static bool put_order(struct book *b, const struct trace_live_order *o) {
    const uint32_t *bounds = b->r->bounds;
    if (o->n == 0 || o->held_number >= bounds[0] || o->taken_number >= bounds[0] || o->n_gates > SBT_TRACE_MOST_GATES)
        return true;
    struct sbt_trace_order order = {.held = o->held_number,
                                    .taken = o->taken_number,
                                    .held_site = number_below(o->held_site_number, bounds[1]),
                                    .taken_site = number_below(o->taken_site_number, bounds[1]),
                                    .n = o->n,
                                    .stack = o->stack,
                                    .held_shared = o->held_shared != 0,
                                    .taken_shared = o->taken_shared != 0};
    for (uint32_t i = 0; i < o->n_gates; i++)
        if (o->gate[i].number < bounds[0]) {
            order.gate_shared[order.n_gates] = o->gate[i].shared != 0;
            order.gate[order.n_gates++] = o->gate[i].number;
        }
    if (!make_room(b))
        return false;
    trace_encode_order(&b->is.encoder, &order);
    return true;
}

static bool put_orders(struct book *b, const struct table *table) {
    const struct trace_live_order *orders = (const void *)table->at;
    for (uint32_t i = 0; i < table->n_places; i++) {
        struct trace_live_order o = orders[i];
        if (b->was_put && table->address + i * sizeof o + offsetof(struct trace_live_order, n) == b->is.putting)
            o.n = 0;
        if (o.held != 0 && !put_order(b, &o))
            return false;
    }
    return true;
}

static bool add_orders(struct book *b) {
    struct table table;
    bool added = read_table(b, &b->is.orders, sizeof(struct trace_live_order), &table) && put_orders(b, &table);
    free(table.at);
    return added;
}

bool trace_rest_add_book(struct trace_rest *r, uint32_t thread, uint64_t at) {
    struct book b = {.r = r};
    struct trace_tally_encoder *e = &b.is.encoder;
    if (at == 0 || !trace_rest_read(r, at, &b.is, sizeof b.is) || e->thread != thread || thread >= r->n_threads ||
        e->n_bytes > sizeof e->bytes || e->n_tallies > e->n_bytes / TRACE_MIN_TALLY ||
        (e->n_tallies == 0) != (e->n_bytes == 0))
        return true;
    b.was_put = b.is.putting != 0 && e->n_tallies != b.is.put_behind;
    if (r->n_written[1][thread] > e->sequence)
        trace_tally_next(e);
    if (e->n_tallies == 0)
        e->n_objects = e->n_sites = e->last_object = 0; /* of a tally that was not finished */
    else if (!write_block(&b))
        return false;
    return add_entries(&b, &b.is.objects) && add_entries(&b, &b.is.sites) && add_orders(&b) && write_block(&b);
}
