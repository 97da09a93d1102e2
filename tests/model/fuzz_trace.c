/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer target: whatever a file says, the reader reads it or says where it is wrong, and touches nothing else. One
 * input in four is the file itself; for the others the headers are made right, so that their contents are looked at.
 */
#include "format.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILE = 1 << 16 };
static uint8_t file[MAX_FILE];

/* A block of what comes next: eight bytes for the header's fields, then the payload. Returns what is left. */
static size_t put_block(const uint8_t **data, size_t size, size_t *n, bool first) {
    uint8_t what[8] = {0};
    size_t part = size < sizeof what ? size : sizeof what;
    memcpy(what, *data, part);
    *data += part;
    size -= part;
    struct trace_block header = {.magic = TRACE_BLOCK_MAGIC, .kind = first ? 1 : (uint8_t)(2 + what[0] % 4)};
    uint32_t payload = what[1] < size ? what[1] : (uint32_t)size;
    if (header.kind == TRACE_BLOCK_TALLIES && what[7] % 2 == 0) /* events mostly */
        header.kind = TRACE_BLOCK_EVENTS;
    if (header.kind == TRACE_BLOCK_TALLIES) {
        header.thread = what[2] % 4;
        header.sequence = what[3] % 4;
        header.event_bytes = payload;
        header.n_events = payload == 0 ? 0 : 1 + what[5] % (payload / TRACE_MIN_TALLY + 1);
        header.n_threads = header.thread + 1;
        header.n_objects = what[6];
        header.n_sites = what[4];
    } else if (header.kind == TRACE_BLOCK_EVENTS) {
        header.thread = what[2] % 4;
        header.sequence = what[3] % 4;
        header.n_templates = payload / 8 < what[4] % 8u ? payload / 8 : what[4] % 8u;
        header.event_bytes = payload - 8 * header.n_templates;
        header.n_events = header.event_bytes == 0 ? 0 : 1 + what[5] % (header.event_bytes / 4 + 1);
        header.n_threads = header.thread + 1 + what[6] % 2;
        header.n_objects = what[6];
        header.n_sites = what[7];
        header.definition_bytes = what[7] % 2 == 0 ? 0 : header.event_bytes % 32;
        header.event_bytes -= header.definition_bytes;
    } else {
        header.definition_bytes = payload;
    }
    if (*n + sizeof header + payload > MAX_FILE)
        return 0;
    header.payload_sum = trace_sum(TRACE_SUM_START, *data, header.event_bytes);
    header.payload_sum = trace_sum(header.payload_sum, *data + header.event_bytes, 8 * header.n_templates);
    header.payload_sum =
        trace_sum(header.payload_sum, *data + header.event_bytes + 8 * header.n_templates, header.definition_bytes);
    header.header_sum = trace_header_sum(&header);
    memcpy(file + *n, &header, sizeof header);
    memcpy(file + *n + sizeof header, *data, payload);
    *n += sizeof header + payload;
    *data += payload;
    return size - payload;
}

static size_t compose(const uint8_t *data, size_t size) {
    struct trace_preamble preamble = TRACE_PREAMBLE(size % 4);
    size_t n = sizeof preamble;
    memcpy(file, &preamble, n);
    for (bool first = true; first || size > 0; first = false)
        size = put_block(&data, size, &n, first);
    return n;
}

static void must(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void read_tallies(const struct sbt_trace *trace, size_t size) {
    struct sbt_trace_error error = {.offset = UINT64_MAX};
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally t;
    uint64_t n = 0;
    int r;
    sbt_trace_tally_begin(trace, &cursor);
    while ((r = sbt_trace_tally_next(&cursor, &t, &error)) == 1) {
        n++;
        must(t.op < SBT_TRACE_N_OPS && t.type < SBT_TRACE_N_TYPES, "an operation or type that does not exist");
        must(t.object == SBT_TRACE_NONE || t.object < info->n_objects, "a tally's object out of range");
        must(t.site == SBT_TRACE_NONE || t.site < info->n_sites, "a tally's site out of range");
        must(t.thread < info->n_threads, "a tally's thread out of range");
    }
    must(n <= info->n_tallies, "more tallies than there are");
    must(r == 0 || (error.offset <= size && error.reason[0] != '\0'), "damage without a place or a reason");
}

static void read_orders(const struct sbt_trace *trace, size_t size) {
    struct sbt_trace_error error = {.offset = UINT64_MAX};
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_order o;
    int r;
    sbt_trace_tally_begin(trace, &cursor);
    while ((r = sbt_trace_order_next(&cursor, &o, &error)) == 1) {
        must(o.held < info->n_objects && o.taken < info->n_objects, "an order's object out of range");
        must(o.n > 0 && o.thread < info->n_threads, "an order seen no time, or an unknown thread");
        must(o.n_gates <= SBT_TRACE_MOST_GATES, "more gates than there is room for");
        for (uint32_t i = 0; i < o.n_gates; i++)
            must(o.gate[i] < info->n_objects, "a gate out of range");
    }
    must(r == 0 || (error.offset <= size && error.reason[0] != '\0'), "damage without a place or a reason");
}

static void read_everything(const char *path, size_t size) {
    struct sbt_trace_error error = {.offset = UINT64_MAX};
    struct sbt_trace *trace = sbt_trace_open(path, &error);
    if (trace == NULL) {
        must(error.offset <= size && error.reason[0] != '\0', "refused without a place or a reason");
        return;
    }
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    for (uint32_t t = 0; t <= info->n_threads && t < 16; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e;
        int r;
        uint64_t n = 0;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = sbt_trace_next(&cursor, &e, &error)) == 1) {
            n++;
            must(e.op < SBT_TRACE_N_OPS && e.type < SBT_TRACE_N_TYPES, "an operation or type that does not exist");
            must(e.object == SBT_TRACE_NONE || e.object < info->n_objects, "an object out of range");
            must(e.site == SBT_TRACE_NONE || e.site < info->n_sites, "a site out of range");
            uint32_t others = e.op == SBT_TRACE_COND_WAIT ? info->n_objects : info->n_threads;
            must(e.other == SBT_TRACE_NONE || e.other < others, "other out of range");
        }
        must(n <= info->n_events, "more events than there are");
        must(r == 0 || (error.offset <= size && error.reason[0] != '\0'), "damage without a place or a reason");
    }
    read_tallies(trace, size);
    read_orders(trace, size);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t sites[2];
        struct sbt_trace_made made;
        uint32_t n = sbt_trace_stack(trace, i, sites, 2), routine = sbt_trace_thread_routine(trace, i);
        must(n < 1 || sites[0] < info->n_sites, "a stack's site out of range");
        must(routine == SBT_TRACE_NONE || routine < info->n_sites, "a routine's site out of range");
        must(!sbt_trace_object_made(trace, i, &made) || made.site < info->n_sites, "an init's site out of range");
        sbt_trace_object_address(trace, i);
        must(sbt_trace_site_name(trace, i) != NULL, "a site without a name");
    }
    sbt_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("trace", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    size_t n = size;
    if (size > 0 && size < MAX_FILE && data[0] % 4 == 0)
        memcpy(file, data + 1, n = size - 1);
    else
        n = compose(data, size < MAX_FILE / 2 ? size : MAX_FILE / 2);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, file, n, 0) != (ssize_t)n)
        abort();
    read_everything(path, n);
    return 0;
}
