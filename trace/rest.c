/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the threads of a killed process had in their records (live_format.h) as blocks of its trace, with an end for
 * each thread that says what it waited for.
 *
 * A thread is killed between two instructions. Its block is whole as far as the block's counts go; the event that it
 * was encoding is lost; the rest of its batch goes to a block of its own (rec_flush_interrupted). If it was writing the
 * block then that is in the file if the file has one more block of the thread than the encoder says.
 *
 * The records are not believed. A stranger may have sent them, or a machine that lost its power has not written all of
 * them: each block is read before it is added, and one that cannot be read is lost. A stranger may still change them:
 * each is copied, and the copy is looked at.
 */
#include "rest.h"

#include <stdlib.h>
#include <unistd.h>

#include "encode.h"
#include "read.h"

enum { MOST_THREADS = 1 << 24, MOST_RECORD = 1 << 20, AREA_ALIGNED = 4096 };

struct record {
    struct trace_rest *r; /* NULL: before the first */
    const uint8_t *at;
    struct trace_encoder encoder;
};

static uint32_t byte_of(const struct record *t, enum trace_live_field field) {
    return t->at[t->r->header.offset[field]];
}

static uint32_t word_of(const struct record *t, enum trace_live_field field) {
    uint32_t value;
    memcpy(&value, t->at + t->r->header.offset[field], sizeof value);
    return value;
}

static uint64_t long_of(const struct record *t, enum trace_live_field field) {
    uint64_t value;
    memcpy(&value, t->at + t->r->header.offset[field], sizeof value);
    return value;
}

static uint64_t above_zero(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

bool trace_rest_fits(const struct trace_live_header *h) {
    if (memcmp(h->magic, TRACE_LIVE_MAGIC, sizeof h->magic) != 0 || h->event_bytes != sizeof(struct sbt_trace_event) ||
        h->encoder_bytes != sizeof(struct trace_encoder) || h->header_bytes < sizeof *h ||
        h->record_bytes > MOST_RECORD || h->n_batch > 1024 || h->book_bytes != sizeof(struct trace_live_book) ||
        h->entry_bytes != sizeof(struct trace_live_entry) || h->order_bytes != sizeof(struct trace_live_order))
        return false;
    for (unsigned field = 0; field < LIVE_N_FIELDS; field++) {
        uint64_t bytes = field == LIVE_BATCH     ? (uint64_t)h->n_batch * h->event_bytes
                         : field == LIVE_ENCODER ? h->encoder_bytes
                                                 : sizeof(uint64_t);
        if (h->offset[field] + bytes > h->record_bytes)
            return false;
    }
    return true;
}

bool trace_rest_read(const struct trace_rest *r, uint64_t at, void *to, size_t n_bytes) {
    return at >= r->header.header_bytes && at <= INT64_MAX && at % 8 == 0 &&
           pread(r->live_fd, to, n_bytes, (off_t)at) == (ssize_t)n_bytes;
}

static uint64_t n_words(const struct trace_rest *r) {
    return r->live_size / AREA_ALIGNED / 64 + 1;
}

static void begin_records(struct trace_rest *r, struct record *t) {
    *t = (struct record){.r = NULL};
    memset(r->seen, 0, n_words(r) * sizeof r->seen[0]);
}

/* The next record; false: there is none. A damaged file may have a ring of them: none comes twice. */
static bool next_record(struct trace_rest *r, struct record *t) {
    uint64_t at = t->r != NULL ? long_of(t, LIVE_NEXT) : r->header.first, area = at / AREA_ALIGNED;
    t->r = r;
    t->at = r->record;
    if (at >= r->live_size || at % AREA_ALIGNED != 0 || (r->seen[area / 64] >> area % 64 & 1) != 0 ||
        !trace_rest_read(r, at, r->record, r->header.record_bytes))
        return false;
    r->seen[area / 64] |= UINT64_C(1) << area % 64;
    return true;
}

static bool read_record(const struct trace_rest *r, struct record *t) {
    memcpy(&t->encoder, t->at + r->header.offset[LIVE_ENCODER], sizeof t->encoder);
    const struct trace_encoder *e = &t->encoder;
    return word_of(t, LIVE_STATE) != LIVE_FREE && word_of(t, LIVE_STATE) <= LIVE_CLOSING && e->thread < MOST_THREADS &&
           e->n_event_bytes <= sizeof e->events && e->n_templates <= TRACE_MAX_TEMPLATES &&
           e->n_definition_bytes <= sizeof e->definitions && e->n_events <= e->n_event_bytes / TRACE_MIN_EVENT &&
           (e->n_events == 0) == (e->n_event_bytes == 0) && word_of(t, LIVE_N_BATCH) <= r->header.n_batch;
}

/* ---- what is added ---- */

bool trace_rest_put(struct trace_rest *r, const void *from, size_t n) {
    if (r->n_bytes + n > r->capacity) {
        size_t capacity = 2 * r->capacity + n + 65536;
        uint8_t *longer = realloc(r->bytes, capacity);
        if (longer == NULL)
            return false;
        r->bytes = longer;
        r->capacity = capacity;
    }
    memcpy(r->bytes + r->n_bytes, from, n);
    r->n_bytes += n;
    return true;
}

static void raise_bounds(struct trace_rest *r, const struct trace_block *header) {
    const uint32_t numbers[3] = {header->n_objects, header->n_sites, header->n_threads};
    for (unsigned i = 0; i < 3; i++)
        r->bounds[i] = numbers[i] > r->bounds[i] ? numbers[i] : r->bounds[i];
}

/* False: there is no memory. */
static bool know_thread(struct trace_rest *r, uint32_t thread) {
    if (thread < r->n_threads)
        return true;
    uint32_t n = 2 * thread + 64;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t *longer = realloc(r->n_written[i], n * sizeof *longer);
        if (longer == NULL)
            return false;
        memset(longer + r->n_threads, 0, (n - r->n_threads) * sizeof *longer);
        r->n_written[i] = longer;
    }
    r->n_threads = n;
    return true;
}

bool trace_rest_count(struct trace_rest *r, const struct trace_block *header) {
    raise_bounds(r, header);
    if (header->kind != TRACE_BLOCK_EVENTS && header->kind != TRACE_BLOCK_TALLIES)
        return true;
    if (header->thread >= MOST_THREADS || !know_thread(r, header->thread))
        return false;
    r->n_written[header->kind == TRACE_BLOCK_TALLIES][header->thread]++;
    if (header->kind == TRACE_BLOCK_TALLIES)
        return true;
    r->n_events += header->n_events;
    r->n_blocks++;
    return true;
}

/* By the reader itself, as the only block of a trace. */
static bool is_readable(const struct trace_rest *r, const uint8_t *block, const struct trace_block *header) {
    uint64_t at_first = 0;
    uint32_t first[2] = {0, 1};
    struct sbt_trace alone = {.bytes = block,
                              .size = sizeof *header + trace_payload_bytes(header),
                              .info = {.version = TRACE_VERSION, .n_threads = 1},
                              .blocks = &at_first,
                              .first = first};
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    struct trace_definitions walk;
    struct trace_defined defined;
    int found = 1;
    sbt_trace_cursor_begin(&alone, 0, &cursor);
    trace_definitions_begin(&alone, 0, header, &walk);
    while (found == 1)
        found = sbt_trace_next(&cursor, &event, NULL);
    while (found >= 0 && (found = trace_definitions_next(&walk, &defined)) == 1)
        ;
    return found == 0 && trace_numbers_are_possible(r->size, header->n_objects, header->n_sites, header->n_threads);
}

static bool put_block(struct trace_rest *r, struct trace_encoder *e) {
    struct trace_block header;
    size_t at = r->n_bytes;
    if (e->n_events == 0 && e->n_definition_bytes == 0)
        return true;
    e->sequence = r->n_written[0][e->thread];
    trace_encoder_header(e, &header);
    if (!trace_rest_put(r, &header, sizeof header) || !trace_rest_put(r, e->events, e->n_event_bytes) ||
        !trace_rest_put(r, e->templates, e->n_templates * sizeof e->templates[0]) ||
        !trace_rest_put(r, e->definitions, e->n_definition_bytes))
        return false;
    if (is_readable(r, r->bytes + at, &header))
        return trace_rest_count(r, &header);
    r->n_bytes = at;
    r->n_lost += e->n_events;
    return true;
}

static bool put_event(struct trace_rest *r, struct trace_encoder *e, const struct sbt_trace_event *event) {
    if (!trace_encoder_has_room(e)) {
        if (!put_block(r, e))
            return false;
        trace_encoder_next(e);
    }
    trace_encode(e, event);
    return true;
}

/* An empty block behind the encoder's; what the encoder remembers of its block need not be sound. */
static void renew(struct trace_encoder *e) {
    uint32_t thread = e->thread, overhead_ns = e->overhead_ns;
    uint64_t clock_ns = e->clock_ns, slip_min_ns = e->slip_min_ns;
    memset(e, 0, sizeof *e);
    e->thread = thread;
    e->overhead_ns = overhead_ns;
    e->slip_min_ns = slip_min_ns;
    e->first_clock_ns = e->clock_ns = clock_ns;
}

static uint32_t number_below(uint32_t number) {
    return number < SBT_TRACE_NONE / 2 ? number : SBT_TRACE_NONE;
}

static uint64_t min_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What a thread was in when it was killed. */
struct last {
    bool in_call, waits; /* in_call: one of the recorder's. waits: there, or for the outside */
    unsigned op;
    uint64_t gap_ns; /* since the last event ended, or the call began */
};

static struct last last_of(const struct record *t) {
    bool outside = long_of(t, LIVE_OUTSIDE) != 0;
    bool busy = word_of(t, LIVE_BUSY) != 0, ended = word_of(t, LIVE_STATE) == LIVE_ENDED;
    uint32_t call = byte_of(t, LIVE_IN_CALL);
    struct last last = {.gap_ns = above_zero(t->r->until_ns, long_of(t, LIVE_END_NS))};
    last.in_call = !busy && call != 0 && call <= SBT_TRACE_N_OPS &&
                   !(outside && long_of(t, LIVE_OUTSIDE_AT) < long_of(t, LIVE_CALL_AT));
    last.waits = !ended && !busy && (last.in_call || outside);
    last.op = last.in_call ? call - 1u : SBT_TRACE_OUTSIDE_WAIT;
    return last;
}

/*
 * The end of a thread that ran, as the recorder writes it (observe/running.c), but for its processor time since its
 * last event, which is gone with it. Outside of calls that wait it ran for as large a part as all such threads.
 */
static struct sbt_trace_event end_of(const struct record *t) {
    const struct trace_rest *r = t->r;
    const struct last last = last_of(t);
    struct sbt_trace_event end = {.op = SBT_TRACE_THREAD_END,
                                  .object = SBT_TRACE_NONE,
                                  .other = SBT_TRACE_NONE,
                                  .site = SBT_TRACE_NONE,
                                  .work_ns = long_of(t, LIVE_CARRIED),
                                  .at_ns = above_zero(long_of(t, LIVE_END_NS), r->header.start_ns)};
    if (word_of(t, LIVE_STATE) == LIVE_ENDED)
        return end;
    if (last.in_call) {
        end.work_ns += long_of(t, LIVE_CALL_WORK);
        end.type = (uint8_t)min_of(byte_of(t, LIVE_WAITS_TYPE), SBT_TRACE_N_TYPES - 1);
        end.object = number_below(word_of(t, LIVE_WAITS_OBJECT));
        end.other = last.op == SBT_TRACE_THREAD_JOIN ? number_below(word_of(t, LIVE_WAITS_OTHER)) : SBT_TRACE_NONE;
        end.site = number_below(word_of(t, LIVE_WAITS_SITE));
    }
    end.size = last.waits ? SBT_TRACE_WAITS + last.op : SBT_TRACE_RUNS;
    end.took_ns = last.waits ? last.gap_ns : 0;
    if (!last.waits) {
        double ran_ns = r->ran * (double)last.gap_ns; /* a damaged file's may be too large for a number */
        end.work_ns += ran_ns < 0x1p63 ? (uint64_t)ran_ns : last.gap_ns;
        end.at_ns += last.gap_ns;
    }
    uint64_t late_ns = above_zero(t->encoder.clock_ns, end.at_ns);
    end.at_ns += late_ns;
    end.took_ns = above_zero(end.took_ns, late_ns);
    end.work_ns = min_of(end.work_ns, end.at_ns - t->encoder.clock_ns);
    return end;
}

static uint32_t n_halfway(const struct record *t) {
    return word_of(t, LIVE_N_BATCH) != 0 && byte_of(t, LIVE_FLUSHING) == 0 &&
           word_of(t, LIVE_N_TAKEN) - t->encoder.n_events != word_of(t, LIVE_N_APART);
}

static bool is_possible(const struct sbt_trace_event *event) {
    return event->op < SBT_TRACE_N_OPS && event->type < SBT_TRACE_N_TYPES;
}

static bool add_record(struct trace_rest *r, struct record *t) {
    struct trace_encoder *e = &t->encoder;
    if (!know_thread(r, e->thread))
        return false;
    r->n_lost += (uint64_t)n_halfway(t) + word_of(t, LIVE_N_PENDING) + word_of(t, LIVE_N_LOST);
    if (r->n_written[0][e->thread] <= e->sequence && !put_block(r, e))
        return false;
    renew(e);
    for (uint32_t i = word_of(t, LIVE_N_TAKEN), n = word_of(t, LIVE_N_BATCH); i < n; i++) {
        struct sbt_trace_event event;
        memcpy(&event, t->at + r->header.offset[LIVE_BATCH] + i * sizeof event, sizeof event);
        if (is_possible(&event) && !put_event(r, e, &event))
            return false;
    }
    if (byte_of(t, LIVE_AT_END) == 0 && word_of(t, LIVE_STATE) != LIVE_CLOSING) {
        struct sbt_trace_event end = end_of(t);
        if (!put_event(r, e, &end))
            return false;
    }
    return put_block(r, e);
}

/* If it is not known when the process ended it was when its threads did their last. */
static void find_end(struct trace_rest *r) {
    struct record t;
    for (begin_records(r, &t); next_record(r, &t);)
        if (read_record(r, &t) && long_of(&t, LIVE_END_NS) > r->until_ns)
            r->until_ns = long_of(&t, LIVE_END_NS);
}

/*
 * The process's processor time, less what its threads had used at their last events, is what they have used since. A
 * thread without a record in the file counts there, too.
 */
static void find_ran(struct trace_rest *r) {
    struct record t;
    uint64_t cpu_ns = r->header.past_cpu;
    double gaps_ns = 0;
    for (begin_records(r, &t); next_record(r, &t);) {
        bool runs = read_record(r, &t) && word_of(&t, LIVE_STATE) != LIVE_ENDED && !last_of(&t).waits;
        cpu_ns += long_of(&t, LIVE_CPU);
        gaps_ns += runs ? (double)last_of(&t).gap_ns : 0;
    }
    double since_ns = (double)above_zero(r->cpu_ns, cpu_ns);
    r->ran = since_ns < gaps_ns ? since_ns / gaps_ns : 1;
}

static bool put_end(struct trace_rest *r, bool known) {
    uint8_t definitions[128], *at = definitions;
    struct trace_block header;
    *at++ = TRACE_DEFINE_TOTALS;
    at = trace_put(trace_put(trace_put(at, r->n_events), r->n_blocks), r->n_lost);
    trace_definitions_header(&header, TRACE_BLOCK_END, definitions, (uint32_t)(at - definitions));
    header.clock_ns = above_zero(r->until_ns, r->header.start_ns);
    header.n_objects = r->bounds[0];
    header.n_sites = r->bounds[1];
    header.n_threads = r->bounds[2];
    header.overhead_ns = !known ? TRACE_KILLED_LATER : r->cpu_ns != 0 ? TRACE_KILLED_WITH_CPU : TRACE_KILLED;
    header.header_sum = trace_header_sum(&header);
    return trace_rest_put(r, &header, sizeof header) && trace_rest_put(r, definitions, (size_t)(at - definitions));
}

static bool gather(struct trace_rest *r) {
    struct record t;
    bool known = r->until_ns != 0;
    if (!known)
        find_end(r);
    if (r->cpu_ns != 0)
        find_ran(r);
    for (begin_records(r, &t); next_record(r, &t);)
        if (read_record(r, &t) && !add_record(r, &t))
            return false;
    /* behind the records, which define the numbers of what was counted */
    for (begin_records(r, &t); r->has_tallies && next_record(r, &t);)
        if (read_record(r, &t) && !trace_rest_add_book(r, t.encoder.thread, long_of(&t, LIVE_BOOK)))
            return false;
    return put_end(r, known);
}

bool trace_rest_gather(struct trace_rest *r) {
    r->record = malloc(r->header.record_bytes);
    r->seen = malloc(n_words(r) * sizeof r->seen[0]);
    bool gathered = r->record != NULL && r->seen != NULL && gather(r);
    free(r->record);
    free(r->seen);
    return gathered;
}
