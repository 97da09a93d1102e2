/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * with-misses FROM TO HOLDS MISSES [again] : the whole trace FROM as a processor's counter of cache misses would have
 * made it, in TO; with "again" what FROM says of misses stays in it too, which is damage.
 */
#include <stdlib.h>

#include "last_block.h"

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
    if (argc < 5 || !last_block_read(argv[1]))
        return 2;
    if (argc == 5)
        last_block.end = end_of(last_block.definitions, last_block.end);
    last_block_add(TRACE_DEFINE_MISSES, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    return last_block_write(argv[2]) ? 0 : 1;
}
