/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A whole trace, to which definitions are added in the last block, as if another machine had written it. */
#ifndef TESTS_REPORT_LAST_BLOCK_H
#define TESTS_REPORT_LAST_BLOCK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "encode.h"

enum { LAST_BLOCK_MOST = 1 << 24 };

static struct {
    unsigned char bytes[LAST_BLOCK_MOST + 1024];
    size_t at; /* where the last block begins; there is one of kind end */
    struct trace_block old;
    uint8_t *definitions, *end;
} last_block;

/* False: the file is no whole trace, or longer. */
static bool last_block_read(const char *path) {
    static const unsigned char begins[] = {'s', 'b', 'l', 'k', TRACE_BLOCK_END};
    FILE *from = fopen(path, "rb");
    if (from == NULL)
        return false;
    size_t n = fread(last_block.bytes, 1, LAST_BLOCK_MOST, from);
    fclose(from);
    for (last_block.at = n; last_block.at > 0; last_block.at--)
        if (memcmp(last_block.bytes + last_block.at, begins, sizeof begins) == 0)
            break;
    memcpy(&last_block.old, last_block.bytes + last_block.at, sizeof last_block.old);
    last_block.definitions = last_block.bytes + last_block.at + sizeof last_block.old;
    last_block.end = last_block.definitions + last_block.old.definition_bytes;
    return last_block.at != 0 && last_block.end == last_block.bytes + n;
}

/* One more definition, of three numbers. */
static void last_block_add(uint8_t what, uint64_t first, uint64_t second) {
    *last_block.end++ = what;
    last_block.end = trace_put(trace_put(trace_put(last_block.end, first), second), 0);
}

static bool last_block_write(const char *path) {
    struct trace_block header;
    trace_definitions_header(&header, TRACE_BLOCK_END, last_block.definitions,
                             (uint32_t)(last_block.end - last_block.definitions));
    header.clock_ns = last_block.old.clock_ns;
    header.n_objects = last_block.old.n_objects;
    header.n_sites = last_block.old.n_sites;
    header.n_threads = last_block.old.n_threads;
    header.header_sum = trace_header_sum(&header);
    memcpy(last_block.bytes + last_block.at, &header, sizeof header);
    size_t n = (size_t)(last_block.end - last_block.bytes);
    FILE *to = fopen(path, "wb");
    return to != NULL && fwrite(last_block.bytes, 1, n, to) == n && fclose(to) == 0;
}

#endif
