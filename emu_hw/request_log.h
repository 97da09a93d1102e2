/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request log: what reached each NI of a live run and what left it, with times. The file of --requests, which
 * `subutai replay` reads. Only its shape is here: nothing in this folder opens a file.
 *
 * The file is a sequence of blocks. A block is a header and n_bytes more, belongs to one NI of one process, and was
 * appended by one write. The blocks of an NI are in order. Little-endian, no padding. Times are cycles of the process's
 * model time.
 *
 * A forked child begins with copies of its parent's NIs. The first block of each NI that it uses is that NI's state:
 * the registers, and behind them the scratchpad's bytes.
 */
#ifndef HW_REQUEST_LOG_H
#define HW_REQUEST_LOG_H

#include <stdint.h>

#define HW_LOG_MAGIC 0x32715253u /* "SRq2" */

enum hw_log_block { HW_LOG_RECORDS = 1, HW_LOG_STATE };

enum hw_log_kind {
    HW_LOG_CAME = 1, /* a request, when its turn at the NI came for the first time */
    HW_LOG_LEFT,     /* a packet that left, caused by the last request before it at this NI */
    HW_LOG_CROSSED   /* the NI's server sent a packet over the mesh. flit[0], flit[1]: from tile, to tile */
};

enum { HW_LOG_FULL_AGAIN = 1, HW_LOG_NO_RESERVE = 2, HW_LOG_CHILD = 4 };

struct hw_log_header {
    uint32_t magic, process;
    uint64_t start_ns; /* together with `process` it identifies the process */
    uint16_t block;    /* enum hw_log_block */
    uint16_t tile, width, height, n_control, n_queue;
    uint16_t flags, zero;
    uint32_t time_scale, n_bytes;
};

struct hw_log_record {
    uint32_t kind; /* enum hw_log_kind */
    uint32_t flit[3];
    uint64_t order; /* of the process's records, at all its NIs */
    /*
     * CAME: the core began to hand it over, and it reached the NI. LEFT: it left the NI, and its core saw it. CROSSED:
     * it was ready for its first port; to_cycles is how long it waited for ports.
     */
    uint64_t from_cycles, to_cycles;
};

struct hw_log_state {
    uint64_t free_cycles; /* until then the state machine is busy, */
    uint64_t busy_cycles; /* and has been since then, without a pause */
    uint32_t generation_skip;
    uint16_t free_head, free_tail, n_free, n_reserved;
    uint16_t n_control_used, zero;
};

_Static_assert(sizeof(struct hw_log_header) == 40 && sizeof(struct hw_log_record) == 40 &&
                   sizeof(struct hw_log_state) == 32,
               "no padding");

enum { HW_LOG_MAX_RECORDS = 101 }; /* of a block, which is at most 4 KiB with its header */

#endif
