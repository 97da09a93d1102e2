/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles: tallies, stacks, and what objects and threads were made by, are read as they were written; damage at any
 * byte is found. Files of version 1 are read, and have none of it.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encode.h"
#include "lib/suite.h"
#include "trace.h"

static char path[64];
static struct sbt_trace_error trouble;

static struct image {
    uint8_t bytes[1 << 16];
    size_t n;
} image;

static void add(const void *bytes, size_t n) {
    ck_assert_uint_le(image.n + n, sizeof image.bytes);
    memcpy(image.bytes + image.n, bytes, n);
    image.n += n;
}

static void write_image(const struct image *from) {
    snprintf(path, sizeof path, "trace-profile-test.%d.sbt", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert(fd >= 0 && write(fd, from->bytes, from->n) == (ssize_t)from->n);
    close(fd);
}

enum { N_TALLIES = 40, N_ORDERS = N_TALLIES / 10, N_THREADS = 2 };

/* The i-th tally of a thread. Every field has each of its forms. */
static struct sbt_trace_tally tally_of(uint32_t thread, uint32_t i) {
    struct sbt_trace_tally t = {
        .thread = thread,
        .object = i % 5 == 0 ? SBT_TRACE_NONE : i * 7919 % 1000,
        .site = i % 7 == 0 ? SBT_TRACE_NONE : i % 50,
        .op = (uint8_t)(i % SBT_TRACE_N_OPS),
        .type = (uint8_t)(i % SBT_TRACE_N_TYPES),
        .n = i % 3 == 0 ? UINT64_C(1) << i : i,
        .n_failed = i % 11 == 0 ? i : 0,
        .n_timed = i % 2,
        .until_ns = 1000 + thread,
    };
    if (t.n_timed != 0) {
        t.held_max_ns = UINT64_C(1) << 40;
        t.held_ns = t.held_max_ns + i;
        t.held[i % SBT_TRACE_N_HOLD_BUCKETS] = i;
        t.held[31] += 3;
        t.n_held = i + 3;
    }
    return t;
}

/* After each tenth tally. Objects and sites are those of the file: 0 to 99 and 0 to 49. */
static struct sbt_trace_order order_of(uint32_t thread, uint32_t i) {
    struct sbt_trace_order o = {.thread = thread,
                                .held = i % 100,
                                .taken = (i + 37) % 100,
                                .held_site = i % 20 != 0 ? i % 50 : SBT_TRACE_NONE,
                                .taken_site = (i + 1) % 50,
                                .n = (uint64_t)i * i,
                                .stack = i % 30 == 0 ? i : 0,
                                .held_shared = i % 40 == 0,
                                .taken_shared = i % 50 == 0,
                                .n_gates = i / 10 % (SBT_TRACE_MOST_GATES + 1)};
    for (uint32_t g = 0; g < o.n_gates; g++) {
        o.gate[g] = (i + 3 * g) % 100;
        o.gate_shared[g] = (i / 10 + g) % 3 == 0;
    }
    return o;
}

static void add_tallies(uint32_t thread) {
    static struct trace_tally_encoder e;
    struct trace_block header;
    e = (struct trace_tally_encoder){.thread = thread};
    for (uint32_t i = 1; i <= N_TALLIES; i++) {
        struct sbt_trace_tally t = tally_of(thread, i);
        ck_assert(trace_tally_has_room(&e));
        trace_encode_tally(&e, &t);
        if (i % 10 == 0) {
            struct sbt_trace_order o = order_of(thread, i);
            ck_assert(trace_tally_has_room(&e));
            trace_encode_order(&e, &o);
        }
        if (i == N_TALLIES / 2 || i == N_TALLIES) {
            trace_tally_header(&e, t.until_ns, &header);
            add(&header, sizeof header);
            add(e.bytes, e.n_bytes);
            trace_tally_next(&e);
        }
    }
}

static const uint32_t stack[] = {3, 1, 4, 1, 49};

static void add_events(void) {
    static struct trace_encoder e;
    struct trace_block header;
    memset(&e, 0, sizeof e);
    trace_define(&e, TRACE_DEFINE_OBJECT, 5, 0x1000);
    trace_define_made(&e, 5, 17, 99);
    trace_define_routine(&e, 1, 23);
    ck_assert(trace_define_stack(&e, 2, stack, 5));
    trace_encode(&e, &(struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK,
                                               .type = SBT_TRACE_MUTEX,
                                               .object = 5,
                                               .other = SBT_TRACE_NONE,
                                               .site = 3,
                                               .stack = 2,
                                               .at_ns = 10});
    trace_encoder_header(&e, &header);
    add(&header, sizeof header);
    add(e.events, e.n_event_bytes);
    add(e.templates, e.n_templates * sizeof e.templates[0]);
    add(e.definitions, e.n_definition_bytes);
}

static void add_definitions(enum trace_block_kind kind, const uint8_t *definitions, const uint8_t *end) {
    struct trace_block header;
    trace_definitions_header(&header, kind, definitions, (uint32_t)(end - definitions));
    if (kind == TRACE_BLOCK_END) {
        header.clock_ns = 5000;
        header.n_objects = 1000;
        header.n_sites = 50;
        header.n_threads = N_THREADS;
        header.header_sum = trace_header_sum(&header);
    }
    add(&header, sizeof header);
    add(definitions, (size_t)(end - definitions));
}

static void make_image(void) {
    struct trace_preamble preamble = TRACE_PREAMBLE(TRACE_PROFILE);
    uint8_t definitions[128], *at = definitions;
    image.n = 0;
    add(&preamble, sizeof preamble);
    *at++ = TRACE_DEFINE_PROFILE;
    at = trace_put(trace_put(trace_put(at, 64), 20000), 0);
    add_definitions(TRACE_BLOCK_BEGIN, definitions, at);
    add_events();
    add_tallies(0);
    add_tallies(1);
    at = definitions;
    *at++ = TRACE_DEFINE_TOTALS;
    at = trace_put(trace_put(trace_put(at, 1), 1), 0);
    *at++ = TRACE_DEFINE_TALLIED;
    at = trace_put(trace_put(trace_put(at, 2 * (N_TALLIES + N_ORDERS)), 4), 12345);
    add_definitions(TRACE_BLOCK_END, definitions, at);
}

static bool same(const struct sbt_trace_tally *a, const struct sbt_trace_tally *b) {
    return a->thread == b->thread && a->object == b->object && a->site == b->site && a->op == b->op &&
           a->type == b->type && a->n == b->n && a->n_failed == b->n_failed && a->n_timed == b->n_timed &&
           a->n_held == b->n_held && a->held_ns == b->held_ns && a->held_max_ns == b->held_max_ns &&
           memcmp(a->held, b->held, sizeof a->held) == 0 && a->until_ns == b->until_ns;
}

/* True: each order was read as it was written. False: they were refused. */
static bool read_orders(const struct sbt_trace *trace) {
    struct sbt_trace_tally_cursor orders;
    struct sbt_trace_order o;
    int r = 1;
    sbt_trace_tally_begin(trace, &orders);
    for (uint32_t n = 0; r == 1 && n < N_THREADS * N_ORDERS; n++)
        if ((r = sbt_trace_order_next(&orders, &o, &trouble)) == 1) {
            struct sbt_trace_order wanted = order_of(n / N_ORDERS, n % N_ORDERS * 10 + 10);
            ck_assert_msg(
                o.thread == wanted.thread && o.held == wanted.held && o.taken == wanted.taken &&
                    o.held_site == wanted.held_site && o.taken_site == wanted.taken_site && o.n == wanted.n &&
                    o.n_gates == wanted.n_gates && memcmp(o.gate, wanted.gate, o.n_gates * sizeof *o.gate) == 0 &&
                    memcmp(o.gate_shared, wanted.gate_shared, sizeof o.gate_shared) == 0 && o.stack == wanted.stack &&
                    o.held_shared == wanted.held_shared && o.taken_shared == wanted.taken_shared,
                "order %u", n);
        }
    return r == 1 && sbt_trace_order_next(&orders, &o, &trouble) == 0;
}

/* True: everything was read as it was written. False: it was refused. */
static bool read_all(void) {
    struct sbt_trace *trace = sbt_trace_open(path, &trouble);
    struct sbt_trace_tally_cursor tallies;
    struct sbt_trace_tally t;
    struct sbt_trace_cursor events;
    struct sbt_trace_event e;
    int r = 1;
    if (trace == NULL)
        return false;
    sbt_trace_tally_begin(trace, &tallies);
    for (uint32_t i = 0; r == 1 && i < N_THREADS * N_TALLIES; i++)
        if ((r = sbt_trace_tally_next(&tallies, &t, &trouble)) == 1) {
            struct sbt_trace_tally wanted = tally_of(i / N_TALLIES, i % N_TALLIES + 1);
            ck_assert_msg(same(&t, &wanted), "tally %u", i);
        }
    if (r == 1)
        r = sbt_trace_tally_next(&tallies, &t, &trouble) == 0 && read_orders(trace);
    sbt_trace_cursor_begin(trace, 0, &events);
    if (r == 1)
        r = sbt_trace_next(&events, &e, &trouble);
    ck_assert(r != 1 || (e.object == 5 && e.stack == 2 && e.at_ns == 10));
    sbt_trace_close(trace);
    return r == 1;
}

TEST(as_written) {
    uint32_t sites[8];
    struct sbt_trace_made made;
    make_image();
    write_image(&image);
    ck_assert_msg(read_all(), "at %llu: %s", (unsigned long long)trouble.offset, trouble.reason);
    struct sbt_trace *trace = sbt_trace_open(path, &trouble);
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    ck_assert(info->profile && info->whole && info->version == 4);
    ck_assert_uint_eq(info->hold_one_in, 64);
    ck_assert_uint_eq(info->stack_min_ns, 20000);
    ck_assert_uint_eq(info->n_tallies, 2 * (N_TALLIES + N_ORDERS));
    ck_assert_uint_eq(sbt_trace_stack(trace, 2, sites, 8), 5);
    ck_assert_mem_eq(sites, stack, sizeof stack);
    ck_assert_uint_eq(sbt_trace_stack(trace, 2, sites, 1), 5);
    ck_assert_uint_eq(sbt_trace_stack(trace, 1, sites, 8), 0);
    ck_assert_uint_eq(sbt_trace_stack(trace, 0, sites, 8), 0);
    ck_assert_uint_eq(sbt_trace_stack(trace, UINT32_MAX, sites, 8), 0);
    ck_assert(sbt_trace_object_made(trace, 5, &made) && made.site == 17 && made.size == 99);
    ck_assert(!sbt_trace_object_made(trace, 6, &made) && !sbt_trace_object_made(trace, UINT32_MAX, &made));
    ck_assert_uint_eq(sbt_trace_thread_routine(trace, 1), 23);
    ck_assert_uint_eq(sbt_trace_thread_routine(trace, 0), SBT_TRACE_NONE);
    ck_assert_uint_eq(sbt_trace_thread_routine(trace, 2), SBT_TRACE_NONE);
    sbt_trace_close(trace);
    unlink(path);
}

/* The longest tally that there can be fits into what has_room keeps free. */
TEST(longest) {
    static struct trace_tally_encoder e;
    struct sbt_trace_tally t = {.object = UINT32_MAX - 1,
                                .site = UINT32_MAX - 1,
                                .n = UINT64_MAX,
                                .n_failed = UINT64_MAX,
                                .n_timed = UINT64_MAX,
                                .n_held = UINT64_MAX,
                                .held_ns = UINT64_MAX,
                                .held_max_ns = UINT64_MAX};
    memset(t.held, 0xFF, sizeof t.held);
    while (trace_tally_has_room(&e))
        trace_encode_tally(&e, &t);
    ck_assert_uint_le(e.n_bytes, sizeof e.bytes);
    ck_assert_uint_gt(e.n_tallies, 30);

    struct sbt_trace_order o = {.held = UINT32_MAX - 1,
                                .taken = 0,
                                .held_site = UINT32_MAX - 1,
                                .taken_site = UINT32_MAX - 1,
                                .n = UINT64_MAX,
                                .stack = UINT32_MAX,
                                .n_gates = SBT_TRACE_MOST_GATES};
    for (uint32_t i = 0; i < o.n_gates; i++) {
        o.gate[i] = i % 2 == 0 ? UINT32_MAX - 1 : 0;
        o.gate_shared[i] = true;
    }
    memset(&e, 0, sizeof e);
    while (trace_tally_has_room(&e))
        trace_encode_order(&e, &o);
    ck_assert_uint_le(e.n_bytes, sizeof e.bytes);
}

TEST(damaged) {
    static struct image wrong;
    make_image();
    for (size_t i = 0; i < image.n; i++) {
        wrong = image;
        wrong.bytes[i] ^= (uint8_t)(1 << i % 8);
        write_image(&wrong);
        ck_assert_msg(!read_all(), "byte %zu", i);
        ck_assert_uint_le(trouble.offset, image.n);
    }
    unlink(path);
}

/* Blocks of tallies that are missing or there twice are noticed. */
TEST(out_of_place) {
    static struct image wrong;
    size_t offsets[16], n = 0;
    make_image();
    for (size_t at = sizeof(struct trace_preamble); at < image.n;) {
        struct trace_block header;
        memcpy(&header, image.bytes + at, sizeof header);
        offsets[n++] = at;
        at += sizeof header + trace_payload_bytes(&header);
    }
    ck_assert_uint_eq(n, 7); /* the beginning, events, four of tallies, the end */
    for (size_t missing = 2; missing < 6; missing++) {
        wrong.n = offsets[missing];
        memcpy(wrong.bytes, image.bytes, wrong.n);
        memcpy(wrong.bytes + wrong.n, image.bytes + offsets[missing + 1], image.n - offsets[missing + 1]);
        wrong.n += image.n - offsets[missing + 1];
        write_image(&wrong);
        ck_assert_msg(!read_all(), "without block %zu", missing);
        wrong.n = offsets[missing + 1];
        memcpy(wrong.bytes, image.bytes, wrong.n);
        memcpy(wrong.bytes + wrong.n, image.bytes + offsets[missing], image.n - offsets[missing]);
        wrong.n += image.n - offsets[missing];
        write_image(&wrong);
        ck_assert_msg(!read_all(), "with block %zu twice", missing);
    }
    unlink(path);
}

TEST(version_1) {
    struct sbt_trace *trace = sbt_trace_open(VERSION_1, &trouble);
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    struct sbt_trace_tally_cursor tallies;
    struct sbt_trace_tally t;
    unsigned n = 0;
    ck_assert_msg(trace != NULL, "%s", trouble.reason);
    ck_assert(sbt_trace_info(trace)->version == 1 && !sbt_trace_info(trace)->profile);
    ck_assert_str_eq(sbt_trace_info(trace)->command, "written by version 1");
    for (uint32_t thread = 0; thread < 3; thread++) {
        sbt_trace_cursor_begin(trace, thread, &cursor);
        for (unsigned k = thread; sbt_trace_next(&cursor, &e, &trouble) == 1; k += 3, n++)
            ck_assert(e.object == k / 4 && e.work_ns == 100 + k && e.took_ns == k && e.stack == 0 && e.site == k % 2);
    }
    ck_assert_uint_eq(n, 20);
    sbt_trace_tally_begin(trace, &tallies);
    ck_assert_int_eq(sbt_trace_tally_next(&tallies, &t, &trouble), 0);
    sbt_trace_close(trace);
    make_image(); /* what version 2 has is damage in a file of version 1 */
    image.bytes[8] = 1;
    image.bytes[12] = 0;
    image.bytes[14] = 0xFF;
    write_image(&image);
    ck_assert(!read_all());
    unlink(path);
}
