/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of --requests: what reached each NI and what left it, in the NI's own order, for comparing the live engine
 * with another driver of the same hardware. Blocks of one NI of one process, each appended by one write; those of an NI
 * follow each other in the file. Little-endian, no padding.
 */
#ifndef SBT_ENGINE_NI_REQUESTS_H
#define SBT_ENGINE_NI_REQUESTS_H

#include <stdint.h>

#define NI_REQUESTS_MAGIC 0x71526953u /* "SiRq" */

enum ni_requests_kind {
    NI_REQUESTS_CAME = 1, /* a request, when its turn at the NI came for the first time */
    NI_REQUESTS_LEFT      /* a packet that left, because of the last request before it */
};

enum { NI_REQUESTS_FULL_AGAIN = 1, NI_REQUESTS_NO_RESERVE = 2 };

struct ni_requests_record {
    uint32_t kind;
    uint32_t flit[3];
};

struct ni_requests_header {
    uint32_t magic, process;
    uint64_t start_ns; /* with `process`: which one */
    uint16_t tile, n_records;
    uint16_t width, height, n_control, n_queue;
    uint16_t flags;
    uint16_t zero;
};

_Static_assert(sizeof(struct ni_requests_record) == 16 && sizeof(struct ni_requests_header) == 32, "no padding");

enum { NI_REQUESTS_BLOCK = 254 }; /* records at most: with its header a block is 4 KiB */

struct ni_requests_block {
    struct ni_requests_header header;
    struct ni_requests_record record[NI_REQUESTS_BLOCK];
};

#endif
