/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is to be added to a killed program's trace: complete.c has the files, rest.c the threads, rest_tally.c what they
 * have counted. */
#ifndef SBT_TRACE_REST_H
#define SBT_TRACE_REST_H

#include "format.h"
#include "live_format.h"

struct trace_rest {
    struct trace_live_header header; /* of FILE.live, as the two below */
    int live_fd;
    uint64_t live_size;
    bool has_tallies;       /* FILE is a profile */
    uint8_t *record;        /* rest.c: the record that is read; */
    uint64_t *seen;         /* a bit for each area that was one */
    uint64_t size;          /* of FILE, without what is to be added */
    uint32_t *n_written[2]; /* by thread: its blocks of events, and of tallies, in FILE and in `bytes` */
    uint32_t n_threads;
    uint32_t bounds[3]; /* of objects, call sites, threads */
    uint64_t n_events, n_blocks, n_lost;
    uint64_t until_ns; /* of the recorder's clock: when the process ended; 0: not known */
    uint64_t cpu_ns;   /* of the process, to its end; 0: not known */
    double ran;        /* rest.c: the part of the time since their last calls in which threads ran */
    uint8_t *bytes;    /* to be added */
    size_t n_bytes, capacity;
};

/* Does the layout fit this code? */
bool trace_rest_fits(const struct trace_live_header *header);
/* A block of FILE is no news. False: there is no memory, or no sense in it. */
bool trace_rest_count(struct trace_rest *r, const struct trace_block *header);
/* Read so many bytes from there in FILE.live. False: it has not so many there. */
bool trace_rest_read(const struct trace_rest *r, uint64_t at, void *to, size_t n_bytes);
/* Append to `bytes`. False: there is no memory. */
bool trace_rest_put(struct trace_rest *r, const void *from, size_t n);
/* rest_tally.c: what the thread had counted, by its book there. The thread's record has been added. False: there is no
 * memory. */
bool trace_rest_add_book(struct trace_rest *r, uint32_t thread, uint64_t at);
/* All blocks of FILE have been counted: fill in `bytes`. False: there is no memory. */
bool trace_rest_gather(struct trace_rest *r);

#endif
