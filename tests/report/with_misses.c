/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * with-misses FROM TO HOLDS MISSES : the whole trace FROM as a processor's counter of cache misses would have made it,
 * in TO. For machines without such a counter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encode.h"

enum { MOST = 1 << 24 };

static unsigned char bytes[MOST + 128];

/* Where the last block begins; there is one of kind end. */
static size_t last_block(size_t n) {
    static const unsigned char begins[] = {'s', 'b', 'l', 'k', TRACE_BLOCK_END};
    while (n > 0 && memcmp(bytes + n, begins, sizeof begins) != 0)
        n--;
    return n;
}

int main(int argc, char **argv) {
    struct trace_block old, header;
    FILE *from = argc == 5 ? fopen(argv[1], "rb") : NULL, *to = argc == 5 ? fopen(argv[2], "wb") : NULL;
    if (from == NULL || to == NULL)
        return 2;
    size_t n = fread(bytes, 1, MOST, from), at = last_block(n);
    memcpy(&old, bytes + at, sizeof old);
    uint8_t *definitions = bytes + at + sizeof old, *end = definitions + old.definition_bytes;
    if (at == 0 || end != bytes + n)
        return 1;
    *end++ = TRACE_DEFINE_MISSES;
    end = trace_put(trace_put(trace_put(end, strtoull(argv[3], NULL, 10)), strtoull(argv[4], NULL, 10)), 0);
    trace_definitions_header(&header, TRACE_BLOCK_END, definitions, (uint32_t)(end - definitions));
    header.clock_ns = old.clock_ns;
    header.n_objects = old.n_objects;
    header.n_sites = old.n_sites;
    header.n_threads = old.n_threads;
    header.header_sum = trace_header_sum(&header);
    memcpy(bytes + at, &header, sizeof header);
    n = (size_t)(end - bytes);
    return fwrite(bytes, 1, n, to) == n && fclose(to) == 0 ? 0 : 1;
}
