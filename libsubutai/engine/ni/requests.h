/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of --requests: what reached each NI and what left it, in the NI's own order. It is for comparing the live
 * engine with another driver of the same hardware. A block belongs to one NI of one process, and is appended by one
 * write. Blocks of an NI are in order. Little-endian, no padding.
 */
#ifndef SBT_ENGINE_NI_REQUESTS_H
#define SBT_ENGINE_NI_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/options.h"
#include "packet.h"

struct ni_tile;

#define NI_REQUESTS_MAGIC 0x71526953u /* "SiRq" */

enum ni_requests_kind {
    NI_REQUESTS_CAME = 1, /* a request, when its turn at the NI came for the first time */
    NI_REQUESTS_LEFT      /* a packet that left, caused by the last request before it */
};

enum { NI_REQUESTS_FULL_AGAIN = 1, NI_REQUESTS_NO_RESERVE = 2 };

struct ni_requests_record {
    uint32_t kind;
    uint32_t flit[3];
};

struct ni_requests_header {
    uint32_t magic, process;
    uint64_t start_ns; /* together with `process` it identifies the process */
    uint16_t tile, n_records;
    uint16_t width, height, n_control, n_queue;
    uint16_t flags;
    uint16_t zero;
};

_Static_assert(sizeof(struct ni_requests_record) == 16 && sizeof(struct ni_requests_header) == 32, "no padding");

enum { NI_REQUESTS_BLOCK = 254 }; /* most records of a block, which is 4 KiB with its header */

struct ni_requests_block {
    struct ni_requests_header header;
    struct ni_requests_record record[NI_REQUESTS_BLOCK];
};

int ni_requests_start(const struct sbt_options *options);
/* Under the tile's lock; only if tile->requests is not NULL. May write to the file. */
void ni_requests_note(struct ni_tile *tile, enum ni_requests_kind kind, const struct hw_packet *packet);
/* `locked`: no NI is served meanwhile. Otherwise what is in the blocks is lost. */
void ni_requests_end(bool locked);
void ni_requests_fork_child(void);

#endif
