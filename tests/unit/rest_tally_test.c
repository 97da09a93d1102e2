/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a killed thread of a profile had counted, from its book (trace/rest_tally.c): a count that was becoming a tally,
 * with its holds, is read once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/suite.h"
#include "read.h"
#include "rest.h"

enum { LOG_PLACES = 6, N_PLACES = 1 << LOG_PLACES, BOOK_AT = 4096, ADDRESS = 0x10000 };
enum { CALLS = 5, OTHER_CALLS = 7, HELD_NS = 900, OTHER_NS = 300 };

static struct {
    struct trace_live_book book;
    struct trace_live_entry entries[N_PLACES];
} image;

static uint64_t entries_at(void) {
    return BOOK_AT + (sizeof image.book + 63) / 64 * 64;
}

/* A count of an object, of which one hold was timed. */
static void count(unsigned place, uint32_t object, uint32_t calls, uint64_t held_ns) {
    struct trace_live_entry *e = &image.entries[place];
    *e = (struct trace_live_entry){.object = object + 1,
                                   .site = 1,
                                   .n = calls,
                                   .number = object,
                                   .op = SBT_TRACE_MUTEX_LOCK,
                                   .type = SBT_TRACE_MUTEX,
                                   .held = {.ns = held_ns, .max_ns = held_ns, .n_timed = 1, .n = 1}};
    e->held.buckets[8] = 1;
}

/* The first count becomes a tally: that is in the block, and the count is not zero yet. */
static void put_first(void) {
    const struct trace_live_entry *e = &image.entries[0];
    struct sbt_trace_tally tally = {.object = e->number,
                                    .op = e->op,
                                    .type = e->type,
                                    .n = e->n,
                                    .n_timed = 1,
                                    .n_held = 1,
                                    .held_ns = e->held.ns,
                                    .held_max_ns = e->held.max_ns};
    tally.held[8] = 1;
    trace_encode_tally(&image.book.encoder, &tally);
}

static void begin(void) {
    memset(&image, 0, sizeof image);
    image.book.objects = (struct trace_live_table){entries_at() + LOG_PLACES, ADDRESS};
    count(0, 0, CALLS, HELD_NS);
    count(1, 1, OTHER_CALLS, OTHER_NS);
    image.book.putting = ADDRESS + offsetof(struct trace_live_entry, n);
    image.book.putting_held = ADDRESS + offsetof(struct trace_live_entry, held);
}

struct found {
    uint64_t n[2], held_ns[2], n_held[2]; /* by object */
};

/* All tallies of the blocks that are to be added. */
static void read_blocks(const struct trace_rest *r, struct found *found) {
    struct trace_block header;
    for (size_t at = 0; at < r->n_bytes; at += sizeof header + trace_payload_bytes(&header)) {
        uint64_t at_first = at;
        memcpy(&header, r->bytes + at, sizeof header);
        struct sbt_trace alone = {.bytes = r->bytes,
                                  .size = r->n_bytes,
                                  .info = {.version = TRACE_VERSION},
                                  .tallies = &at_first,
                                  .n_tallies = 1};
        struct sbt_trace_tally_cursor cursor;
        struct sbt_trace_tally tally;
        sbt_trace_tally_begin(&alone, &cursor);
        while (sbt_trace_tally_next(&cursor, &tally, NULL) == 1) {
            ck_assert_uint_lt(tally.object, 2);
            found->n[tally.object] += tally.n;
            found->held_ns[tally.object] += tally.held_ns;
            found->n_held[tally.object] += tally.n_held;
        }
    }
}

static void check_once(void) {
    FILE *file = tmpfile();
    uint32_t written[2][1] = {{0}, {0}};
    struct trace_rest r = {.header = {.header_bytes = BOOK_AT},
                           .n_written = {written[0], written[1]},
                           .n_threads = 1,
                           .bounds = {2, 1, 1}};
    struct found found = {{0}, {0}, {0}};
    ck_assert_ptr_nonnull(file);
    r.live_fd = fileno(file);
    ck_assert_int_eq(pwrite(r.live_fd, &image.book, sizeof image.book, BOOK_AT), sizeof image.book);
    ck_assert_int_eq(pwrite(r.live_fd, image.entries, sizeof image.entries, (off_t)entries_at()), sizeof image.entries);
    ck_assert(trace_rest_add_book(&r, 0, BOOK_AT));
    read_blocks(&r, &found);
    ck_assert_uint_eq(found.n[0], CALLS);
    ck_assert_uint_eq(found.held_ns[0], HELD_NS);
    ck_assert_uint_eq(found.n_held[0], 1);
    ck_assert_uint_eq(found.n[1], OTHER_CALLS);
    ck_assert_uint_eq(found.held_ns[1], OTHER_NS);
    free(r.bytes);
    fclose(file);
}

TEST(count_that_was_to_become_a_tally) {
    begin();
    check_once();
}

TEST(count_that_has_become_a_tally) {
    begin();
    put_first();
    check_once();
}

/* Of the entry the calls are zero already, the holds are not. */
TEST(count_that_is_halfway_to_zero) {
    begin();
    put_first();
    image.entries[0].n = 0;
    check_once();
}
