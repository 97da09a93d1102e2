/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * with-misses FROM TO HOLDS MISSES [again] : the whole trace FROM as a processor's counter of cache misses would have
 * made it, in TO; with "again" what FROM says of misses stays in it too, which is damage.
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

/* The end of the definitions, or where the last block says what was counted. Each of its definitions has three numbers.
 */
static uint8_t *end_of(uint8_t *at, const uint8_t *end) {
    uint64_t number;
    while (at < end && *at != TRACE_DEFINE_MISSES) {
        const uint8_t *next = at + 1;
        for (int i = 0; i < 3 && next != NULL; i++)
            next = trace_get(next, end, &number);
        if (next == NULL)
            exit(1);
        at += next - at;
    }
    return at;
}

int main(int argc, char **argv) {
    struct trace_block old, header;
    FILE *from = argc >= 5 ? fopen(argv[1], "rb") : NULL, *to = argc >= 5 ? fopen(argv[2], "wb") : NULL;
    if (from == NULL || to == NULL)
        return 2;
    size_t n = fread(bytes, 1, MOST, from), at = last_block(n);
    memcpy(&old, bytes + at, sizeof old);
    uint8_t *definitions = bytes + at + sizeof old, *end = definitions + old.definition_bytes;
    if (at == 0 || end != bytes + n)
        return 1;
    if (argc == 5)
        end = end_of(definitions, end);
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
