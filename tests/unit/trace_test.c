/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces: what is written is what is read, in each thread's order; what is cut off or damaged is never taken for
 * something else, at whichever byte, and the reason comes with its place in the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encode.h"
#include "lib/suite.h"
#include "trace.h"

static char path[64];
static struct sbt_trace_error trouble;

static void name_file(void) {
    snprintf(path, sizeof path, "trace-test.%d.sbt", (int)getpid());
}

static void remove_file(void) {
    unlink(path);
}

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Small numbers mostly, sometimes of any size. */
static uint64_t draw_number(uint64_t *state) {
    uint64_t n = draw(state) << 31 ^ draw(state);
    return n >> draw(state) % 62;
}

/* Any event that can be written; numbers below what info may say about a small file. */
static struct sbt_trace_event draw_event(uint64_t *state) {
    struct sbt_trace_event e = {
        .op = (uint8_t)(draw(state) % SBT_TRACE_N_OPS),
        .type = (uint8_t)(draw(state) % SBT_TRACE_N_TYPES),
        .object = SBT_TRACE_NONE,
        .other = SBT_TRACE_NONE,
        .site = draw(state) % 8 == 0 ? SBT_TRACE_NONE : (uint32_t)(draw(state) % 900),
        .work_ns = draw_number(state),
        .took_ns = draw_number(state),
    };
    if (e.type != SBT_TRACE_NO_OBJECT) {
        e.object = (uint32_t)(draw(state) % (draw(state) % 2 == 0 ? 8 : 100000));
        e.order = draw(state) % 4 == 0 ? 0 : draw_number(state);
    }
    if (draw(state) % 8 == 0)
        e.result = (uint16_t)draw(state);
    if (draw(state) % 8 == 0)
        e.size = (uint32_t)draw_number(state);
    if (draw(state) % 4 == 0)
        e.other = (uint32_t)(draw(state) % 1000);
    if (e.op == SBT_TRACE_COND_WAIT && e.other != SBT_TRACE_NONE && draw(state) % 4 != 0)
        e.relock = draw_number(state);
    return e;
}

static bool same(const struct sbt_trace_event *a, const struct sbt_trace_event *b) {
    return a->op == b->op && a->type == b->type && a->result == b->result && a->object == b->object &&
           a->other == b->other && a->site == b->site && a->size == b->size && a->work_ns == b->work_ns &&
           a->at_ns == b->at_ns && a->took_ns == b->took_ns && a->order == b->order && a->relock == b->relock;
}

static struct sbt_trace *opened(void) {
    struct sbt_trace *trace = sbt_trace_open(path, &trouble);
    ck_assert_msg(trace != NULL, "at %llu: %s", (unsigned long long)trouble.offset, trouble.reason);
    return trace;
}

enum { N_THREADS = 5, N_EVENTS = 60000 };

/* Threads in turn, a few events each; thread 3 has none. */
TEST(generated) {
    uint64_t state = 1;
    uint32_t n_of[N_THREADS] = {0};
    name_file();
    struct sbt_trace_writer *w = sbt_trace_create(path, "made up --of 3");
    ck_assert_ptr_nonnull(w);
    for (int i = 0; i < N_EVENTS; i++) {
        uint32_t thread = i / 7 % N_THREADS == 3 ? 4 : (uint32_t)(i / 7 % N_THREADS);
        struct sbt_trace_event e = draw_event(&state);
        e.at_ns = 12345; /* not kept */
        ck_assert_int_eq(sbt_trace_append(w, thread, &e), 0);
        n_of[thread]++;
    }
    ck_assert_int_eq(sbt_trace_finish(w), 0);

    struct sbt_trace *trace = opened();
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    ck_assert(info->whole && info->generated);
    ck_assert_str_eq(info->command, "made up --of 3");
    ck_assert_uint_eq(info->n_events, N_EVENTS);
    ck_assert(info->n_threads >= N_THREADS && info->n_objects <= 100000 && info->n_sites <= 900);
    struct sbt_trace_cursor cursors[N_THREADS], early;
    for (uint32_t t = 0; t < N_THREADS; t++)
        sbt_trace_cursor_begin(trace, t, &cursors[t]);
    struct sbt_trace_event e;
    for (int i = 0; i < N_EVENTS; i++) {
        uint32_t thread = i / 7 % N_THREADS == 3 ? 4 : (uint32_t)(i / 7 % N_THREADS);
        if (i == 0) {
            state = 1;
            early = cursors[0];
        }
        struct sbt_trace_event wanted = draw_event(&state);
        ck_assert_msg(sbt_trace_next(&cursors[thread], &e, &trouble) == 1, "%s", trouble.reason);
        ck_assert_msg(same(&e, &wanted), "event %d of thread %u", i, thread);
    }
    for (uint32_t t = 0; t < N_THREADS; t++) {
        ck_assert_int_eq(sbt_trace_next(&cursors[t], &e, &trouble), 0);
        ck_assert_int_eq(sbt_trace_next(&cursors[t], &e, &trouble), 0);
    }
    /* A copy of a cursor is a place to come back to. */
    uint32_t n = 0;
    while (sbt_trace_next(&early, &e, &trouble) == 1)
        n++;
    ck_assert_uint_eq(n, n_of[0]);
    sbt_trace_cursor_begin(trace, 4000000, &early);
    ck_assert_int_eq(sbt_trace_next(&early, &e, &trouble), 0);
    sbt_trace_close(trace);
    remove_file();
}

/* A file as the recorder writes it, of `n_events`, in memory. */
struct image {
    uint8_t *bytes;
    size_t n;
};

static void add(struct image *image, const void *bytes, size_t n) {
    image->bytes = realloc(image->bytes, image->n + n);
    ck_assert_ptr_nonnull(image->bytes);
    memcpy(image->bytes + image->n, bytes, n);
    image->n += n;
}

static void add_block(struct image *image, struct trace_encoder *e) {
    struct trace_block header;
    trace_encoder_header(e, &header);
    add(image, &header, sizeof header);
    add(image, e->events, e->n_event_bytes);
    add(image, e->templates, e->n_templates * sizeof e->templates[0]);
    add(image, e->definitions, e->n_definition_bytes);
    trace_encoder_next(e);
}

static void add_definitions(struct image *image, enum trace_block_kind kind, const uint8_t *definitions,
                            const uint8_t *end) {
    struct trace_block header;
    trace_definitions_header(&header, kind, definitions, (uint32_t)(end - definitions));
    add(image, &header, sizeof header);
    add(image, definitions, (size_t)(end - definitions));
}

static uint8_t *put_text(uint8_t *at, enum trace_definition what, const char *text) {
    *at++ = (uint8_t)what;
    at = trace_put(at, strlen(text));
    return memcpy(at, text, strlen(text)), at + strlen(text);
}

enum { OVERHEAD_NS = 30, SLIP_MIN_NS = 1000 };

/* An event of thread t's as a program would make it, at a time that lets work and preemption be told apart. */
static struct sbt_trace_event draw_timed(uint64_t *state, uint64_t *clock_ns) {
    struct sbt_trace_event e = draw_event(state);
    e.work_ns %= 100000;
    e.took_ns %= 100000;
    uint64_t away = draw(state) % 4 == 0 ? draw(state) % 1000000 : draw(state) % OVERHEAD_NS;
    e.at_ns = *clock_ns + e.work_ns + away; /* often less than the overhead is said to be */
    *clock_ns = e.at_ns + e.took_ns;
    return e;
}

static struct image record(uint32_t n_threads, int n_events_each, int per_block) {
    struct image image = {0};
    struct trace_preamble preamble = TRACE_PREAMBLE(0);
    uint8_t definitions[512], *at = definitions;
    static struct trace_encoder encoders[4];
    memset(encoders, 0, sizeof encoders);
    add(&image, &preamble, sizeof preamble);
    at = put_text(at, TRACE_DEFINE_COMMAND, "a program");
    at = put_text(at, TRACE_DEFINE_ENGINE, "glibc");
    *at++ = TRACE_DEFINE_PROCESS;
    at = trace_put(trace_put(trace_put(at, 77), 76), 5);
    add_definitions(&image, TRACE_BLOCK_BEGIN, definitions, at);
    at = definitions;
    *at++ = TRACE_DEFINE_MODULE;
    at = trace_put(trace_put(trace_put(trace_put(at, 0x5000), 0x1000), 0x200), 6);
    memcpy(at, "/a/lib", 6);
    add_definitions(&image, TRACE_BLOCK_MODULES, definitions, at + 6);

    uint64_t n_events = 0, n_blocks = 0;
    for (uint32_t t = 0; t < n_threads; t++) {
        encoders[t].thread = t;
        encoders[t].overhead_ns = OVERHEAD_NS;
        encoders[t].slip_min_ns = SLIP_MIN_NS;
    }
    for (uint32_t t = 0; t < n_threads; t++) {
        uint64_t state = t, clock_ns = 0;
        for (int i = 0; i < n_events_each; i++) {
            struct sbt_trace_event e = draw_timed(&state, &clock_ns);
            if (i == 0) {
                trace_define(&encoders[t], TRACE_DEFINE_OBJECT, t, 0x7000 - 16 * t);
                trace_define(&encoders[t], TRACE_DEFINE_SITE, t, t == 0 ? 0x5011 : 0x9999);
            }
            trace_encode(&encoders[t], &e);
            n_events++;
            if (!trace_encoder_has_room(&encoders[t]) || (int)encoders[t].n_events == per_block ||
                i == n_events_each - 1) {
                add_block(&image, &encoders[t]);
                n_blocks++;
            }
        }
    }
    at = definitions;
    *at++ = TRACE_DEFINE_TOTALS;
    at = trace_put(trace_put(trace_put(at, n_events), n_blocks), 3);
    add_definitions(&image, TRACE_BLOCK_END, definitions, at);
    return image;
}

static void write_image(const uint8_t *bytes, size_t n) {
    name_file();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, bytes, n), (int)n);
    close(fd);
}

TEST(recorded) {
    enum { N = 9000 };
    struct image image = record(3, N, 0);
    write_image(image.bytes, image.n);
    struct sbt_trace *trace = opened();
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    ck_assert(info->whole && !info->generated);
    ck_assert_str_eq(info->command, "a program");
    ck_assert_str_eq(info->engine, "glibc");
    ck_assert_uint_eq(info->process_id, 77);
    ck_assert_uint_eq(info->n_lost, 3);
    ck_assert_uint_eq(info->n_events, 3 * N);
    ck_assert_uint_eq(sbt_trace_object_address(trace, 2), 0x7000 - 32);
    ck_assert_uint_eq(sbt_trace_object_address(trace, 3), 0);
    ck_assert_str_eq(sbt_trace_site_name(trace, 0), "/a/lib+0x210");
    ck_assert_str_eq(sbt_trace_site_name(trace, 1), "");
    ck_assert_str_eq(sbt_trace_site_name(trace, SBT_TRACE_NONE), "");
    for (uint32_t t = 0; t < 3; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e;
        uint64_t state = t, clock_ns = 0, last = 0;
        sbt_trace_cursor_begin(trace, t, &cursor);
        for (int i = 0; i < N; i++) {
            struct sbt_trace_event wanted = draw_timed(&state, &clock_ns);
            ck_assert_msg(sbt_trace_next(&cursor, &e, &trouble) == 1, "%s", trouble.reason);
            /* Small differences are not written, but they do not add up either. */
            uint64_t off = e.at_ns > wanted.at_ns ? e.at_ns - wanted.at_ns : wanted.at_ns - e.at_ns;
            ck_assert_uint_lt(off, SLIP_MIN_NS);
            ck_assert_uint_ge(e.at_ns + SLIP_MIN_NS, last);
            last = e.at_ns + e.took_ns;
            wanted.at_ns = e.at_ns;
            ck_assert_msg(same(&e, &wanted), "event %d of thread %u", i, t);
        }
        ck_assert_int_eq(sbt_trace_next(&cursor, &e, &trouble), 0);
    }
    sbt_trace_close(trace);
    free(image.bytes);
    remove_file();
}

/* Some bytes of a stranger's for each site, all in a module with the longest of paths: no kilobytes of memory. */
TEST(long_names) {
    enum { N_SITES = 20000, START = 0x10000 };
    static uint8_t definitions[TRACE_MAX_TEXT + 64];
    static struct trace_encoder encoder;
    struct trace_preamble preamble = TRACE_PREAMBLE(0);
    struct image image = {0};
    uint8_t *at = definitions;
    add(&image, &preamble, sizeof preamble);
    add_definitions(&image, TRACE_BLOCK_BEGIN, definitions, put_text(definitions, TRACE_DEFINE_COMMAND, "x"));
    *at++ = TRACE_DEFINE_MODULE;
    at = trace_put(trace_put(trace_put(trace_put(at, START), 2 * N_SITES), 0), TRACE_MAX_TEXT);
    memset(at, '/', TRACE_MAX_TEXT);
    add_definitions(&image, TRACE_BLOCK_MODULES, definitions, at + TRACE_MAX_TEXT);
    for (uint32_t i = 0; i < N_SITES; i++) {
        trace_define(&encoder, TRACE_DEFINE_SITE, i, START + i + 1);
        if (!trace_encoder_has_room(&encoder) || i == N_SITES - 1)
            add_block(&image, &encoder);
    }
    write_image(image.bytes, image.n);
    struct sbt_trace *trace = opened();
    const char *name = sbt_trace_site_name(trace, 0);
    ck_assert_uint_eq(strlen(name), TRACE_MAX_TEXT + strlen("+0x0"));
    size_t before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < N_SITES; i++) {
        char wanted[16];
        snprintf(wanted, sizeof wanted, "+0x%x", i);
        ck_assert_str_eq(sbt_trace_site_name(trace, i) + TRACE_MAX_TEXT, wanted);
    }
    ck_assert_uint_lt(mallinfo2().uordblks, before + image.n);
    sbt_trace_close(trace);
    free(image.bytes);
    remove_file();
}

/* Everything that can be read of what is in the file: the number of events, -1 if it is refused. */
static int64_t read_all(uint64_t size, bool *whole) {
    struct sbt_trace_event e;
    memset(&trouble, 0xFF, sizeof trouble);
    struct sbt_trace *trace = sbt_trace_open(path, &trouble);
    int64_t n = 0;
    int r = trace != NULL ? 0 : -1;
    for (uint32_t t = 0; r == 0 && t < sbt_trace_info(trace)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = sbt_trace_next(&cursor, &e, &trouble)) == 1)
            n++;
        if (r < 0) /* and again, not further */
            ck_assert_int_eq(sbt_trace_next(&cursor, &e, &trouble), -1);
    }
    *whole = trace != NULL && sbt_trace_info(trace)->whole;
    if (trace != NULL && r == 0)
        ck_assert_int_eq(n, (int64_t)sbt_trace_info(trace)->n_events);
    sbt_trace_close(trace);
    if (r == 0)
        return n;
    ck_assert_uint_le(trouble.offset, size);
    ck_assert(memchr(trouble.reason, '\0', sizeof trouble.reason) != NULL && trouble.reason[0] != '\0');
    return -1;
}

/* Cut at every byte: all blocks before the cut can be read, and it is known not to be whole. */
TEST(truncations) {
    struct image image = record(3, 30, 10);
    bool whole;
    int64_t before = -1;
    write_image(image.bytes, image.n);
    ck_assert_int_eq(read_all(image.n, &whole), 90);
    ck_assert(whole);
    for (size_t n = 0; n < image.n; n++) {
        ck_assert_int_eq(truncate(path, 0), 0);
        write_image(image.bytes, n);
        int64_t read = read_all(n, &whole);
        ck_assert(!whole);
        ck_assert_msg(read >= before && read <= 90 && (read < 0 || read % 10 == 0), "%lld of %zu bytes",
                      (long long)read, n);
        before = read;
    }
    ck_assert_int_eq(before, 90);
    free(image.bytes);
    remove_file();
}

/* One bit of a whole trace, any bit: refused. */
TEST(bit_flips) {
    struct image image = record(2, 6, 3);
    bool whole;
    for (size_t bit = 0; bit < image.n * 8; bit++) {
        image.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_image(image.bytes, image.n);
        int64_t read = read_all(image.n, &whole);
        ck_assert_msg(read < 0, "bit %zu: %lld events", bit, (long long)read);
        image.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(image.bytes);
    remove_file();
}

/* A block that is missing, there twice or in the wrong place, and a foreign file. */
TEST(wrong_blocks) {
    struct image image = record(1, 30, 10), wrong = {0};
    bool whole;
    size_t offsets[8], n = 0;
    for (size_t at = sizeof(struct trace_preamble); at < image.n; n++) {
        struct trace_block header;
        memcpy(&header, image.bytes + at, sizeof header);
        offsets[n] = at;
        at += sizeof header + trace_payload_bytes(&header);
    }
    ck_assert_uint_eq(n, 6); /* begin, modules, three of events, end */
    for (int which = 2; which <= 3; which++) {
        wrong.n = 0;
        add(&wrong, image.bytes, offsets[which]);
        add(&wrong, image.bytes + offsets[which + 1], image.n - offsets[which + 1]);
        write_image(wrong.bytes, wrong.n);
        ck_assert_int_eq(read_all(wrong.n, &whole), -1);
        ck_assert_uint_eq(trouble.offset, offsets[which]);
    }
    wrong.n = 0; /* the last of the three is missing: the totals do not agree */
    add(&wrong, image.bytes, offsets[4]);
    add(&wrong, image.bytes + offsets[5], image.n - offsets[5]);
    write_image(wrong.bytes, wrong.n);
    ck_assert_int_eq(read_all(wrong.n, &whole), -1);
    wrong.n = 0; /* twice */
    add(&wrong, image.bytes, offsets[3]);
    add(&wrong, image.bytes + offsets[2], image.n - offsets[2]);
    write_image(wrong.bytes, wrong.n);
    ck_assert_int_eq(read_all(wrong.n, &whole), -1);
    wrong.n = 0; /* behind the end */
    add(&wrong, image.bytes, image.n);
    add(&wrong, "x", 1);
    write_image(wrong.bytes, wrong.n);
    ck_assert_int_eq(read_all(wrong.n, &whole), -1);
    ck_assert_uint_eq(trouble.offset, image.n);

    write_image((const uint8_t *)"", 0);
    ck_assert_int_eq(read_all(0, &whole), -1);
    ck_assert_str_eq(trouble.reason, "the file is empty");
    write_image((const uint8_t *)"#!/bin/sh\n# no trace at all\n", 28);
    ck_assert_int_eq(read_all(28, &whole), -1);
    ck_assert_str_eq(trouble.reason, "not a trace");
    image.bytes[8] = 3;
    write_image(image.bytes, image.n);
    ck_assert_int_eq(read_all(image.n, &whole), -1);
    ck_assert_str_eq(trouble.reason, "format version 3, known are 1, 2 and 4");
    ck_assert_uint_eq(trouble.offset, 8);
    ck_assert_ptr_null(sbt_trace_open("/nonexistent/file", &trouble));
    ck_assert_ptr_null(sbt_trace_open("/dev/null", &trouble));
    ck_assert_str_eq(trouble.reason, "not a file");
    free(wrong.bytes);
    free(image.bytes);
    remove_file();
}

TEST(refused_events) {
    name_file();
    struct sbt_trace_writer *w = sbt_trace_create(path, "");
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(sbt_trace_append(w, 0, &(struct sbt_trace_event){.op = SBT_TRACE_N_OPS}), EINVAL);
    ck_assert_int_eq(sbt_trace_append(w, 0, &(struct sbt_trace_event){.type = SBT_TRACE_N_TYPES}), EINVAL);
    ck_assert_int_eq(sbt_trace_append(w, SBT_TRACE_NONE, &(struct sbt_trace_event){0}), EINVAL);
    ck_assert_int_eq(sbt_trace_finish(w), 0);
    bool whole;
    ck_assert_int_eq(read_all(UINT64_MAX, &whole), 0);
    ck_assert(whole);
    ck_assert_ptr_null(sbt_trace_create("/nonexistent/file", ""));
    ck_assert_int_eq(errno, ENOENT);
    /* A full disk is noticed, at the latest at the end. */
    w = sbt_trace_create("/dev/full", "");
    ck_assert(w == NULL && errno == ENOSPC);
    remove_file();
}

TEST(numbers) {
    uint64_t state = 7, value;
    uint8_t bytes[16];
    for (int i = 0; i < 100000; i++) {
        uint64_t n = i < 2 ? (uint64_t)-i : draw_number(&state);
        uint8_t *end = trace_put(bytes, n);
        ck_assert(trace_get(bytes, end, &value) == end && value == n);
        ck_assert_ptr_null(trace_get(bytes, end - 1, &value));
        ck_assert_uint_eq(trace_unzigzag(trace_zigzag(n)), n);
    }
    memset(bytes, 0xFF, sizeof bytes);
    ck_assert_ptr_null(trace_get(bytes, bytes + sizeof bytes, &value));
    memset(bytes, 0x80, sizeof bytes);
    bytes[9] = 2; /* bit 64 */
    ck_assert_ptr_null(trace_get(bytes, bytes + sizeof bytes, &value));
}

/* A file of version 2 has the same bytes, but waits for the outside. */
TEST(version_2) {
    for (int outside = 0; outside < 2; outside++) {
        struct sbt_trace_event e = {.op = outside ? SBT_TRACE_OUTSIDE_WAIT : SBT_TRACE_THREAD_END,
                                    .object = SBT_TRACE_NONE,
                                    .other = SBT_TRACE_NONE,
                                    .site = SBT_TRACE_NONE,
                                    .work_ns = 5,
                                    .took_ns = 7};
        struct sbt_trace_event got;
        struct sbt_trace_cursor cursor;
        const char version = 2;
        name_file();
        struct sbt_trace_writer *w = sbt_trace_create(path, "of version 2");
        ck_assert_int_eq(sbt_trace_append(w, 0, &e), 0);
        ck_assert_int_eq(sbt_trace_finish(w), 0);
        int fd = open(path, O_WRONLY);
        ck_assert_int_eq(pwrite(fd, &version, 1, 8), 1);
        close(fd);
        struct sbt_trace *trace = opened();
        ck_assert_uint_eq(sbt_trace_info(trace)->version, 2);
        sbt_trace_cursor_begin(trace, 0, &cursor);
        ck_assert_int_eq(sbt_trace_next(&cursor, &got, &trouble), outside ? -1 : 1);
        sbt_trace_close(trace);
        remove_file();
    }
}
