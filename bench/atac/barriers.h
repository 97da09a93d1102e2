/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The barriers of section 6.1 of the thesis, in a loop, in virtual time: what Figs. 6-1, 6-2 and 6-5 show.
 *
 *   PTHREAD          glibc's of the thesis's time (2.11): a lock, a counter and an event word, in one line, and futexes
 *   SENSE_REVERSING  a counter and the sense that all spin on, in one line
 *   VC               the barrier on a virtual channel (<subutai/atac.h>)
 *   SERVER           not in the thesis: one request for each thread to the server of system calls, which counts
 */
#ifndef BENCH_ATAC_BARRIERS_H
#define BENCH_ATAC_BARRIERS_H

#include "run.h"

/* Those of the thesis, and a further one. */
enum barrier_kind {
    BARRIER_PTHREAD,
    BARRIER_SENSE_REVERSING,
    BARRIER_VC,
    N_BARRIER_KINDS,
    BARRIER_SERVER = N_BARRIER_KINDS
};
const char *barrier_name(enum barrier_kind kind);

struct barrier_loop {
    uint64_t cycles;        /* end to end */
    uint64_t median_exit;   /* from the coming of the last thread until the last thread goes */
    uint64_t n_overlapping; /* episodes that a thread left before all had come: 0 in a barrier */
};

/* Cycles that a thread computes before it comes to the barrier. */
typedef uint64_t barrier_work(uint32_t thread, uint32_t n_threads, uint32_t episode);

/* Exit with a message if the run fails. */
struct barrier_loop barrier_program_run(const struct atac_config *config, enum barrier_kind kind, uint32_t n_loops,
                                        barrier_work *work);
/* Barriers with nothing between them. */
struct barrier_loop barrier_loop_run(const struct atac_config *config, enum barrier_kind kind, uint32_t n_loops);

#endif
